package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
)

// receiveNothing has a follower cease to receive: from then on nothing that its source writes is
// acknowledged by its answer. What it has received it goes on applying. The note comes first, or
// who looks at the server could set it going again.
func (r *Roles) receiveNothing(ctx context.Context, a *guard.Session, i engine.Instance, state Following) error {
	lock := r.roleLock(i.Home)
	lock.Lock()
	defer lock.Unlock()
	if !state.Holds {
		state.Holds = true
		if err := WriteFollowing(i.Home.DataDir(), state); err != nil {
			return err
		}
	}
	if err := a.Exec(ctx, "STOP SLAVE IO_THREAD"); err != nil {
		return fmt.Errorf("stop the I/O thread: %w", err)
	}
	return nil
}

// Hold implements engine.Holder.
func (r *Roles) Hold(ctx context.Context, i engine.Instance) (position int64, err error) {
	lock := r.roleLock(i.Home)
	lock.Lock()
	defer lock.Unlock()
	state, err := ReadFollowing(i.Home)
	switch {
	case err != nil:
	case state == nil:
		err = errNoFollower
	case state.Position != "":
		position, err = binlog.Sequence(state.Position) // it has followed nobody yet
	case !state.Holds:
		err = fmt.Errorf("%w: its I/O thread has not stopped", engine.ErrNotReady)
	default:
		err = guard.With(ctx, i, func(a *guard.Session) error {
			position, err = heldAt(ctx, a, i)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("hold: %w", err)
	}
	return position, nil
}

// heldAt is how far a follower is that receives nothing: as far as it has received, if it has
// gone on all the time. One that was started anew knows that only when it has applied all.
func heldAt(ctx context.Context, a *guard.Session, i engine.Instance) (int64, error) {
	s, err := AskSlave(ctx, a)
	if err != nil {
		return 0, err
	}
	if s == nil || !s.usesGTID || !s.applies {
		if err := settleReceived(ctx, a, i); err != nil {
			return 0, fmt.Errorf("apply the relay log: %w", err)
		}
		return Applied(ctx, a)
	}
	if s.receives != "No" {
		return 0, fmt.Errorf("%w: it still receives", engine.ErrNotReady)
	}
	if err := synced(ctx, a); err != nil {
		return 0, err
	}
	n, err := Applied(ctx, a)
	return max(n, s.received), err
}

// SyncedQuery asks the guard, which puts on disk what was received until then.
const SyncedQuery = `SHOW GLOBAL STATUS LIKE 'Kurabe\_guard\_synced'`

var errUnsynced = errors.New("what it has received could not be put on its disk; its error log says why")

// synced returns when what the server has received is on its disk. A server whose guard is of an
// earlier service sees to that only before it answers.
func synced(ctx context.Context, a *guard.Session) error {
	rows, err := a.Query(ctx, SyncedQuery)
	switch {
	case err != nil || len(rows) == 0:
		return err
	case len(rows[0]) != 2 || !conf.IsOn(rows[0][1]):
		return errUnsynced
	}
	return nil
}

// heldUpMost is how long nothing is applied, of what there is, before clients who read are taken
// for the reason: a lock on a table or a row, or of everything.
const heldUpMost = 200 * time.Millisecond

// readers are the clients of a follower that has to come to the end of its log. Those who read
// could hold that up for as long as they like, and everybody else waits for it.
type readers struct {
	at    int64
	since time.Time
}

// mind ends their sessions, and lets no others in, once nothing is applied because of them
// perhaps. Whoever is let in again is in for what the server then is.
func (r *readers) mind(ctx context.Context, a *guard.Session, applied int64) error {
	now := time.Now()
	if r.since.IsZero() || applied != r.at {
		r.at, r.since = applied, now
		return nil
	}
	if now.Sub(r.since) < heldUpMost {
		return nil
	}
	r.since = now
	return keepOut(ctx, a)
}
