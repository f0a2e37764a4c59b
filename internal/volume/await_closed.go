package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// closedPoll is how often a file is asked about that is still written.
const closedPoll = time.Millisecond

// AwaitClosed returns when nobody has a file open for writing, and no write of it is
// under way. A process that is gone does not mean that: what it has handed to the
// kernel by io_uring is written all the same (64 MiB: up to 90 ms after a kill, Linux
// 6.18), and would go over what its successor has written since. Such a write holds the
// file open, which a lease tells (fcntl(2), F_SETLEASE: a read lease is given only when
// there is no writer). Nobody else may open the file meanwhile.
func AwaitClosed(ctx context.Context, path string) error {
	file, err := Open(path)
	if err != nil {
		return err
	}
	defer file.Close() // which gives the lease back
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	ticker := time.NewTicker(closedPoll)
	defer ticker.Stop()
	for {
		_, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EAGAIN):
			return awaitDirect(path)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is still written by another process: %w", path, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// awaitDirect is for where there are no leases: without the capability, for a file of
// somebody else's. Allocating what is allocated changes nothing, and waits for the
// direct writes that are under way, on ext4 and XFS.
func awaitDirect(path string) error {
	file, err := OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	err = unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, 1)
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return &fs.PathError{Op: "fallocate", Path: path, Err: err}
	}
	return nil
}
