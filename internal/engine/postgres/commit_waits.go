package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
)

// waitsPoll is how often it is looked whether the server has taken up whom it waits for.
const waitsPoll = 2 * time.Millisecond

// Waits implements engine.Replicator. A session does not go by its own copy of the setting
// but by a flag in shared memory, which the checkpointer sets when it has heard of the
// reload; a session that releases others goes by its own copy. So there are two things to
// be seen (DESIGN.md): that every session that releases has the new setting, and that a
// commit waits. That nobody is waited for any more needs no proof.
func (d *Driver) Waits(ctx context.Context, i engine.Instance) error {
	if i.Role == nil || len(i.Role.WaitFor) == 0 {
		return nil
	}
	err := d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		if err := waitsAsOrdered(ctx, conn, i); err != nil {
			return err
		}
		if err := releasedByThose(ctx, conn, i.Role.WaitFor); err != nil {
			return err
		}
		return d.seeCommitWait(ctx, i, conn)
	})
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	return nil
}

func waitsAsOrdered(ctx context.Context, conn *pgx.Conn, i engine.Instance) error {
	var setting string
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.current_setting('synchronous_standby_names')").Scan(&setting); err != nil {
		return err
	}
	if want := waitNames(i.Role.WaitFor); setting != want {
		return fmt.Errorf("the server's synchronous_standby_names is %q, not %q; have it load its settings first", setting, want)
	}
	return nil
}

// releasedByThose returns when no session of a member releases commits but those of whom one
// answer is wanted. Each writes into shared memory whether it is one of the list when it has
// heard of the reload: 1 is yes, of all of a list of this kind, 0 is no
// (SyncRepGetStandbyPriority). One that has not heard that others left the list counts these
// no more either, since it goes by what they have written.
func releasedByThose(ctx context.Context, conn *pgx.Conn, wanted []kurabe.InstanceID) error {
	names := make([]string, len(wanted))
	for n, id := range wanted {
		names[n] = memberName(id.Owner(), id)
	}
	return lookUntil(ctx, conn, `SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_stat_replication
		WHERE pg_catalog.starts_with(application_name, $1) AND (sync_priority > 0) <> (application_name = ANY ($2)))`, memberPrefix, names)
}

// lookUntil asks until the answer is yes.
func lookUntil(ctx context.Context, conn *pgx.Conn, question string, args ...any) error {
	ticker := time.NewTicker(waitsPoll)
	defer ticker.Stop()
	for {
		var yes bool
		if err := conn.QueryRow(ctx, question, args...).Scan(&yes); err != nil || yes {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server has not taken up the settings: %w", context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// seeCommitWait commits in a session of its own until that was seen to wait. Once one has
// waited, all do: the flag that made it wait is everybody's. What it commits leaves nothing
// behind but some bytes of log. When the follower is away it waits at once, and for long:
// so it is ended.
func (d *Driver) seeCommitWait(ctx context.Context, i engine.Instance, observer *pgx.Conn) error {
	conn, err := d.adminConn(ctx, i)
	if err != nil {
		return err
	}
	pid := int32(conn.PgConn().PID())
	committing, enough := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- commitAlways(committing, conn) }()
	seen := make(chan error, 1)
	looking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		seen <- lookUntil(looking, observer, "SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_get_activity($1) WHERE wait_event = 'SyncRep')", pid)
	}()
	select {
	case err = <-seen:
		err = errors.Join(err, d.endSession(ctx, i, pid))
		enough()
		<-ended
	case err = <-ended:
		enough()
		cancel()
		<-seen
		err = fmt.Errorf("the session whose commits were to be seen waiting has ended: %w", err)
	}
	closeConn(ctx, conn)
	return err
}

// commitAlways ends with an error only.
func commitAlways(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SET synchronous_commit = on")
	for err == nil {
		_, err = conn.Exec(ctx, "SELECT pg_catalog.pg_logical_emit_message(true, 'kurabe', ''::text)")
	}
	return err
}

// endSession ends one of our own, also one whose commit waits: its client going away would
// not.
func (d *Driver) endSession(ctx context.Context, i engine.Instance, pid int32) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTimeout)
	defer cancel()
	return d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SELECT pg_catalog.pg_terminate_backend($1)", pid)
		return err
	})
}
