package engine

import (
	"context"
	"errors"
	"time"

	"kurabe"
)

// Replicator makes servers follow a source. Every method is idempotent and takes its time
// limit from ctx. caFile is the path of the certificate of the authority that signed the
// certificates of all members.
type Replicator interface {
	// IsFollower reads from the data folder whether its server will start as a follower. It
	// does not ask the server.
	IsFollower(h Home) bool
	// Clone makes the data folder a copy of the source's, whose server runs. The folder is
	// absent before. A rename makes it appear, complete, as the folder of a follower.
	Clone(ctx context.Context, i Instance, caFile string) error
	// Rejoin makes the data folder of a former primary fit to follow the source. The server
	// has ended, and may have committed transactions that the source lacks. The folder may
	// hold the remains of an interrupted Rejoin. It returns ErrRebuild when only a clone helps.
	Rejoin(ctx context.Context, i Instance, caFile string) error
	// Promote makes the running follower a primary, and returns when it takes writes.
	Promote(ctx context.Context, i Instance) error
	// Followers makes a slot for each member of Role.Followers and removes all other slots.
	Followers(ctx context.Context, i Instance) error
	// Waits makes every commit of the running server wait for Role.WaitFor, a setting that
	// the server has loaded. It returns when no commit goes on without waiting.
	Waits(ctx context.Context, i Instance) error
	// OpenWatch opens a session that observes a running server.
	OpenWatch(ctx context.Context, i Instance) (Watcher, error)
	// CommittedAlone counts the transactions that are committed in the data folder and absent
	// from the log of the source. The server has ended, and nothing has changed its data
	// since. It returns ErrUncounted when the number cannot be known.
	CommittedAlone(ctx context.Context, i Instance, caFile string) (int64, error)
	// EaseStop makes the running server write its changed pages now, so that a clean stop
	// takes less time.
	EaseStop(ctx context.Context, i Instance) error
	// LogEnd reads from the data folder the end of the log of a server that was stopped
	// cleanly, in the unit of RoleView.Position.
	LogEnd(ctx context.Context, i Instance) (int64, error)
	// Hold waits until the running follower receives no more log, and returns the end of its
	// log in the unit of RoleView.Position. The server has loaded settings that name no source.
	Hold(ctx context.Context, i Instance) (position int64, err error)
	// LastWord is a moment of CLOCK_BOOTTIME in nanoseconds. After it, neither the running
	// server, which was promoted, nor any follower whose log is not longer has proven to a
	// primary that it follows. It is 0 when no such moment is known.
	LastWord(ctx context.Context, i Instance) (at int64, err error)
}

// Refuser is a Replicator whose server, while it stops with clients connected, acknowledges
// commits that no follower has confirmed, or crashes on them. The servers of other engines
// end the sessions of clients themselves when they stop.
type Refuser interface {
	// RefuseClients admits no more clients to a running primary, and ends their sessions. It
	// loads no other setting: the rest of the rendered settings may be for the next process.
	RefuseClients(ctx context.Context, i Instance) error
}

// ErrUncounted says that the number of transactions that only this server has committed
// cannot be known.
var ErrUncounted = errors.New("what was committed here alone cannot be counted")

// Comparer is a Replicator whose read replicas cannot detect by themselves whether their log
// is a part of their source's.
type Comparer interface {
	// Compare returns nil when the source's log continues the log of the running replica, and
	// ErrRebuild when only a clone helps.
	Compare(ctx context.Context, i Instance, caFile string) error
}

// SourceProber is a Replicator that can ask the source of a follower whether it can be cloned.
type SourceProber interface {
	// ProbeSource returns an error unless the source answers this member and is a primary.
	ProbeSource(ctx context.Context, i Instance, caFile string) error
}

// Watcher observes one running server repeatedly, over one session. After an error the
// caller can only close it.
type Watcher interface {
	Look(ctx context.Context) (RoleView, error)
	Close()
}

// Prover is a Watcher that proves on request only that followers follow at a chosen moment,
// since each proof costs the server a small write.
type Prover interface {
	Prove(on bool)
}

// RoleView is the state of a server's replication, as the server tells it. The unit of
// positions is the engine's own; they only grow.
type RoleView struct {
	// Writing: the server is no follower; clients may still be kept out
	// (Applied.ClientsKeptOut). Following: it receives log now, from the source of the
	// assignment.
	Writing   bool
	Following bool
	// Paused: a follower applies no log until it is restarted, since a limit of its source is
	// higher than its own (max_connections for example).
	Paused bool
	// Position is the end of the durable log: of the log that a primary has flushed, or that
	// a follower has received and flushed.
	Position int64
	// Applied is the end of the log that a follower has applied, so that clients see it.
	Applied int64
	// Kept is the end of the log of a follower that survives a crash of its server or of its
	// machine.
	Kept int64
	// Lag is the age of the data that a follower shows, as the follower tells it: 0 when it
	// has applied all the log that it knows of, LagUnknown when it cannot tell.
	Lag time.Duration
	// Inserted is the end of the log that a primary has written, flushed or not.
	Inserted int64
	// WaitsFor are the members whose confirmation a commit waits for, by the settings that
	// the server has loaded. Only Observation.WaitsFor says that every commit waits already.
	WaitsFor  []kurabe.InstanceID
	Followers map[kurabe.InstanceID]FollowerView
	// Slots are the members for which a primary keeps its log while they are disconnected; nil
	// for an engine that does not keep log for each member.
	Slots []kurabe.InstanceID
	// Asks are the requests of followers on other hosts for a copy of this server (Feeder).
	Asks []Ask
}

// LagUnknown is the Lag of a follower that cannot tell.
const LagUnknown time.Duration = -1

// FollowerView is the state of one follower, as its primary knows it.
type FollowerView struct {
	Streaming bool
	Flushed   int64
	Replayed  int64         // the end of the log that it has applied
	HeardAgo  time.Duration // since its last answer
	// FollowedAt is a moment of CLOCK_BOOTTIME, in nanoseconds, no later than a question to
	// which the follower has answered that it follows this server; 0 when none is known.
	FollowedAt int64
	// Lost: the server has removed log that the follower lacks. It must be cloned.
	Lost bool
}

// ErrRebuild says that the data of a server cannot be made fit to follow its source.
var ErrRebuild = errors.New("the data cannot be rewound; it must be cloned")

// OpenWatch opens a session that observes the running server of a group.
func (l *Lifecycle) OpenWatch(ctx context.Context, a kurabe.Assignment) (Watcher, error) {
	i, err := l.instanceWithNotes(a)
	if err != nil {
		return nil, err
	}
	return l.c.Driver.OpenWatch(ctx, i)
}

// Fence ends the server of an instance at once, even when it hangs. The end counts as a
// crash: the next start has to be ordered.
func (l *Lifecycle) Fence(ctx context.Context, a kurabe.Assignment) error {
	i, err := l.instanceWithNotes(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, shortStep)
	defer cancel()
	return l.endNow(ctx, i)
}
