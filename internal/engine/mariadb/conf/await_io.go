package conf

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"kurabe/internal/volume"
)

// settleMost is how long the writes of a dead server may take: a disk that hangs for
// longer is one on which no server should be started.
const settleMost = time.Minute

// AwaitWrites returns when nothing that an earlier server has begun to write reaches the data any
// more. InnoDB writes its pages by io_uring, and a server that was killed leaves writes behind, which would land while the next one
// recovers: an older page over a newer one. An init system that waits for seconds never
// sees this.
func AwaitWrites(ctx context.Context, dataDir string) error {
	ctx, cancel := context.WithTimeout(ctx, settleMost)
	defer cancel()
	return volume.WalkDir(dataDir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !entry.Type().IsRegular() || !IsInnoDBFile(entry.Name()) && !strings.HasPrefix(entry.Name(), RedoLog):
			return nil
		}
		if err := volume.AwaitClosed(ctx, path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
}
