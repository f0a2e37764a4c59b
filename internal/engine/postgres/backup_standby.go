package postgres

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/volume"
)

const (
	// caughtUpMost is how long a follower may take to apply what its writer had written when
	// the files were copied. One of a group does so within a second.
	caughtUpMost = 30 * time.Second
	comeInMost   = 10 * time.Second
	caughtUpPoll = 20 * time.Millisecond
)

// replayedSQL is logRescue.reached of a follower.
const replayedSQL = `SELECT pg_catalog.pg_last_wal_replay_lsn()::text, pg_catalog.lpad(pg_catalog.upper(pg_catalog.to_hex(timeline_id)), 8, '0')
	FROM pg_catalog.pg_control_checkpoint()`

// CopyFollower implements engine.FollowerCopier. The writer is asked for two words: it writes
// the marker, and says how far its log is when the files are copied. One on another host is asked
// as the follower's source, by the member's certificate. The copy begins at the
// follower's newest restartpoint, since it can make no checkpoint; so there is up to a checkpoint's
// worth of log in it, which a restore has to apply. It ends at a place in the log that the
// follower has applied, and which is the same place in the writer's.
func (d *Driver) CopyFollower(ctx context.Context, writer *engine.Instance, i engine.Instance, r engine.CopyRequest) (engine.Copied, error) {
	if majorOf(i.Version) < backupMajorMin {
		return engine.Copied{}, fmt.Errorf("PostgreSQL %s is older than %d", i.Version.Version, backupMajorMin)
	}
	if err := refuseTablespaces(i.Home.DataDir()); err != nil {
		return engine.Copied{}, err
	}
	var copied engine.Copied
	err := d.withWriter(ctx, writer, i, func(conn *pgx.Conn) error {
		if err := conn.QueryRow(ctx, "SELECT pg_catalog.clock_timestamp()").Scan(&copied.MarkedAt); err != nil {
			return err
		}
		return writeMarker(ctx, conn)
	})
	if err != nil {
		return copied, fmt.Errorf("read the primary's marker: %w", err)
	}
	copied.MarkedAt = copied.MarkedAt.UTC()
	// One that hangs is not waited for: there is the writer to copy.
	limited, cancel := context.WithTimeout(ctx, comeInMost)
	conn, err := d.adminConn(limited, i)
	cancel()
	if err != nil {
		return copied, err
	}
	defer closeConn(ctx, conn)
	return d.copyFollower(ctx, conn, writer, i, r, copied)
}

// withWriter is withAdmin of the writer that a follower follows; nil: it is on another host, and
// is not waited for if it hangs.
func (d *Driver) withWriter(ctx context.Context, writer *engine.Instance, i engine.Instance, do func(*pgx.Conn) error) error {
	if writer != nil {
		return d.withAdmin(ctx, *writer, do)
	}
	ctx, cancel := context.WithTimeout(ctx, comeInMost)
	defer cancel()
	conn, err := d.sourceConn(ctx, i, filepath.Join(i.Home.TLSDir(), authorityFile))
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	return do(conn)
}

func (d *Driver) copyFollower(ctx context.Context, conn *pgx.Conn, writer *engine.Instance, i engine.Instance, r engine.CopyRequest, copied engine.Copied) (engine.Copied, error) {
	b, err := startFollowerBackup(ctx, conn)
	if err != nil {
		return copied, fmt.Errorf("begin backup mode: %w", err)
	}
	rescue, err := newRescue(ctx, conn, b, i.Home.DataDir(), r.Dir)
	if err != nil {
		return copied, fmt.Errorf("begin backup mode: %w", err)
	}
	rescue.reached = replayedSQL
	var files []volume.File
	var cloned bool
	err = rescue.during(ctx, func(ctx context.Context) (err error) {
		files, cloned, err = copyLive(ctx, i.Home.DataDir(), r)
		return err
	})
	if err != nil {
		return copied, err
	}
	copied.TakenAt = time.Now()
	written, err := d.written(ctx, writer, i)
	if err != nil {
		return copied, fmt.Errorf("read the primary's log position: %w", err)
	}
	if err := awaitReplayed(ctx, conn, i, written); err != nil {
		return copied, err
	}
	if err := b.stopFollower(ctx, conn, rescue.segments); err != nil {
		return copied, fmt.Errorf("end backup mode: %w", err)
	}
	if i.Log {
		copied.Position = b.position
	}
	label, err := b.write(r.Dir)
	if err != nil {
		return copied, err
	}
	logs, logsCloned, err := copyLog(ctx, i.Home.DataDir(), r.Dir, b, rescue)
	if err == nil {
		err = cutLog(r.Dir, rescue.segments, b, logs)
	}
	if err != nil {
		return copied, fmt.Errorf("copy the log: %w", err)
	}
	copied.Method = engine.Method(cloned && logsCloned)
	copied.Files = sorted(files, label, logs)
	return copied, writeManifest(r.Dir, copied.Files, []logRange{{b.timeline, b.start, b.end}})
}

