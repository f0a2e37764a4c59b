package mariadb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/systemtables"
	"kurabe/internal/volume"
)

// redoBytes is the log of a template. It is what every copy copies; a server
// makes itself another of the size that its settings say when it starts.
const redoBytes = "4M"

// MakeTemplate implements engine.Driver: the system tables in bootstrap mode,
// which needs no socket, port or password and ends with a clean shutdown, then
// the triggers that guard them. The folder gets its name when it is complete.
func (d *Driver) MakeTemplate(ctx context.Context, r engine.TemplateRequest) error {
	if !slices.Contains(r.Version.Locales, r.Locale) {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "MariaDB %s has no character set %q here", r.Version.Version, r.Locale)
	}
	w, err := d.makeData(ctx, r)
	if err != nil {
		return fmt.Errorf("make template: %w", err)
	}
	defer w.Remove()
	if err := errors.Join(volume.SyncFS(w.Dir), volume.Rename(w.Data(), r.Dir)); err != nil {
		return fmt.Errorf("make template: %w", err)
	}
	return nil
}

// makeData makes a complete data folder.
func (d *Driver) makeData(ctx context.Context, r engine.TemplateRequest) (*initializer, error) {
	statements, err := systemtables.SQL(conf.ShareDir(r.Version.BinDir))
	if err != nil {
		return nil, err
	}
	w, err := openInitializer(r)
	if err != nil {
		return nil, err
	}
	err = w.bootstrap(ctx, statements,
		"--innodb-log-file-size="+redoBytes, "--innodb-checksum-algorithm=full_crc32", "--innodb-file-per-table=1",
		// A complete purge: nothing of the making is left in the undo logs.
		"--innodb-fast-shutdown=0",
		"--max-allowed-packet=16M", "--net-buffer-length=16K", "--enforce-storage-engine=")
	if err != nil {
		w.Remove()
		return nil, fmt.Errorf("system tables: %w", err)
	}
	if err := w.furnish(); err != nil {
		w.Remove()
		return nil, err
	}
	return w, nil
}

// furnish adds the files that no statement makes.
func (w *initializer) furnish() error {
	files := map[string]string{
		// mariadb-upgrade finds that there is nothing to do.
		"mysql_upgrade_info": w.version.Version + "-MariaDB",
	}
	for name, text := range guard.TriggerFiles() {
		files[filepath.Join(conf.SystemSchema, name)] = text
	}
	for name, text := range files {
		path := filepath.Join(w.Data(), name)
		if err := volume.WriteNew(path, []byte(text), 0o600, engine.OwnerFor(w.User)); err != nil {
			return err
		}
	}
	// What a bootstrap leaves for the next start to warm up with.
	if err := volume.Remove(filepath.Join(w.Data(), "ib_buffer_pool")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	temp := filepath.Join(w.Data(), conf.TempDir)
	return errors.Join(volume.Mkdir(temp, 0o700), engine.Give(temp, w.User))
}
