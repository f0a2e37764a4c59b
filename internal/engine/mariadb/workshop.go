package mariadb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/sqltext"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// workshop is a scratch folder in which one data folder is made. Where a parent
// bars the engine's user, its programs see it at a short path of its own.
type workshop struct {
	version kurabe.EngineVersion
	user    *proc.Credential
	dir     string // as we see it
	seen    string // as the programs see it
}

// openWorkshop makes a fresh folder below r.Scratch.
func openWorkshop(r engine.TemplateRequest) (*workshop, error) {
	if err := volume.MkdirAll(r.Scratch, 0o711); err != nil {
		return nil, err
	}
	dir, err := volume.MkdirTemp(r.Scratch, "making-")
	if err != nil {
		return nil, err
	}
	w := &workshop{version: r.Version, user: r.User, dir: dir, seen: dir}
	if err := volume.Mkdir(w.data(), 0o700); err != nil {
		return nil, errors.Join(err, volume.RemoveAll(dir))
	}
	if w.user == nil {
		return w, nil
	}
	if err := errors.Join(w.give(dir), w.give(w.data())); err != nil {
		return nil, errors.Join(err, volume.RemoveAll(dir))
	}
	if !proc.Traversable(r.Scratch, w.user.UID, w.user.GID) {
		// The mount is in the programs' own namespace; here the folder stays empty.
		if w.seen, err = os.MkdirTemp("", "kurabe-"); err != nil {
			return nil, errors.Join(err, volume.RemoveAll(dir))
		}
	}
	return w, nil
}

// give makes the engine's user the owner.
func (w *workshop) give(path string) error {
	if w.user == nil {
		return nil
	}
	return volume.Give(path, *engine.OwnerFor(w.user))
}

// write makes a file that the engine's user owns, in place of what bears its name.
func (w *workshop) write(path, text string) error {
	return volume.WriteNew(path, []byte(text), 0o600, engine.OwnerFor(w.user))
}

func (w *workshop) close() {
	_ = volume.RemoveAll(w.dir) // Scratch; the next start of the service finds no use in it.
	_ = volume.Remove(filepath.Dir(w.dir))
	if w.seen != w.dir {
		_ = os.Remove(w.seen)
	}
}

// data is the data folder in the making.
func (w *workshop) data() string { return filepath.Join(w.dir, "data") }

// serve runs the server to its end: in bootstrap mode it ends with its input,
// else with the SHUTDOWN of its init file.
func (w *workshop) serve(ctx context.Context, name string, options []string, stdin string) error {
	argv := append([]string{
		conf.ServerPath(w.version.BinDir), "--no-defaults", "--datadir=" + filepath.Join(w.seen, "data"),
		"--basedir=" + filepath.Dir(w.version.BinDir), "--lc-messages-dir=" + conf.ShareDir(w.version.BinDir),
		"--log-warnings=0", "--tmpdir=" + w.seen,
	}, options...)
	if w.user == nil && os.Geteuid() == 0 {
		argv = append(argv, "--user=root") // It refuses root unless told so.
	}
	tool := proc.Tool{Name: name, Argv: argv, Env: conf.ToolEnv(), Dir: w.dir, User: w.user, Stdin: []byte(stdin), Seclude: engine.Seclude(w.user, programs(w.version), w.seen)}
	if w.seen != w.dir {
		tool.BindAs, tool.BindFrom = w.seen, w.dir
	}
	_, err := proc.Run(ctx, tool)
	return err
}

// bootstrap runs statements without accounts, network or plugins. The first
// error ends the server, so success means all of them. It takes one statement
// per semicolon at the end of a line.
func (w *workshop) bootstrap(ctx context.Context, statements string, options ...string) error {
	return w.serve(ctx, "mariadbd --bootstrap", append([]string{"--bootstrap"}, options...), statements)
}

// answer runs one SELECT, written with %s for the place of INTO OUTFILE, and
// returns its only column, one string a row.
func (w *workshop) answer(ctx context.Context, query string, run func(ctx context.Context, statements string) error) ([]string, error) {
	const name = "answer"
	into := fmt.Sprintf("INTO OUTFILE %s FIELDS ESCAPED BY ''", sqltext.Literal(filepath.Join(w.seen, name)))
	if err := run(ctx, fmt.Sprintf(query, into)+";\n"); err != nil {
		return nil, err
	}
	raw, err := volume.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n"), nil
}

// readCharsets asks the server itself what it has.
func readCharsets(ctx context.Context, v kurabe.EngineVersion) ([]string, error) {
	scratch, err := os.MkdirTemp("", "kurabe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	w, err := openWorkshop(engine.TemplateRequest{Version: v, Scratch: scratch})
	if err != nil {
		return nil, err
	}
	defer w.close()
	names, err := w.answer(ctx, "SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS %s",
		func(ctx context.Context, statements string) error {
			return w.bootstrap(ctx, statements, "--innodb=OFF", "--default-storage-engine=Aria")
		})
	if err != nil {
		return nil, err
	}
	return conf.OfferedCharsets(names), nil
}

// programs are the folders of a version's programs and of what belongs to them, beside
// the system's.
func programs(v kurabe.EngineVersion) []string {
	prefix := filepath.Dir(v.BinDir)
	if strings.HasPrefix(prefix+"/", "/usr/") {
		return nil
	}
	return []string{prefix}
}