// written is the end of all that a writer has written, also of what it has acknowledged without
// waiting for its disk.
func (d *Driver) written(ctx context.Context, writer *engine.Instance, i engine.Instance) (at wal.LSN, err error) {
	err = d.withWriter(ctx, writer, i, func(conn *pgx.Conn) error {
		var text string
		if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_current_wal_insert_lsn()::text").Scan(&text); err != nil {
			return err
		}
		s, err := askSegments(ctx, conn)
		if err != nil {
			return err
		}
		next, err := wal.ParseLSN(text)
		at = s.DropHeader(next)
		return err
	})
	return at, err
}

// startFollowerBackup is startBackup in a server that follows. Such a one names no segments.
func startFollowerBackup(ctx context.Context, conn *pgx.Conn) (*backupMode, error) {
	b, err := holdBackupLog(ctx, conn)
	if err != nil {
		return nil, err
	}
	s, err := askSegments(ctx, conn)
	if err != nil {
		return nil, err
	}
	var timeline int64
	err = conn.QueryRow(ctx, "SELECT lsn::text FROM pg_catalog.pg_backup_start($1, true) AS lsn", backupLabel).Scan(&b.start)
	if err == nil {
		err = conn.QueryRow(ctx, "SELECT timeline_id FROM pg_catalog.pg_control_checkpoint()").Scan(&timeline)
	}
	if err != nil {
		return nil, err
	}
	at, err := wal.ParseLSN(b.start)
	if err != nil {
		return nil, err
	}
	b.firstLog = s.Position(uint32(timeline), at).File
	return b, oneTimeline(ctx, conn, int(timeline))
}

// oneTimeline says whether a follower gets the timeline that its newest restartpoint is in. After
// a failover it does not until its next one: a copy would have to end in another timeline than it
// begins in.
func oneTimeline(ctx context.Context, conn *pgx.Conn, timeline int) error {
	var received int
	err := conn.QueryRow(ctx, "SELECT received_tli FROM pg_catalog.pg_stat_wal_receiver").Scan(&received)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return errors.New("it does not follow any more")
	case err != nil:
		return err
	case received != timeline:
		return fmt.Errorf("it has made no restartpoint since a failover (timeline %d after %d)", received, timeline)
	}
	return nil
}

// awaitReplayed returns when a follower has applied its log up to a place.
func awaitReplayed(ctx context.Context, conn *pgx.Conn, i engine.Instance, want wal.LSN) error {
	server, _, err := i.Home.Daemon().Find()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, caughtUpMost, fmt.Errorf("it has not applied its log up to %s within %s", want, caughtUpMost))
	defer cancel()
	for {
		have, err := replayed(ctx, conn)
		if err == nil && have < want {
			err = pause(ctx, server, caughtUpPoll)
			if err == nil {
				continue
			}
		}
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
}

func replayed(ctx context.Context, conn *pgx.Conn) (wal.LSN, error) {
	var text string
	if err := conn.QueryRow(ctx, "SELECT COALESCE(pg_catalog.pg_last_wal_replay_lsn()::text, '0/0')").Scan(&text); err != nil {
		return 0, err
	}
	return wal.ParseLSN(text)
}

// stopFollower ends backup mode. Where the files are whole is known from the server's own note
// of how far the pages are that it has written; what it has applied beyond that is in the copy
// as well.
func (b *backupMode) stopFollower(ctx context.Context, conn *pgx.Conn, s wal.Segments) error {
	if err := b.stop(ctx, conn); err != nil {
		return err
	}
	end, err := wal.ParseLSN(b.end)
	if err != nil {
		return err
	}
	have, err := replayed(ctx, conn)
	if err != nil {
		return err
	}
	first, _, err := s.Place(wal.PositionOf(b.firstLog))
	if err == nil && int(first) != b.timeline {
		err = fmt.Errorf("it begins in timeline %d, and not in %d", b.timeline, first)
	}
	if err == nil {
		err = oneTimeline(ctx, conn, b.timeline)
	}
	if err != nil {
		return err
	}
	b.endAt(s, max(end, have))
	return nil
}

// cutLog empties what lies behind the end of the copy in its last segment, which the follower
// went on to receive: a server that begins with the copy would apply that too, and its log would
// not go on where we say.
func cutLog(dir string, s wal.Segments, b *backupMode, logs []volume.File) error {
	if b.position.Offset == 0 {
		return nil
	}
	rel := filepath.Join(wal.Dir, b.position.File)
	path := filepath.Join(dir, rel)
	if err := errors.Join(volume.Truncate(path, b.position.Offset), volume.Truncate(path, s.Bytes)); err != nil {
		return err
	}
	for n := range logs {
		if logs[n].Path == rel {
			logs[n].Sum, logs[n].Summed = 0, false
			return nil
		}
	}
	return fmt.Errorf("segment %s is not in the copy", b.position.File)
}
