package mariadb

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/parameter"
	"kurabe/internal/volume"
)

// ReadCatalog implements engine.Driver. It asks a scratch server: bootstrap mode
// has no replication, and crashes on the variables of it.
func (d *Driver) ReadCatalog(ctx context.Context, r engine.TemplateRequest) (kurabe.Catalog, error) {
	w, err := d.makeData(ctx, r)
	if err != nil {
		return kurabe.Catalog{}, fmt.Errorf("read catalogue: %w", err)
	}
	defer w.Remove()
	lines, err := w.answer(ctx, parameter.VariablesQuery, w.serveOnce)
	if err != nil {
		return kurabe.Catalog{}, fmt.Errorf("read catalogue: %w", err)
	}
	variables := make([]parameter.Variable, len(lines))
	for n, text := range lines {
		if err := json.Unmarshal([]byte(text), &variables[n]); err != nil {
			return kurabe.Catalog{}, fmt.Errorf("read catalogue: decode %q: %w", text, err)
		}
	}
	return kurabe.Catalog{
		Engine: kurabe.MariaDB, Version: r.Version.Version, Family: r.Version.Family, Parameters: parameter.Describe(variables), Demands: demands,
	}, nil
}

// serveOnce starts a whole server, out of anybody's reach, which runs the
// statements and ends.
func (w *initializer) serveOnce(ctx context.Context, statements string) error {
	path := filepath.Join(w.Dir, "init.sql")
	// Of one line each: an init file has a statement per line.
	text := strings.ReplaceAll(statements, "\n ", " ") + "SHUTDOWN;\n"
	if err := volume.WriteNew(path, []byte(text), 0o644, nil); err != nil {
		return err
	}
	return w.serve(ctx, "mariadbd --init-file", []string{
		"--init-file=" + w.Seen(path), "--skip-networking", "--socket=", "--pid-file=" + w.Seen(filepath.Join(w.Dir, "mysqld.pid")),
		"--innodb-log-file-size=" + redoBytes, "--innodb-buffer-pool-size=16M",
	}, "")
}
