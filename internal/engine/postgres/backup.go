package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// backupMajorMin is the first version whose backup mode has the functions used here.
const backupMajorMin = 15

// backupLabel shows in backup_label and in the server's log.
const backupLabel = "kurabe"

// slotPrefix begins the name of the slot that holds the log of a backup.
const slotPrefix = "kurabe_backup_"

// CopyRunning implements engine.Copier: the files are copied in backup mode, while
// the server writes to them, and the log of that time is copied after them; recovery
// makes a whole of both. Backup mode and the slot that holds the log belong to one
// session: when we die, the server ends both.
func (d *Driver) CopyRunning(ctx context.Context, i engine.Instance, r engine.CopyRequest) (engine.Copied, error) {
	if majorOf(i.Version) < backupMajorMin {
		return engine.Copied{}, fmt.Errorf("PostgreSQL %s is older than %d", i.Version.Version, backupMajorMin)
	}
	if err := refuseTablespaces(i.Home.DataDir()); err != nil {
		return engine.Copied{}, err
	}
	var copied engine.Copied
	err := d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		// Every copy shows by its marker of when it is.
		if err := writeMarker(ctx, conn); err != nil {
			return err
		}
		b, err := startBackup(ctx, conn)
		if err != nil {
			return fmt.Errorf("begin backup mode: %w", err)
		}
		rescue, err := newRescue(ctx, conn, b, i.Home.DataDir(), r.Dir)
		if err != nil {
			return fmt.Errorf("begin backup mode: %w", err)
		}
		var files []volume.File
		var cloned bool
		err = rescue.during(ctx, func(ctx context.Context) (err error) {
			files, cloned, err = copyLive(ctx, i.Home.DataDir(), r)
			return err
		})
		if err != nil {
			return err
		}
		warmLog(ctx, conn, i.Home.DataDir())
		// Everything acknowledged by now is in the log up to where backup mode ends.
		copied.TakenAt = time.Now()
		if err := b.stop(ctx, conn); err != nil {
			return fmt.Errorf("end backup mode: %w", err)
		}
		if i.Log {
			copied.Position = b.position
		}
		written, err := b.write(r.Dir)
		if err != nil {
			return err
		}
		logs, logsCloned, err := copyLog(ctx, i.Home.DataDir(), r.Dir, b, rescue)
		if err != nil {
			return fmt.Errorf("copy the log: %w", err)
		}
		copied.Method = engine.Method(cloned && logsCloned)
		copied.Files = sorted(files, written, logs)
		return writeManifest(r.Dir, copied.Files, []logRange{{b.timeline, b.start, b.end}})
	})
	return copied, err
}

// CopyStopped implements engine.Copier. What the folder holds is what a start would
// find, so everything is copied but what speaks of a running server. Of a server that
// was not shut down cleanly the log's end is not known without a recovery, so the copy
// has no position then, and no log is replayed on it.
func (d *Driver) CopyStopped(ctx context.Context, i engine.Instance, r engine.CopyRequest) (engine.Copied, error) {
	if err := refuseTablespaces(i.Home.DataDir()); err != nil {
		return engine.Copied{}, err
	}
	copied := engine.Copied{TakenAt: time.Now()}
	if i.Log {
		var err error
		if copied.Position, err = stoppedAt(ctx, i); err != nil {
			return copied, fmt.Errorf("find the end of the log: %w", err)
		}
	}
	files, cloned, err := volume.Transfer(ctx, i.Home.DataDir(), r.Dir, volume.TransferOptions{
		Skip: leftOutStopped, BytesPerSecondMax: r.BytesPerSecondMax, Progress: r.Progress,
	})
	if err != nil {
		return copied, err
	}
	copied.Files, copied.Method = files, engine.Method(cloned)
	// Recovery, if any is needed, begins at the server's own checkpoint: there is no
	// range of log that belongs to the copy as such.
	return copied, writeManifest(r.Dir, files, nil)
}

// refuseTablespaces: a copy of the folder alone would lack their files. No user can
// make one (DESIGN.md), so this says that something is very wrong.
func refuseTablespaces(dataDir string) error {
	entries, err := volume.ReadDir(filepath.Join(dataDir, "pg_tblspc"))
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return errors.New("the data folder has tablespaces, whose files are elsewhere")
	}
	return nil
}

// controlTries bounds reading pg_control, which the server rewrites at once but not
// atomically for a reader: two torn reads in a row are rare, a hundred are damage.
const controlTries = 100

