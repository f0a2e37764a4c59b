package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/faultpoint"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// rewindMark lies beside a data folder while pg_rewind writes in it. Where it is found, the
// folder may be half of one server and half of another.
const rewindMark = ".rewinding"

func markPath(h engine.Home) string { return h.DataDir() + rewindMark }

func unmark(h engine.Home) error {
	if err := volume.Remove(markPath(h)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return volume.SyncDir(h.Dir)
}

// Rejoin implements engine.Driver: what this server wrote that the source does not have
// is taken back by pg_rewind. The file that makes it a follower is written last, so where
// that is, an earlier try came through.
func (d *Driver) Rejoin(ctx context.Context, i engine.Instance, caFile string) error {
	source, err := sourceOf(i)
	if err != nil {
		return fmt.Errorf("rejoin: %w", err)
	}
	if !d.IsFollower(i.Home) {
		err = d.rejoin(ctx, i, caFile)
	}
	if err == nil {
		err = unmark(i.Home)
	}
	if err != nil {
		return fmt.Errorf("rejoin %s: %w", source.ID, err)
	}
	return nil
}

func (d *Driver) rejoin(ctx context.Context, i engine.Instance, caFile string) error {
	switch _, err := volume.Lstat(markPath(i.Home)); {
	case err == nil:
		return fmt.Errorf("%w: pg_rewind was interrupted", engine.ErrRebuild)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	own, err := d.finishLog(ctx, i)
	if err != nil {
		return err
	}
	if err := d.prepareSource(ctx, i, caFile, own.timeline); err != nil {
		return err
	}
	if err := d.rewind(ctx, i, caFile); err != nil {
		return err
	}
	if err := d.sourceHolds(ctx, i, caFile, own); err != nil {
		return err
	}
	if err := d.Adopt(i, i.Home.DataDir()); err != nil {
		return err
	}
	return putStandbySignal(i.Home.DataDir(), i.User)
}

// keepLog are settings of a recovery whose log is needed afterwards, back to the last
// checkpoint that both servers have: else the checkpoint at its end would remove that.
var keepLog = []line{{"wal_keep_size", "1TB"}}

// finishLog has a private server recover the data of one that was not shut down cleanly,
// which pg_rewind demands, and says where it ended. pg_rewind could do that itself, and
// would lose the log. The private server holds the lock of the instance: while it lives,
// also after us, no other can start.
func (d *Driver) finishLog(ctx context.Context, i engine.Instance) (own control, err error) {
	p, err := d.openPrivate(ctx, i, i.Home.DataDir())
	if err != nil {
		return control{}, damaged(err)
	}
	defer func() { err = errors.Join(err, p.close()) }()
	p.Daemon.Lock = i.Home.LockFile()
	if p.control.state != controlShutDown && p.control.state != controlShutDownFollower {
		err = p.run(ctx, keepLog, nil)
	}
	return p.control, damaged(err)
}

// damaged makes a rebuild of what no other recovery would do better.
func damaged(err error) error {
	if said := (*recoveryError)(nil); errors.As(err, &said) {
		return fmt.Errorf("%w: %w", engine.ErrRebuild, err)
	}
	return err
}

// freshTimelineMajor is the first version whose pg_rewind sees the timeline of a source that
// has had no checkpoint since it was promoted. An older one takes it for the one before,
// finds nothing to do, and leaves this server's own rows in place.
const freshTimelineMajor = 16

// prepareSource makes sure that the source can be compared with. Each promotion begins a
// timeline, so one that was promoted since this server wrote writes a later one. If it does
// not, the two wrote the same places of the log: the source died between its last step as a
// follower and its first as a writer. Nothing tells then where they part.
func (d *Driver) prepareSource(ctx context.Context, i engine.Instance, caFile string, own uint32) error {
	conn, err := d.sourceConn(ctx, i, caFile)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	var recovering bool
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_is_in_recovery()").Scan(&recovering); err != nil {
		return err
	}
	if recovering {
		return fmt.Errorf("%w: the source does not write yet", engine.ErrNotReady)
	}
	var at, file string
	var saved int64
	err = conn.QueryRow(ctx, `SELECT f.at::text, pg_catalog.pg_walfile_name(f.at), c.timeline_id
		FROM pg_catalog.pg_current_wal_insert_lsn() AS f(at), pg_catalog.pg_control_checkpoint() c`).Scan(&at, &file, &saved)
	if err != nil {
		return err
	}
	_, writes, err := end(at, file)
	if err != nil {
		return err
	}
	if writes <= own {
		return fmt.Errorf("%w: the source writes timeline %d, and this server wrote timeline %d", engine.ErrRebuild, writes, own)
	}
	if saved < int64(writes) && majorOf(i.Version) < freshTimelineMajor {
		return checkpoint(ctx, conn)
	}
	return nil
}

func checkpoint(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("checkpoint on the source: %w", err)
	}
	return nil
}

