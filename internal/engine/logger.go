package engine

import (
	"context"
	"errors"
	"time"

	"kurabe"
	"kurabe/internal/logstream"
)

// Logger is what a driver does for the continuous log and for bringing a restored
// data folder to a moment.
type Logger interface {
	// OpenLog looks at the log of a running server through a session of its own,
	// which lasts until Close. ErrNotReady while no server answers.
	OpenLog(ctx context.Context, i Instance) (Log, error)
	// OpenLogHolder opens a session in a running follower, by which it is told what to keep.
	OpenLogHolder(ctx context.Context, i Instance) (LogHolder, error)
	// DropLog has the running server hold back no log for us any more. It may be
	// repeated, and needs no OpenLog.
	DropLog(ctx context.Context, i Instance) error
	// Replay brings a data folder that was copied from a snapshot, and that no server
	// works on, to a moment, by a private server that nobody else can reach. When it
	// returns without error the folder is cleanly shut down and shows exactly what r
	// asks for. Any error leaves a folder that is of no use.
	Replay(ctx context.Context, i Instance, dataDir string, r ReplayRequest) error
	// Check recovers a data folder that was copied from a snapshot, and that no server
	// works on, by a private server, and looks for damage with the engine's own tools.
	Check(ctx context.Context, i Instance, dataDir string, r CheckRequest) (Checked, error)
}

// LogHolder has one running follower keep log, over one session. After an error it is of no
// more use but to be closed.
type LogHolder interface {
	// Hold has it keep the log from a position of its primary's on, and hold nothing back that
	// is older, so that the kept log can go on after a promotion. It is repeated, and does
	// nothing to a primary. What it costs is bounded as on the primary.
	Hold(ctx context.Context, from kurabe.LogPosition) error
	Close()
}

// ErrLogGone says that the server no longer has the log that was asked for: what
// follows has a gap.
var ErrLogGone = errors.New("the server has removed this part of its log")

// ErrElsewhere is what Log.Continue says of a mark whose place its server never had.
var ErrElsewhere = logstream.ErrElsewhere

// Log reads the log of one running server while it is written.
type Log = logstream.Log

// ReplayRequest says how far to go, and with what.
type ReplayRequest struct {
	// Dir holds the log as files of the engine's names, each from its offset 0 on and
	// without a gap, the last one cut at After.Position. Its content may be moved away.
	Dir string
	// Joined are folders of the same form for the servers that wrote later, in their order;
	// then After is in the last file of the last one. Each begins with a file in which, or
	// before which, is a place that the part before it has too. What a part has behind the
	// newest such place is no part of the history any more.
	Joined []string
	// From is the position of the snapshot, in the first file of Dir.
	From kurabe.LogPosition
	// At is the moment wanted: what was acknowledged by then is there, what was
	// committed later is not. Before is the newest mark that was complete by then (zero
	// when the run began later than that), After the first one that is not before it.
	At            time.Time
	Before, After kurabe.LogMark
	// BeforeIn is whose position Before has: 0 for Dir, 1 for the first of Joined.
	BeforeIn int
}

// CheckRequest says what must be found.
type CheckRequest struct {
	// Marker is the oldest time that the row of the marker table may have.
	Marker time.Time
	// Replay also brings the folder to a moment of its log before it is checked; nil:
	// only the snapshot itself is checked.
	Replay *ReplayRequest
}

// Checked is what a check found out.
type Checked struct {
	Marker   time.Time // of the row that was found
	Problems []string  // in the words of the engine's tools; none when all is well
	Notes    []string  // what was not looked at, and why
}
