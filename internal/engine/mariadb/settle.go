package mariadb

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/volume"
)

// Preparations implements engine.Driver.
func (d *Driver) Preparations() []engine.Preparation {
	return []engine.Preparation{{What: "wait for what an earlier server has written", Do: func(ctx context.Context, i engine.Instance) ([]string, error) {
		return nil, d.AwaitWrites(ctx, i)
	}}}
}

// settleMost is how long the writes of a dead server may take: a disk that hangs for
// longer is one on which no server should be started.
const settleMost = time.Minute

// AwaitWrites returns when nothing that an earlier server has begun to write reaches the data any more. InnoDB writes its pages by io_uring, and a
// server that was killed leaves writes behind, which would land while the next one
// recovers: an older page over a newer one. An init system that waits for seconds never
// sees this.
func (d *Driver) AwaitWrites(ctx context.Context, i engine.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, settleMost)
	defer cancel()
	dataDir := i.Home.DataDir()
	return volume.WalkDir(dataDir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !entry.Type().IsRegular() || !conf.IsInnoDBFile(entry.Name()) && !strings.HasPrefix(entry.Name(), conf.RedoLog):
			return nil
		}
		if err := volume.AwaitClosed(ctx, path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
}
