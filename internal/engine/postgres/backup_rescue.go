package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/volume"
)

// rescueEvery is how often complete segments are taken out of the server.
const rescueEvery = time.Second

// logRescue copies the log of a backup while its files are copied. What a slot holds
// back is bounded (max_slot_wal_keep_size): of a server that writes much, a long copy
// would need more, and the server would end our session with the slot.
type logRescue struct {
	conn     *pgx.Conn // ours alone until during returns
	slot     string
	segments wal.Segments
	from     string // the server's folder of the log
	dir      string // ours, beside the copy; absent while nothing was rescued
	first    string // name of the backup's first segment
	// reached asks for a place up to which the log is durable, and its timeline in hexadecimal.
	reached string

	rounds int
	cloned bool
	files  map[string]rescued // by name
}

// rescued is one segment and where it is.
type rescued struct {
	volume.File
	path string
}

func newRescue(ctx context.Context, conn *pgx.Conn, b *backupMode, dataDir, copyDir string) (*logRescue, error) {
	s, err := askSegments(ctx, conn)
	if err != nil {
		return nil, err
	}
	return &logRescue{
		reached: flushedSQL,
		conn:    conn, slot: b.slot, segments: s, from: filepath.Join(dataDir, wal.Dir), dir: copyDir + ".log", first: b.firstLog,
		cloned: true, files: map[string]rescued{},
	}, nil
}

// flushedSQL is logRescue.reached of a server that writes.
const flushedSQL = "SELECT pg_catalog.pg_current_wal_flush_lsn()::text, pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_flush_lsn()), 1, 8)"

// during rescues while copy runs, which is ended when that fails.
func (l *logRescue) during(ctx context.Context, copy func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		err := l.run(ctx, stop)
		if err != nil {
			cancel(err)
		}
		done <- err
	}()
	err := copy(ctx)
	close(stop)
	if failure := <-done; failure != nil && !errors.Is(failure, context.Canceled) {
		return fmt.Errorf("keep the log of the backup: %w", failure)
	}
	return err
}

func (l *logRescue) run(ctx context.Context, stop <-chan struct{}) error {
	ticker := time.NewTicker(rescueEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return nil // the copy says why
		case <-ticker.C:
			if err := l.round(ctx); err != nil {
				return err
			}
		}
	}
}

// round takes the segments that are complete and lets the server drop them.
func (l *logRescue) round(ctx context.Context) error {
	var text, timeline string
	err := l.conn.QueryRow(ctx, l.reached).Scan(&text, &timeline)
	if err != nil {
		return err
	}
	at, err := wal.ParseLSN(text)
	if err != nil {
		return err
	}
	number, err := strconv.ParseUint(timeline, 16, 32)
	if err != nil {
		return err
	}
	current := l.segments.Position(uint32(number), l.segments.Begin(at)).File
	wanted, err := l.complete(current)
	if err != nil || len(wanted) == 0 {
		return err
	}
	if err := l.take(ctx, wanted); err != nil {
		return err
	}
	_, err = l.conn.Exec(ctx, "SELECT pg_catalog.pg_replication_slot_advance($1, $2::text::pg_catalog.pg_lsn)", l.slot, l.segments.Begin(at).String())
	return err
}

// complete lists the backup's segments before the current one that were not taken yet.
func (l *logRescue) complete(current string) ([]string, error) {
	entries, err := volume.ReadDir(l.from)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if _, have := l.files[name]; !have && wal.SegmentName.MatchString(name) && name >= l.first && name < current {
			names = append(names, name)
		}
	}
	return names, nil
}

func (l *logRescue) take(ctx context.Context, wanted []string) error {
	if err := volume.Mkdir(l.dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	dir := filepath.Join(l.dir, strconv.Itoa(l.rounds))
	l.rounds++
	files, cloned, err := volume.Transfer(ctx, l.from, dir, volume.TransferOptions{Skip: func(rel string) bool { return !slices.Contains(wanted, rel) }})
	if err != nil {
		return err
	}
	if len(files) != len(wanted) {
		return fmt.Errorf("%d of %d segments were copied", len(files), len(wanted))
	}
	l.cloned = l.cloned && cloned
	for _, f := range files {
		l.files[f.Path] = rescued{f, filepath.Join(dir, f.Path)}
	}
	return nil
}

// deliver moves what was rescued into the copy's log.
func (l *logRescue) deliver(to string) ([]volume.File, error) {
	var files []volume.File
	for name, f := range l.files {
		if err := volume.Rename(f.path, filepath.Join(to, name)); err != nil {
			return nil, err
		}
		f.Path = name
		files = append(files, f.File)
	}
	return files, volume.RemoveAll(l.dir)
}

// whole says whether the segments from first to last are all there.
func (l *logRescue) whole(first, last string, have map[string]bool) error {
	timeline, at, err := l.segments.Place(kurabe.LogPosition{File: first})
	if err != nil {
		return err
	}
	for {
		name := l.segments.Position(timeline, at).File
		if !have[name] {
			return fmt.Errorf("segment %s is missing", name)
		}
		if name == last {
			return nil
		}
		if name > last {
			return fmt.Errorf("segment %s does not follow %s", last, first)
		}
		at += wal.LSN(l.segments.Bytes)
	}
}
