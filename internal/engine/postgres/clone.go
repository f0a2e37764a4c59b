package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
	"kurabe/internal/faultpoint"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

var _ engine.SourceProber = (*Driver)(nil)

// Clone implements engine.Driver: pg_basebackup, with the log of that time streamed
// beside it. The slot of this member holds the log from before the copy begins until the
// new follower asks for it.
func (d *Driver) Clone(ctx context.Context, i engine.Instance, caFile string) error {
	source, err := sourceOf(i)
	if err != nil {
		return fmt.Errorf("clone: %w", err)
	}
	if _, err := volume.Lstat(i.Home.DataDir()); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clone %s: there is a data folder already: %w", source.ID, errors.Join(err, fs.ErrExist))
	}
	fresh := i.Home.FreshDir()
	if err := removeFresh(ctx, i.Home.Dir, fresh); err != nil {
		return fmt.Errorf("clone %s: remove what an earlier try left: %w", source.ID, err)
	}
	if err := d.copySource(ctx, i, caFile, fresh); err != nil {
		// Half a copy is of no use, and its space is not ours to keep.
		return fmt.Errorf("clone %s: %w", source.ID, errors.Join(err, volume.RemoveTree(i.Home.Dir, fresh)))
	}
	faultpoint.Reach("before", "name-clone")
	// What was between two states is gone.
	if err := unmark(i.Home); err != nil {
		return fmt.Errorf("clone %s: %w", source.ID, err)
	}
	if err := volume.Rename(fresh, i.Home.DataDir()); err != nil {
		return fmt.Errorf("clone %s: %w", source.ID, err)
	}
	return volume.SyncDir(i.Home.Dir)
}

// probeTime is what a source may take to answer: one that hangs is none.
const probeTime = 5 * time.Second

// ProbeSource implements engine.SourceProber.
func (d *Driver) ProbeSource(ctx context.Context, i engine.Instance, caFile string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	conn, err := d.sourceConn(ctx, i, caFile)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	recovering, err := inRecovery(ctx, conn)
	if err == nil && recovering && !reads(i) { // a replica may follow a replica
		err = fmt.Errorf("%w: the source does not write", engine.ErrNotReady)
	}
	return err
}

// removeFresh also ends a tool that a service which died has left.
func removeFresh(ctx context.Context, home, fresh string) error {
	if err := proc.KillSurvivors(ctx, fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return volume.RemoveTree(home, fresh)
}

func (d *Driver) copySource(ctx context.Context, i engine.Instance, caFile, fresh string) error {
	if err := d.renewSlot(ctx, i, caFile); err != nil {
		return fmt.Errorf("hold the log: %w", err)
	}
	uid, gid := os.Getuid(), os.Getgid()
	if i.User != nil {
		uid, gid = i.User.UID, i.User.GID
	}
	if err := volume.EnsureDir(fresh, 0o700, uid, gid); err != nil {
		return err
	}
	// The tool has the source check each page, and syncs what it has written.
	err := memberTool(ctx, i, proc.Tool{Dir: fresh, Argv: []string{
		"pg_basebackup", "--pgdata=" + seenPath(i, fresh), "--dbname=" + toolInfo(i, caFile), "--wal-method=stream", "--slot=" + ownName(i),
		"--checkpoint=fast", "--label=" + backupLabel, "--no-manifest", "--no-password",
	}})
	if err != nil {
		return err
	}
	if err := refuseTablespaces(fresh); err != nil {
		return err
	}
	if err := d.Adopt(i, fresh); err != nil {
		return err
	}
	return putStandbySignal(fresh, i.User)
}

// renewSlot makes the slot of this member in the source. One that is there may have lost
// its log, which is why there is a new copy to be made.
func (d *Driver) renewSlot(ctx context.Context, i engine.Instance, caFile string) error {
	conn, err := d.sourceConn(ctx, i, caFile)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	name := ownName(i)
	var whole bool
	err = conn.QueryRow(ctx, `SELECT restart_lsn IS NOT NULL AND wal_status IS DISTINCT FROM 'lost'
		FROM pg_catalog.pg_replication_slots WHERE slot_name = $1`, name).Scan(&whole)
	switch {
	case err == nil && whole:
		return nil
	case err == nil:
		if _, err = conn.Exec(ctx, "SELECT pg_catalog.pg_drop_replication_slot($1)", name); err != nil {
			return err
		}
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	return makeSlot(ctx, conn, name)
}

// putStandbySignal makes a data folder that of a follower, for good.
func putStandbySignal(dataDir string, user *proc.Credential) error {
	root, err := volume.OpenRoot(dataDir)
	if err != nil {
		return err
	}
	defer root.Close()
	file, err := root.OpenFile(standbyFile, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if owner := engine.OwnerFor(user); owner != nil {
		err = owner.Own(file)
	}
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return volume.SyncDir(dataDir)
}
