package mariadb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/volume"
)

// rotatedForm is the hour in the name of a finished log, as RDS writes it:
// mysql-error.log.2026-11-21.04.
const rotatedForm = "2006-01-02.15"

// RotateLogs gives the logs the hour of now as the end of their names and has the
// server begin new ones. A log that this hour's name is taken for stays, so it
// may be called as often as one likes. Removing old ones is the caller's.
func (d *Driver) RotateLogs(ctx context.Context, i engine.Instance, now time.Time) error {
	for _, name := range []string{conf.ErrorLog, conf.SlowLog, conf.GeneralLog} {
		path := filepath.Join(i.Home.LogDir(), name)
		if err := rename(path, path+"."+now.UTC().Format(rotatedForm)); err != nil {
			return fmt.Errorf("rotate logs: %w", err)
		}
	}
	err := guard.With(ctx, i, func(a *guard.Session) error {
		return a.ExecAll(ctx, "FLUSH LOCAL ERROR LOGS", "FLUSH LOCAL SLOW LOGS", "FLUSH LOCAL GENERAL LOGS")
	})
	if err != nil {
		return fmt.Errorf("rotate logs: %w", err)
	}
	return nil
}

// rename leaves alone what is absent, empty or done.
func rename(from, to string) error {
	info, err := volume.Lstat(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || info.Size() == 0 {
		return err
	}
	if _, err := volume.Lstat(to); err == nil {
		return nil
	}
	return volume.Rename(from, to)
}
