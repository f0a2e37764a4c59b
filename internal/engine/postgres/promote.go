package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
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

// heldSQL says whether a follower has come to the end of all log that is there, and gets none:
// its receiver is gone, and the process that applies waits to look again whether there is
// more. What a receiver has got in is on disk when it is gone (WalRcvDie flushes), and what a
// server that was started anew has is known only by having been applied.
const heldSQL = `SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_stat_wal_receiver)
	AND EXISTS (SELECT FROM pg_catalog.pg_stat_get_activity(NULL) WHERE backend_type = 'startup' AND wait_event = 'RecoveryRetrieveRetryInterval')
	AND pg_catalog.current_setting('primary_conninfo') = ''`

// endReadersSQL ends the sessions of clients that are in the midst of a transaction, if the
// log is not applied because of one. A query may hold it up for as long as its users have said
// (max_standby_streaming_delay, 30 s unless they have), but not a server that is to take over:
// everybody else waits for that. What the process that applies waits for it does not read the
// settings anew, so no setting helps.
const endReadersSQL = `SELECT pg_catalog.count(pg_catalog.pg_terminate_backend(a.pid)) FROM pg_catalog.pg_stat_get_activity(NULL) a
	WHERE a.backend_type = 'client backend' AND a.xact_start IS NOT NULL
		AND a.usesysid <> (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = session_user)
		AND EXISTS (SELECT FROM pg_catalog.pg_stat_get_activity(NULL) s WHERE s.backend_type = 'startup'
			AND (s.wait_event LIKE 'RecoveryConflict%' OR s.wait_event_type IN ('Lock', 'BufferPin')))`

// endReaders is for a follower that is about to take over.
func endReaders(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, endReadersSQL)
	return err
}

// Hold implements engine.Holder.
func (d *Driver) Hold(ctx context.Context, i engine.Instance) (position int64, err error) {
	err = d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		if err := awaitHeld(ctx, conn); err != nil {
			return err
		}
		var at string
		err := conn.QueryRow(ctx, "SELECT GREATEST(pg_catalog.pg_last_wal_receive_lsn(), pg_catalog.pg_last_wal_replay_lsn())::text").Scan(&at)
		if err != nil {
			return err
		}
		end, err := wal.ParseLSN(at)
		position = int64(end)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("hold: %w", err)
	}
	return position, nil
}

// awaitHeld returns when a follower has applied all that it has, and gets no more.
func awaitHeld(ctx context.Context, conn *pgx.Conn) error {
	ticker := time.NewTicker(promotePoll)
	defer ticker.Stop()
	for {
		var held bool
		if err := conn.QueryRow(ctx, heldSQL).Scan(&held); err != nil || held {
			return err
		}
		if err := endReaders(ctx, conn); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the log is not applied to its end: %w", context.Cause(ctx))
		case <-ticker.C:
		}
	}
}
