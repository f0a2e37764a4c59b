package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
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
	if w.user == nil {
		return w, nil
	}
	if err := volume.Give(dir, *engine.OwnerFor(w.user)); err != nil {
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

func (w *workshop) close() {
	_ = volume.RemoveAll(w.dir) // Scratch; the next start of the service finds no use in it.
	_ = volume.Remove(filepath.Dir(w.dir))
	if w.seen != w.dir {
		_ = os.Remove(w.seen)
	}
}

// data is the data folder in the making.
func (w *workshop) data() string { return filepath.Join(w.dir, "data") }

func (w *workshop) run(ctx context.Context, name string, argv []string, stdin string) error {
	tool := proc.Tool{
		Name: name, Argv: append([]string{filepath.Join(w.version.BinDir, argv[0])}, argv[1:]...),
		Env: toolEnv(), Dir: w.dir, User: w.user, Stdin: []byte(stdin), Seclude: engine.Seclude(w.user, programs(w.version), w.seen),
	}
	if w.seen != w.dir {
		tool.BindAs, tool.BindFrom = w.seen, w.dir
	}
	_, err := proc.Run(ctx, tool)
	return err
}

func (w *workshop) initdb(ctx context.Context, locale string) error {
	return w.run(ctx, "initdb", append([]string{
		"initdb", "--pgdata=" + filepath.Join(w.seen, "data"), "--username=" + adminRole,
		"--encoding=UTF8", "--data-checksums", "--auth-local=peer", "--auth-host=reject",
		"--no-instructions", "--no-sync", // Synced once when complete.
	}, localeArgs(locale)...), "")
}

// single is one run of the server in single-user mode.
type single struct {
	database   string
	statements []string
	settings   []string // name=value
}

// singleUser runs statements as the bootstrap superuser. The first error ends
// the server, so success means all of them.
func (w *workshop) singleUser(ctx context.Context, s single) error {
	argv := []string{"postgres", "--single", "-j", "-D", filepath.Join(w.seen, "data")}
	settings := append([]string{"exit_on_error=on", "search_path=pg_catalog", "log_checkpoints=off", "fsync=off"}, s.settings...)
	for _, setting := range settings {
		argv = append(argv, "-c", setting)
	}
	// With -j a statement ends at a semicolon and an empty line.
	input := strings.Join(s.statements, ";\n\n") + ";\n\n"
	if err := w.run(ctx, "postgres --single", append(argv, s.database), input); err != nil {
		return fmt.Errorf("run statements in %s: %w", s.database, err)
	}
	return nil
}
