package mariadb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/sqltext"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// initializer makes a data folder.
type initializer struct {
	scratch.Folder
	version kurabe.EngineVersion
}

func openInitializer(r engine.TemplateRequest) (*initializer, error) {
	f, err := scratch.Make(r.Scratch, r.User, programs(r.Version))
	return &initializer{f, r.Version}, err
}

// serve runs the server to its end: in bootstrap mode it ends with its input,
// else with the SHUTDOWN of its init file.
func (w *initializer) serve(ctx context.Context, name string, options []string, stdin string) error {
	argv := append([]string{
		conf.ServerPath(w.version.BinDir), "--no-defaults", "--datadir=" + w.Seen(w.Data()),
		"--basedir=" + filepath.Dir(w.version.BinDir), "--lc-messages-dir=" + conf.ShareDir(w.version.BinDir),
		"--log-warnings=0", "--tmpdir=" + w.Seen(w.Dir),
	}, options...)
	if w.User == nil && os.Geteuid() == 0 {
		argv = append(argv, "--user=root") // It refuses root unless told so.
	}
	_, err := w.Run(ctx, proc.Tool{Name: name, Argv: argv, Stdin: []byte(stdin)})
	return err
}

// bootstrap runs statements without accounts, network or plugins. The first
// error ends the server, so success means all of them. It takes one statement
// per semicolon at the end of a line.
func (w *initializer) bootstrap(ctx context.Context, statements string, options ...string) error {
	return w.serve(ctx, "mariadbd --bootstrap", append([]string{"--bootstrap"}, options...), statements)
}

// answer runs one SELECT, written with %s for the place of INTO OUTFILE, and
// returns its only column, one string a row.
func (w *initializer) answer(ctx context.Context, query string, run func(ctx context.Context, statements string) error) ([]string, error) {
	const name = "answer"
	into := fmt.Sprintf("INTO OUTFILE %s FIELDS ESCAPED BY ''", sqltext.Literal(w.Seen(filepath.Join(w.Dir, name))))
	if err := run(ctx, fmt.Sprintf(query, into)+";\n"); err != nil {
		return nil, err
	}
	raw, err := volume.ReadFile(filepath.Join(w.Dir, name))
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
	w, err := openInitializer(engine.TemplateRequest{Version: v, Scratch: scratch})
	if err != nil {
		return nil, err
	}
	defer w.Remove()
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
