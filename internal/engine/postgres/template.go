package postgres

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// MakeTemplate implements engine.Driver: initdb, then the service's roles and
// database in single-user mode, which needs no socket, port or password and
// ends with a clean shutdown. The folder gets its name when it is complete.
func (d *Driver) MakeTemplate(ctx context.Context, r engine.TemplateRequest) error {
	if !slices.Contains(r.Version.Locales, r.Locale) {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "PostgreSQL %s has no character set %q here", r.Version.Version, r.Locale)
	}
	w, err := openInitializer(r)
	if err != nil {
		return fmt.Errorf("make template: %w", err)
	}
	defer w.Remove()
	if err := w.initdb(ctx, r.Locale); err != nil {
		return fmt.Errorf("make template: %w", err)
	}
	statements := slices.Concat(roleSQL(majorOf(r.Version)), adminDatabaseSQL())
	if err := w.singleUser(ctx, single{database: "postgres", statements: statements}); err != nil {
		return fmt.Errorf("make template: roles: %w", err)
	}
	if err := w.singleUser(ctx, single{database: adminDatabase, statements: slices.Concat(probeTableSQL(), markerTableSQL())}); err != nil {
		return fmt.Errorf("make template: own database: %w", err)
	}
	if err := errors.Join(bareSettings(w.Data(), engine.OwnerFor(w.User)), volume.SyncFS(w.Dir)); err != nil {
		return fmt.Errorf("make template: %w", err)
	}
	if err := volume.Rename(w.Data(), r.Dir); err != nil {
		return fmt.Errorf("make template: %w", err)
	}
	return nil
}

// bareSettings removes what initdb guessed. The server is always started with
// the rendered files; one started by hand without them admits nobody.
func bareSettings(dir string, owner *volume.Owner) error {
	files := map[string]string{
		"postgresql.conf":      "# Kurabe renders the settings of an instance into its conf folder.\nlisten_addresses = ''\n",
		"postgresql.auto.conf": "# ALTER SYSTEM is not used.\n",
		"pg_hba.conf":          "local all all reject\n",
		"pg_ident.conf":        "",
	}
	for name, text := range files {
		if err := volume.WriteNew(filepath.Join(dir, name), []byte(text), 0o600, owner); err != nil {
			return err
		}
	}
	return nil
}