// copyLive copies the files of a running server. pg_control is last, as the manual
// asks: it then names a checkpoint that is not older than any page.
func copyLive(ctx context.Context, dataDir string, r engine.CopyRequest) ([]volume.File, bool, error) {
	files, cloned, err := volume.Transfer(ctx, dataDir, r.Dir, volume.TransferOptions{
		Live: true, Skip: leftOutLive, BytesPerSecondMax: r.BytesPerSecondMax, Progress: r.Progress,
	})
	if err != nil {
		return nil, false, err
	}
	control, err := readControl(filepath.Join(dataDir, controlFile))
	if err != nil {
		return nil, false, err
	}
	f, err := writeFile(r.Dir, controlFile, control)
	return append(files, f), cloned, err
}

func readControl(path string) ([]byte, error) {
	var err error
	for range controlTries {
		var control []byte
		if control, err = volume.ReadFile(path); err != nil {
			return nil, err
		}
		if _, err = controlCRC(control); err == nil {
			return control, nil
		}
	}
	return nil, err
}

// Adopt implements engine.Copier. The identity stays: the log of a snapshot is its
// own, and recovery needs it to match.
func (d *Driver) Adopt(i engine.Instance, dataDir string) error {
	for _, name := range []string{
		manifestFile, "postmaster.pid", "postmaster.opts", "recovery.signal", "standby.signal",
		"current_logfiles", labelDoneFile, "tablespace_map.old",
	} {
		if err := volume.Remove(filepath.Join(dataDir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("adopt: %w", err)
		}
	}
	// ALTER SYSTEM of the source, if it was ever used, ends here.
	if err := errors.Join(bareSettings(dataDir, engine.OwnerFor(i.User)), dropSlots(dataDir)); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	return nil
}

// Welcome implements engine.Copier.
func (d *Driver) Welcome(context.Context, engine.Instance) error { return nil }

// SweepCopy implements engine.Copier: nothing outlives the session.
func (d *Driver) SweepCopy(context.Context, engine.Instance) error { return nil }

// Preparations implements engine.Driver.
func (d *Driver) Preparations() []engine.Preparation {
	return []engine.Preparation{
		{What: "resume what an earlier server began", Do: func(ctx context.Context, i engine.Instance) ([]string, error) { return nil, d.resume(ctx, i) }},
		{What: "read the settings that the data needs", Do: d.floors},
	}
}

const (
	labelFile     = "backup_label"
	labelDoneFile = "backup_label.old"
)

// resume is for a server that died and may not find by itself what it was about. A server that begins with a copy renames the label as soon
// as pg_control has what it says, and recovers to where the copy ended. If it dies on the way,
// the next one recovers as after any crash: it knows from pg_control that a copy must come to
// its end, does not look for that end outside of a recovery from an archive, and gives up for
// ever with "WAL ends before end of online backup". With the label it begins again where the
// first one did. A follower is in such a recovery, and goes on by itself.
func (d *Driver) resume(ctx context.Context, i engine.Instance) error {
	dir := i.Home.DataDir()
	if d.IsFollower(i.Home) {
		return nil
	}
	label, done := filepath.Join(dir, labelFile), filepath.Join(dir, labelDoneFile)
	if _, err := volume.Lstat(label); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := volume.Lstat(done); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	c, err := ownControl(ctx, i)
	if err != nil || !c.unended {
		return err
	}
	if err := volume.Rename(done, label); err != nil {
		return fmt.Errorf("restart the recovery of a copy: %w", err)
	}
	return volume.SyncDir(dir)
}

// markerTable has one row with a time of the server's own clock, by which a restored
// copy shows of when it is. It lies where no client may enter.
const markerTable = probeSchema + ".marker"

// markerTableSQL runs in the service's database. Data folders of before it was there
// get it with their first marker.
func markerTableSQL() []string {
	return []string{
		"CREATE TABLE IF NOT EXISTS " + markerTable + " (one boolean PRIMARY KEY DEFAULT true CHECK (one), at timestamptz NOT NULL)",
	}
}

const undefinedTable = "42P01"

// writeMarker sets the row to now. The first try is without making the table, which
// would cost a notice and a lock each time.
func writeMarker(ctx context.Context, conn *pgx.Conn) error {
	const put = "INSERT INTO " + markerTable + ` AS m (one, at) VALUES (true, pg_catalog.clock_timestamp())
		ON CONFLICT (one) DO UPDATE SET at = excluded.at`
	_, err := conn.Exec(ctx, put)
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == undefinedTable {
		err = execAll(ctx, conn, append(markerTableSQL(), put))
	}
	if err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	return nil
}

// readMarker returns the zero time when no marker was ever written.
func readMarker(ctx context.Context, conn *pgx.Conn) (time.Time, error) {
	var at time.Time
	err := conn.QueryRow(ctx, "SELECT at FROM "+markerTable).Scan(&at)
	pg := (*pgconn.PgError)(nil)
	switch {
	case errors.Is(err, pgx.ErrNoRows), errors.As(err, &pg) && pg.Code == undefinedTable:
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("read the marker: %w", err)
	}
	return at.UTC(), nil
}
