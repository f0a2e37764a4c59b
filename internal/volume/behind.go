package volume

import (
	"context"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// behindEvery is how often a folder is looked at: a fast disk takes some 20 MB meanwhile.
const behindEvery = 100 * time.Millisecond

// WriteBehind has the kernel begin to write what somebody else changes in the files below a
// folder, soon after each change, until ctx ends. A tool that writes for seconds and syncs all
// of it at its end would have the commits of databases on the same disk wait behind that. It
// is about when, not about safety, so errors are of no consequence.
func WriteBehind(ctx context.Context, dir string) {
	root, err := OpenRoot(dir)
	if err != nil {
		return
	}
	defer root.Close()
	changed := map[string]time.Time{}
	writeChanged(ctx, root, changed, false)
	tick := time.NewTicker(behindEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			writeChanged(ctx, root, changed, true)
		}
	}
}

// writeChanged notes when the files were changed last, and begins to write those that were
// since the look before. Times are compared with each other only, not with a clock.
func writeChanged(ctx context.Context, root *Root, changed map[string]time.Time, write bool) {
	_ = root.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ctx.Err() // what goes while it is looked at is of no interest
		}
		info, err := d.Info()
		if err != nil || info.ModTime().Equal(changed[path]) {
			return ctx.Err()
		}
		changed[path] = info.ModTime()
		if write {
			beginWrite(root, path)
		}
		return ctx.Err()
	})
}

func beginWrite(root *Root, path string) {
	file, err := root.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	_ = unix.SyncFileRange(int(file.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}
