package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/parameter"
	"kurabe/internal/volume"
)

// ReadCatalog implements engine.Driver. It asks a scratch server with every
// offered module loaded, so that the modules' parameters are in it too.
func (d *Driver) ReadCatalog(ctx context.Context, r engine.TemplateRequest) (kurabe.Catalog, error) {
	modules, err := installedModules(r.Version)
	if err != nil {
		return kurabe.Catalog{}, fmt.Errorf("read catalogue: %w", err)
	}
	rows, err := readSettings(ctx, r, modules)
	if err != nil {
		return kurabe.Catalog{}, fmt.Errorf("read catalogue: %w", err)
	}
	return kurabe.Catalog{
		Engine: kurabe.Postgres, Version: r.Version.Version, Family: r.Version.Family,
		Parameters: parameter.Describe(rows, parameter.Offer{Modules: modules, Extensions: r.Version.Extensions}), Demands: parameter.Demands,
	}, nil
}

// installedModules are the modules on offer whose library exists.
func installedModules(v kurabe.EngineVersion) ([]string, error) {
	lib := filepath.Join(filepath.Dir(v.BinDir), "lib")
	if _, err := os.Stat(lib); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(parameter.Modules), func(name string) bool {
		_, err := os.Stat(filepath.Join(lib, name+".so"))
		return err != nil
	}), nil
}

// readSettings makes a cluster, asks it and throws it away.
func readSettings(ctx context.Context, r engine.TemplateRequest, modules []string) ([]parameter.Setting, error) {
	w, err := openInitializer(r)
	if err != nil {
		return nil, err
	}
	defer w.Remove()
	if err := w.initdb(ctx, defaultLocale); err != nil {
		return nil, err
	}
	const answer = "settings.json"
	err = w.singleUser(ctx, single{
		database: "postgres",
		settings: []string{"shared_preload_libraries=" + strings.Join(modules, ",")},
		statements: []string{fmt.Sprintf(`COPY (SELECT pg_catalog.row_to_json(s) FROM (
	SELECT name, unit, category, short_desc, context, vartype, min_val, max_val, enumvals, boot_val
	FROM pg_catalog.pg_settings) s) TO %s`, quoteLiteral(w.Seen(filepath.Join(w.Dir, answer))))},
	})
	if err != nil {
		return nil, err
	}
	raw, err := volume.ReadFile(filepath.Join(w.Dir, answer))
	if err != nil {
		return nil, err
	}
	return parameter.DecodeSettings(raw)
}

// Demands implements engine.Demander.
func (d *Driver) Demands() kurabe.Demands { return parameter.Demands }