// unreached is said before anything was written.
var unreached = regexp.MustCompile(`connection to server .* failed|could not connect to server`)

// rewind marks the folder, and leaves the mark for the caller to remove when all is done.
func (d *Driver) rewind(ctx context.Context, i engine.Instance, caFile string) error {
	data, mark := i.Home.DataDir(), markPath(i.Home)
	if err := volume.AtomicWrite(mark, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o600); err != nil {
		return err
	}
	faultpoint.Reach("after", "mark-rewind")
	err := d.runRewind(ctx, i, caFile)
	faultpoint.Reach("after", "rewind")
	failed := (*proc.ToolError)(nil)
	switch {
	case err == nil:
		return refuseTablespaces(data)
	case errors.Is(err, proc.ErrLockHeld), errors.As(err, &failed) && unreached.MatchString(failed.Stderr):
		return errors.Join(err, unmark(i.Home))
	case failed != nil:
		return fmt.Errorf("%w: %w", engine.ErrRebuild, err)
	}
	return err
}

// runRewind copies whole files, all of the source's log among them, and syncs everything at its
// end: commits of a writer on the same disk waited for a second behind 0.7 GB of that.
func (d *Driver) runRewind(ctx context.Context, i engine.Instance, caFile string) error {
	data := i.Home.DataDir()
	behind, stop := context.WithCancel(ctx)
	var writing sync.WaitGroup
	writing.Go(func() { volume.WriteBehind(behind, data) })
	defer func() {
		stop()
		writing.Wait()
	}()
	return memberTool(ctx, i, proc.Tool{Dir: data, LockFile: i.Home.LockFile(), Argv: []string{
		"pg_rewind", "--target-pgdata=" + seenPath(i, data), "--no-ensure-shutdown",
		"--source-server=" + toolInfo(i, caFile, line{"dbname", adminDatabase}),
	}})
}

// rewoundFrom is where pg_rewind says in the data folder that the recovery has to begin.
var rewoundFrom = regexp.MustCompile(`(?m)^START WAL LOCATION: ([0-9A-F]+/[0-9A-F]+) `)

// sourceHolds makes sure that the source has all of the log that the rewound server will ask
// for, and keeps it until it does: else that would ask in vain for ever, and would not even
// come up far enough to say so. Where nothing had to be rewound, there is no file that says
// where to begin, and it goes on from its own end, which is not before its last checkpoint.
func (d *Driver) sourceHolds(ctx context.Context, i engine.Instance, caFile string, own control) error {
	needs := own.checkpoint
	label, err := volume.ReadFile(filepath.Join(i.Home.DataDir(), "backup_label"))
	if err == nil {
		from := rewoundFrom.FindSubmatch(label)
		if from == nil {
			return fmt.Errorf("%w: pg_rewind wrote no start of the recovery", engine.ErrRebuild)
		}
		needs, err = wal.ParseLSN(string(from[1]))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	conn, err := d.sourceConn(ctx, i, caFile)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	var held string
	err = conn.QueryRow(ctx, `SELECT restart_lsn::text FROM pg_catalog.pg_replication_slots
		WHERE slot_name = $1 AND restart_lsn IS NOT NULL AND wal_status IS DISTINCT FROM 'lost'`, ownName(i)).Scan(&held)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: the source has no replication slot for this server", engine.ErrRebuild)
	}
	if err != nil {
		return err
	}
	from, err := wal.ParseLSN(held)
	if err != nil {
		return err
	}
	if int64(from)/own.segments.Bytes > int64(needs)/own.segments.Bytes {
		return fmt.Errorf("%w: the source keeps its log from %s on, but this server needs it from %s", engine.ErrRebuild, from, needs)
	}
	return nil
}
