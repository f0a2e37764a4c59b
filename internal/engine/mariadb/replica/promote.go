package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/faultpoint"
)

// startPoll is how often it is tried to get a session of a server that starts.
const startPoll = 20 * time.Millisecond

// Promote implements engine.Replicator. First nothing more is received: from here on the
// former writer gets no answer, so nothing that it writes is acknowledged. Then all that
// was received is applied, and the server is nobody's follower any more; that is noted, and
// only then may anybody write, so that a promotion that was cut off is never taken for one
// that came through.
func (r *Roles) Promote(ctx context.Context, i engine.Instance) error {
	if err := r.promote(ctx, i); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	return nil
}

func (r *Roles) promote(ctx context.Context, i engine.Instance) error {
	lock := r.roleLock(i.Home)
	lock.Lock()
	defer lock.Unlock()
	a, err := awaitAdmin(ctx, i)
	if err != nil {
		return err
	}
	err = r.endFollowing(ctx, a, i)
	if err == nil {
		err = openWrites(ctx, a, i)
	}
	return errors.Join(err, a.Close())
}

func (r *Roles) endFollowing(ctx context.Context, a *guard.Session, i engine.Instance) error {
	state, err := ReadFollowing(i.Home)
	switch {
	case err != nil || state == nil:
		return err
	case state.Rebuild != "":
		return fmt.Errorf("%w: %s", errBroken, state.Rebuild)
	case state.Position != "":
		return errors.New("it has never followed its source, so it lacks all writes since its copy")
	}
	if err := setSchema(i, schemaClosed); err != nil {
		return err
	}
	if err := settleReceived(ctx, a, i); err != nil {
		return fmt.Errorf("apply the relay log: %w", err)
	}
	faultpoint.Reach("after", "settle-received")
	if err := a.Exec(ctx, "RESET SLAVE ALL"); err != nil {
		return fmt.Errorf("stop following: %w", err)
	}
	return RemoveFollowing(i.Home.DataDir())
}

// awaitAdmin waits for a server that was started just now.
func awaitAdmin(ctx context.Context, i engine.Instance) (*guard.Session, error) {
	server, _, err := i.Home.Daemon().Find()
	if err != nil {
		return nil, err
	}
	for {
		a, err := guard.Open(ctx, i)
		if err == nil || !errors.Is(err, engine.ErrNotReady) {
			return a, err
		}
		if !server.Alive() {
			return nil, errors.Join(errors.New("the server has ended"), err)
		}
		limited, cancel := context.WithTimeout(ctx, startPoll)
		_ = server.Wait(limited) // returns at once when the server ends
		cancel()
		if ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}
