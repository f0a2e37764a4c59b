package postgres

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/proc"
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

func (w *initializer) run(ctx context.Context, name string, argv []string, stdin string) error {
	argv = append([]string{filepath.Join(w.version.BinDir, argv[0])}, argv[1:]...)
	_, err := w.Run(ctx, proc.Tool{Name: name, Argv: argv, Stdin: []byte(stdin)})
	return err
}

func (w *initializer) initdb(ctx context.Context, locale string) error {
	return w.run(ctx, "initdb", append([]string{
		"initdb", "--pgdata=" + w.Seen(w.Data()), "--username=" + adminRole,
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
func (w *initializer) singleUser(ctx context.Context, s single) error {
	argv := []string{"postgres", "--single", "-j", "-D", w.Seen(w.Data())}
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
