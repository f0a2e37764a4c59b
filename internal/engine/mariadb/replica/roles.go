package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
)

// errBroken is what becomes of a follower that can follow no more. Its data must not
// become a writer's either.
var errBroken = errors.New("its data must be copied from the source again")

// Assume makes a running server what its role says, as far as statements do it. What ends
// or begins the role of a writer is Promote's.
func (r *Roles) Assume(ctx context.Context, a *guard.Session, i engine.Instance) error {
	if i.Role == nil {
		return nil
	}
	state, err := ReadFollowing(i.Home)
	switch {
	case err != nil:
		return err
	case state != nil && state.Rebuild != "":
		return fmt.Errorf("%w: %s", errBroken, state.Rebuild)
	case role.Follows(i):
		return r.follow(ctx, a, i)
	case role.Holds(i) && state != nil:
		return r.receiveNothing(ctx, a, i, *state)
	case state != nil:
		return fmt.Errorf("%w: it follows, and has not been promoted", engine.ErrNotReady)
	case role.Writes(i):
		err = openWrites(ctx, a, i)
	}
	if err == nil && role.KeepsOut(i) {
		err = endSessions(ctx, a)
	}
	return err
}

// openWrites lets a server of a group write: each is started without that, because one
// that was told to write may be a follower still.
func openWrites(ctx context.Context, a *guard.Session, i engine.Instance) error {
	rows, err := a.Query(ctx, "SELECT @@GLOBAL.read_only, @@GLOBAL.event_scheduler")
	if err != nil {
		return err
	}
	if rows[0][0] != "0" {
		if err := a.Exec(ctx, "SET GLOBAL read_only = 0"); err != nil {
			return fmt.Errorf("let it write: %w", err)
		}
	}
	want := "OFF"
	if conf.IsOn(i.Settings[conf.EventScheduler]) && !role.KeepsOut(i) {
		want = "ON"
	}
	return setScheduler(ctx, a, rows[0][1], want)
}

func setScheduler(ctx context.Context, a *guard.Session, have, want string) error {
	if strings.EqualFold(have, want) || strings.EqualFold(have, "DISABLED") {
		return nil
	}
	if err := a.Exec(ctx, "SET GLOBAL event_scheduler = "+want); err != nil {
		return fmt.Errorf("set the scheduler of events: %w", err)
	}
	return nil
}

// Roles changes the roles of servers, and looks at them. The zero value is ready.
type Roles struct{ locks sync.Map } // by home, a *sync.Mutex

// roleLock is held while the role of a server changes: what looks at it must not set a
// follower going again that is being promoted.
func (r *Roles) roleLock(h engine.Home) *sync.Mutex {
	lock, _ := r.locks.LoadOrStore(h.Dir, &sync.Mutex{})
	return lock.(*sync.Mutex)
}
