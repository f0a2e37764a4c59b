package engine

import (
	"context"
	"errors"
	"time"

	"kurabe"
)

// Replicator has servers follow another one. Every method is idempotent
// and takes its time limit from ctx; caFile is the certificate of the authority that
// signed those of all members.
type Replicator interface {
	// IsFollower reads from the data folder whether its server will follow, without
	// asking it.
	IsFollower(h Home) bool
	// Clone makes the data folder a copy of the source's, whose server runs. There is none
	// before; it appears by a rename, complete, as one of a server that follows.
	Clone(ctx context.Context, i Instance, caFile string) error
	// Rejoin makes the data folder of a server that has ended, and may have written alone,
	// one that can follow the source. It may find what an earlier try has left that was cut
	// off. ErrRebuild when only a clone helps.
	Rejoin(ctx context.Context, i Instance, caFile string) error
	// Promote makes the running follower a writer, and returns when it takes writes.
	Promote(ctx context.Context, i Instance) error
	// Followers makes a slot for each of Role.Followers and removes those of others.
	Followers(ctx context.Context, i Instance) error
	// Waits makes the running server wait for Role.WaitFor, which it has loaded, and
	// returns when every commit does.
	Waits(ctx context.Context, i Instance) error
	// OpenWatch opens a session by which a running server can be looked at.
	OpenWatch(ctx context.Context, i Instance) (Watcher, error)
	// CommittedAlone counts the transactions that are committed in the data folder and are
	// not in the log of the source. Its server has ended, and nothing was done to the data
	// since. ErrUncounted when nobody can tell.
	CommittedAlone(ctx context.Context, i Instance, caFile string) (int64, error)
	// EaseStop has the running server write out now what a clean stop would have to.
	EaseStop(ctx context.Context, i Instance) error
	// LogEnd is where the log of a server ends that was stopped cleanly, in the unit of
	// RoleView.Position. It is read from the data folder.
	LogEnd(ctx context.Context, i Instance) (int64, error)
	// Hold returns when the running follower, which has loaded that it is to follow nobody,
	// gets nothing any more, and how far its log is: in the unit of RoleView.Position.
	Hold(ctx context.Context, i Instance) (position int64, err error)
	// LastWord is a moment of CLOCK_BOOTTIME, in nanoseconds, after which the running server,
	// which was promoted, has given no proof to anybody that it follows, nor has another
	// follower whose log is no longer; 0 when none is known.
	LastWord(ctx context.Context, i Instance) (at int64, err error)
}

// Refuser is a Replicator whose server acknowledges commits on its way down that no
// follower has answered for, or dies of them, while clients are in. Another one ends their
// sessions itself when it stops.
type Refuser interface {
	// RefuseClients lets no client into a running writer any more, and ends the sessions of
	// those that are in. It loads nothing else: what comes may be for another process.
	RefuseClients(ctx context.Context, i Instance) error
}

// ErrUncounted says that it cannot be known what a server has committed alone.
var ErrUncounted = errors.New("what was committed here alone cannot be counted")

// Comparer is a Replicator whose read replicas cannot tell by themselves that they can go on
// after their source.
type Comparer interface {
	// Compare returns nil when the log of the running replica goes on in that of its source,
	// and ErrRebuild when only a clone helps.
	Compare(ctx context.Context, i Instance, caFile string) error
}

// SourceProber is a Replicator that can ask a follower's source whether a clone can be made
// of it.
type SourceProber interface {
	// ProbeSource fails unless the source answers this member, and writes.
	ProbeSource(ctx context.Context, i Instance, caFile string) error
}

// Watcher looks at one running server again and again, over one session. After an error it
// is of no more use but to be closed.
type Watcher interface {
	Look(ctx context.Context) (RoleView, error)
	Close()
}

// Prover is a Watcher that does not find out by itself whether followers follow at a moment
// that we choose, but on request, since that costs the server a little each time.
type Prover interface {
	Prove(on bool)
}

// RoleView is what a server says of its replication. Positions are the engine's own, and
// grow.
type RoleView struct {
	// Writing: it is no follower; clients may still be kept out (Applied.Held). Following:
	// its log comes in now, from the source of the assignment.
	Writing   bool
	Following bool
	// Paused: a follower applies nothing before it is restarted, since its source has more of
	// a limit than it (max_connections for example).
	Paused bool
	// Position is how far its log is durable: of a writer what it has flushed, of a
	// follower what it has received and flushed.
	Position int64
	// Applied is how far a follower has applied its log, so that clients see it.
	Applied int64
	// Kept is how far a follower has its log for good: that survives a death of its server, or
	// of its machine.
	Kept int64
	// Lag is how old what a follower shows is, by its own word: 0 when it knows of nothing that is
	// left to apply, LagUnknown when it cannot tell.
	Lag time.Duration
	// Inserted is the end of what a writer has written, flushed or not.
	Inserted int64
	// WaitsFor are those whose answer a commit waits for, as the server was told last. That
	// every commit does so by now is certain only of Observation.WaitsFor.
	WaitsFor  []kurabe.InstanceID
	Followers map[kurabe.InstanceID]FollowerView
	// Slots are the members for whom a writer holds its log back while they are away; nil of
	// an engine that does not do that for each of them.
	Slots []kurabe.InstanceID
	// Asks are followers on other hosts that wait for a copy of this server (Feeder).
	Asks []Ask
}

// LagUnknown is the Lag of a follower that cannot tell.
const LagUnknown time.Duration = -1

// FollowerView is what a writer knows of one follower.
type FollowerView struct {
	Streaming bool
	Flushed   int64
	Replayed  int64         // how far it has applied what it has
	HeardAgo  time.Duration // since its last answer
	// FollowedAt is a moment at or before which we asked, and the follower has answered that
	// it follows this server: nanoseconds of CLOCK_BOOTTIME, 0 when none is known.
	FollowedAt int64
	// Lost: log that it lacks was given up. It can catch up no more, and must be cloned.
	Lost bool
}

// ErrRebuild says that the data of a server cannot be made that of a follower.
var ErrRebuild = errors.New("the data cannot be rewound; it must be cloned")

// OpenWatch opens a session by which the running server of a group can be looked at.
func (l *Lifecycle) OpenWatch(ctx context.Context, a kurabe.Assignment) (Watcher, error) {
	i, err := l.informed(a)
	if err != nil {
		return nil, err
	}
	return l.c.Driver.OpenWatch(ctx, i)
}

// Fence ends the server of an instance at once, also one that hangs. What it leaves is a
// death: the next start has to be ordered.
func (l *Lifecycle) Fence(ctx context.Context, a kurabe.Assignment) error {
	i, err := l.informed(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, shortStep)
	defer cancel()
	return l.endNow(ctx, i)
}
