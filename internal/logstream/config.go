package logstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"syscall"
	"time"

	"kurabe"
	"kurabe/internal/blob"
)

// Log reads the log of one running server while it is written. One goroutine uses
// it. An error that Config.Gone does not know
// (engine.ErrLogGone) is one of the session: it is closed, and another opened.
type Log interface {
	// Begin makes the server hold its log back for us from now on and returns the
	// beginning of the oldest file that it is sure to have from then on.
	Begin(ctx context.Context) (kurabe.LogPosition, error)
	// Continue is Begin for a log that another server of the instance has written up to a
	// mark: it returns the beginning of a file from which on this server has all that was
	// written after it. ErrElsewhere when this server's history does not have the mark's
	// place, so that an older mark may do; ErrLogGone when the log behind it is gone.
	Continue(ctx context.Context, after kurabe.LogMark) (kurabe.LogPosition, error)
	// Resume makes sure that the server still has and holds back everything from
	// there on; ErrLogGone when it has not.
	Resume(ctx context.Context, from kurabe.LogPosition) error
	// Mark reads the clock, then how far the log is durable on the server's disk,
	// then the clock again.
	Mark(ctx context.Context) (kurabe.LogMark, error)
	// Copy writes the bytes of one file, from.File, from there on into w, up to to at
	// most (which may lie behind the end of that file, if it is complete), whole records
	// or pages only, and checks that they are what follows: right
	// file, right place. next is where to go on: after the bytes that were written, or
	// at offset 0 of the following file when from.File is complete. next equals from
	// when there is nothing to copy yet.
	Copy(ctx context.Context, from, to kurabe.LogPosition, w io.Writer) (next kurabe.LogPosition, err error)
	// State is LogMark.State of a place up to which Copy has come, "" where that is not known.
	State(at kurabe.LogPosition) string
	// Release lets the server drop what lies before the position.
	Release(ctx context.Context, before kurabe.LogPosition) error
	// Close ends the session. The server goes on holding its log back.
	Close() error
}

// Config of a Store. Spool, Repository and Gone are needed.
type Config struct {
	// Spool is a folder of the store's own on the disk of the instances.
	Spool string
	// Repository opens the repository, or says why that cannot be now. It is asked
	// again for each piece, so it should keep what it has opened.
	Repository func() (*blob.Repository, error)
	// Host marks the runs that are begun here. Those with another's mark in the repository
	// are left alone, until Adopt; "": there is no other host.
	Host string
	// Gone says if an error of a Log means that the server no longer has the log
	// (engine.ErrLogGone).
	Gone func(error) bool
	// Changed is told of an instance in whose log a run has its first mark or ended;
	// nil: nobody is. It must not call the store and not block.
	Changed func(kurabe.InstanceID)
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // nil: nothing is logged

	// Bounds of the spool, in bytes: of one instance (0: 1 GiB) and of all (0: 5 % of
	// the file system).
	InstanceBytesMax, SpoolBytesMax int64
	// PieceBytes closes a piece (0: 16 MiB), and so does PieceAge after its first byte
	// (0: a minute).
	PieceBytes int64
	PieceAge   time.Duration
}

const (
	defaultInstanceBytesMax = 1 << 30
	defaultSpoolPercent     = 5
	defaultPieceBytes       = 16 << 20
	defaultPieceAge         = time.Minute
)

func (c Config) complete() (Config, error) {
	switch {
	case !filepath.IsAbs(c.Spool):
		return c, fmt.Errorf("spool %q: not an absolute path", c.Spool)
	case c.Repository == nil, c.Gone == nil:
		return c, errors.New("no Repository or no Gone is given")
	case c.InstanceBytesMax < 0, c.SpoolBytesMax < 0, c.PieceBytes < 0, c.PieceAge < 0:
		return c, errors.New("a bound is negative")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Changed == nil {
		c.Changed = func(kurabe.InstanceID) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.InstanceBytesMax == 0 {
		c.InstanceBytesMax = defaultInstanceBytesMax
	}
	if c.PieceBytes == 0 {
		c.PieceBytes = defaultPieceBytes
	}
	if c.PieceAge == 0 {
		c.PieceAge = defaultPieceAge
	}
	if c.SpoolBytesMax == 0 {
		var fs syscall.Statfs_t
		if err := syscall.Statfs(c.Spool, &fs); err != nil {
			return c, fmt.Errorf("size of the spool's disk: %w", err)
		}
		c.SpoolBytesMax = int64(fs.Blocks) * fs.Bsize / 100 * defaultSpoolPercent
	}
	return c, nil
}
