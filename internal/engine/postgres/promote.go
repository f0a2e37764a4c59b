package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
	"kurabe/internal/proc"
)

// promotePoll is how often a server that is being promoted is asked whether it writes.
// Clients wait meanwhile; the server's own wait would look ten times a second.
const promotePoll = 5 * time.Millisecond

// startPoll is how often it is tried to get a session of a server that starts; each try is
// a line in its log.
const startPoll = 50 * time.Millisecond

// Promote implements engine.Replicator. It does not wait for the checkpoint that follows:
// the server writes before that, and recovers without it.
func (d *Driver) Promote(ctx context.Context, i engine.Instance) error {
	if err := d.promote(ctx, i); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	return nil
}

func (d *Driver) promote(ctx context.Context, i engine.Instance) error {
	server, _, err := i.Home.Daemon().Find()
	if err != nil {
		return err
	}
	conn, err := d.awaitSession(ctx, i, server)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	recovering, err := inRecovery(ctx, conn)
	if err != nil || !recovering {
		return err
	}
	if i.Role != nil {
		// Made before the promotion, a slot holds the log from this follower's own last
		// checkpoint on, which is what the former writer needs when it was rewound. Made
		// after the checkpoint that follows, it would begin behind that. Nobody waits for
		// it: without a slot that server is cloned, and Followers says what is wrong.
		_ = makeSlots(ctx, conn, i)
	}
	// The data is whole: what is left of a rewinding of long ago says otherwise.
	if err := unmark(i.Home); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_catalog.pg_promote(false)"); err != nil {
		return err
	}
	for recovering {
		if err := pause(ctx, server, promotePoll); err != nil {
			return err
		}
		if err := endReaders(ctx, conn); err != nil {
			return err
		}
		if recovering, err = inRecovery(ctx, conn); err != nil {
			return err
		}
	}
	return nil
}

// awaitSession waits for a server that was started just now.
func (d *Driver) awaitSession(ctx context.Context, i engine.Instance, server proc.Process) (*pgx.Conn, error) {
	for {
		conn, err := d.adminConn(ctx, i)
		if err == nil || !errors.Is(err, engine.ErrNotReady) {
			return conn, err
		}
		if late := pause(ctx, server, startPoll); late != nil {
			return nil, errors.Join(late, err)
		}
	}
}

// errEnded is why there is nothing to wait for.
var errEnded = errors.New("the server has ended")

// pause returns early when the server ends, or the time is up, and says so.
func pause(ctx context.Context, server proc.Process, d time.Duration) error {
	if !server.Alive() {
		return errEnded
	}
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if server.Wait(limited) == nil {
		return errEnded
	}
	return context.Cause(ctx)
}

func inRecovery(ctx context.Context, conn *pgx.Conn) (recovering bool, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_catalog.pg_is_in_recovery()").Scan(&recovering)
	return recovering, err
}
