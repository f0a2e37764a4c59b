package engine

import (
	"context"
	"path/filepath"
	"time"

	"kurabe"
	"kurabe/internal/volume"
)

// Copier is what a driver does for snapshots. All it makes is the service's; the
// caller makes it last and gives it its name.
type Copier interface {
	// CopyRunning copies the data folder of a running server so that a server
	// started on the copy has everything that was acknowledged before the call, and
	// nothing by half. Sessions go on; the server is left as it was, also when we
	// die in the middle.
	CopyRunning(ctx context.Context, i Instance, r CopyRequest) (Copied, error)
	// CopyFollower is CopyRunning of a running follower: what the copy has is what was
	// acknowledged by primary before the call, and Copied.Position is in the log of primary. A
	// server that is started on the copy, once adopted, follows nobody. It fails rather than
	// to have less, also when the follower is not one of that primary by the end. A primary on
	// another host is nil: it is the follower's source, who is asked over the network.
	CopyFollower(ctx context.Context, primary *Instance, follower Instance, r CopyRequest) (Copied, error)
	// CopyStopped copies the data folder of an instance that no server works on; the
	// caller sees to that.
	CopyStopped(ctx context.Context, i Instance, r CopyRequest) (Copied, error)
	// Seal writes into a copied data folder what the engine's own tools check it
	// with, if there is such a thing; files are all others in it.
	Seal(dataDir string, files []volume.File) error
	// Rewritten are patterns (path.Match) of the files of a data folder that the server
	// writes over in place, as its log. A clone of them does not stay one.
	Rewritten() []string
	// Adopt makes a fresh copy of a copied data folder fit for an instance of its
	// own: what belonged to the source alone is gone, what guards the engine is
	// there.
	Adopt(i Instance, dataDir string) error
	// Welcome does what Adopt cannot do in files, in the running server, before the
	// master user is made. It may be repeated.
	Welcome(ctx context.Context, i Instance) error
	// SweepCopy removes what a cut-off CopyRunning left in the home and the server,
	// unless one is under way.
	SweepCopy(ctx context.Context, i Instance) error
}

// CopyRequest asks for a copy of a data folder for keeping.
type CopyRequest struct {
	Dir string // absent before; its parent is on the file system of snapshots
	// BytesPerSecondMax bounds a copy, 0 does not.
	BytesPerSecondMax int64
	Progress          func(done, total int64) // may be nil
}

// Report tells of progress to whoever asked for it.
func (r CopyRequest) Report(done, total int64) {
	if r.Progress != nil {
		r.Progress(done, total)
	}
}

// Copied is what a copy has become.
type Copied struct {
	Files  []volume.File
	Method kurabe.SnapshotMethod
	// TakenAt is not after the moment that the copy shows.
	TakenAt time.Time
	// Position is where that moment lies in the server's log, zero when it keeps none.
	Position kurabe.LogPosition
	// MarkedAt is, of a follower whose primary is on another host, the time by that one's clock of
	// a marker which is in the copy, zero where none is known to be.
	MarkedAt time.Time
}

// Method names how a transfer was done.
func Method(cloned bool) kurabe.SnapshotMethod {
	if cloned {
		return kurabe.SnapshotCloned
	}
	return kurabe.SnapshotCopied
}

// CopyDir is where a copy is made that an engine's own tool makes: the engine's
// user can reach it as it can the data. It exists only meanwhile, and does not count
// as the instance's storage.
func (h Home) CopyDir() string { return filepath.Join(h.Dir, "copy") }
