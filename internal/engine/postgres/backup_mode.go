package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/volume"
)

// backupMode is one stay in backup mode. Positions in the log are in the server's
// notation, as 1/A0000028.
type backupMode struct {
	slot                 string
	start, end           string
	firstLog, lastLog    string // names of segments
	timeline             int
	position             kurabe.LogPosition // of end
	label, tablespaceMap string
}

// startBackup has the server checkpoint at once and go into backup mode. The slot
// keeps the log from then on; it is temporary, so it ends with the session.
func startBackup(ctx context.Context, conn *pgx.Conn) (*backupMode, error) {
	b, err := holdBackupLog(ctx, conn)
	if err != nil {
		return nil, err
	}
	err = conn.QueryRow(ctx, "SELECT lsn::text, pg_catalog.pg_walfile_name(lsn) FROM pg_catalog.pg_backup_start($1, true) AS lsn", backupLabel).
		Scan(&b.start, &b.firstLog)
	return b, err
}

// holdBackupLog has the server keep its log from its last checkpoint on.
func holdBackupLog(ctx context.Context, conn *pgx.Conn) (*backupMode, error) {
	var low [8]byte
	rand.Read(low[:]) // never fails since Go 1.24
	// It reserves log from the last checkpoint on, which is not after our start.
	b := &backupMode{slot: slotPrefix + hex.EncodeToString(low[:])}
	_, err := conn.Exec(ctx, "SELECT pg_catalog.pg_create_physical_replication_slot($1, true, true)", b.slot)
	if err != nil {
		return nil, fmt.Errorf("hold the log: %w", err)
	}
	return b, nil
}

// stop ends backup mode. The server is not asked to wait for an archive: the slot
// holds the log until it is copied.
func (b *backupMode) stop(ctx context.Context, conn *pgx.Conn) error {
	err := conn.QueryRow(ctx, "SELECT lsn::text, labelfile, spcmapfile FROM pg_catalog.pg_backup_stop(false)").
		Scan(&b.end, &b.label, &b.tablespaceMap)
	if err != nil {
		return err
	}
	if err := b.readLabel(); err != nil {
		return err
	}
	s, err := askSegments(ctx, conn)
	if err != nil {
		return err
	}
	end, err := wal.ParseLSN(b.end)
	if err != nil {
		return err
	}
	b.endAt(s, end)
	return nil
}

// endAt says where the last record of the copy ends.
func (b *backupMode) endAt(s wal.Segments, end wal.LSN) {
	b.end = end.String()
	b.position = s.Position(uint32(b.timeline), end)
	// The last record ends before this position, which can be the first byte of a
	// segment that does not exist yet. pg_walfile_name would not do: from 17 on it
	// names that one.
	b.lastLog = s.Position(uint32(b.timeline), end-1).File
}

// askSegments asks a server for the size of its segments.
func askSegments(ctx context.Context, conn *pgx.Conn) (wal.Segments, error) {
	var bytes int64
	err := conn.QueryRow(ctx, "SELECT setting::bigint FROM pg_catalog.pg_settings WHERE name = 'wal_segment_size'").Scan(&bytes)
	if err != nil {
		return wal.Segments{}, err
	}
	return wal.NewSegments(bytes)
}

// warmLog reads the segment that the server writes to. At the end of backup mode the
// server fills the rest of it with zeros, up to 16 MiB at once, and every commit
// waits meanwhile: less long when the page cache has the pages already. Nothing is lost
// without it.
func warmLog(ctx context.Context, conn *pgx.Conn, dataDir string) {
	var name string
	err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn())").Scan(&name)
	if err != nil || !wal.SegmentName.MatchString(name) {
		return
	}
	// The folder is the engine's user's: a pipe of that name must not hold us.
	f, err := volume.Open(filepath.Join(dataDir, wal.Dir, name))
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(f, wal.SegmentBytesMax)) // it is about time only
}

var labelTimeline = regexp.MustCompile(`(?m)^START TIMELINE: (\d+)$`)

func (b *backupMode) readLabel() error {
	m := labelTimeline.FindStringSubmatch(b.label)
	if m == nil {
		return errors.New("the server's backup label names no timeline")
	}
	var err error
	b.timeline, err = strconv.Atoi(m[1])
	return err
}

// write puts the label where a start on the copy looks for it. Without it the
// server would begin at the wrong checkpoint and be silently damaged.
func (b *backupMode) write(dir string) ([]volume.File, error) {
	label, err := writeFile(dir, labelFile, []byte(b.label))
	if err != nil || strings.TrimSpace(b.tablespaceMap) == "" {
		return []volume.File{label}, err
	}
	return nil, errors.New("the server's backup has tablespaces")
}

// copyLog copies the segments of the backup, and the histories of timelines. One
// that is missing would be noticed at a restore only, so it is an error here.
func copyLog(ctx context.Context, dataDir, dir string, b *backupMode, l *logRescue) ([]volume.File, bool, error) {
	wanted, have := map[string]bool{}, map[string]bool{}
	for name := range l.files {
		have[name] = true
	}
	from, to := filepath.Join(dataDir, wal.Dir), filepath.Join(dir, wal.Dir)
	entries, err := volume.ReadDir(from)
	if err != nil {
		return nil, false, err
	}
	for _, e := range entries {
		name := e.Name()
		segment := wal.SegmentName.MatchString(name) && name >= b.firstLog && name <= b.lastLog && !have[name]
		if segment || strings.HasSuffix(name, ".history") {
			wanted[name], have[name] = true, true
		}
	}
	if err := l.whole(b.firstLog, b.lastLog, have); err != nil {
		return nil, false, err
	}
	// The folder is there, empty, as the rest was copied.
	for _, path := range []string{filepath.Join(to, "archive_status"), filepath.Join(to, "summaries"), to} {
		if err := volume.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, false, err
		}
	}
	files, cloned, err := volume.Transfer(ctx, from, to, volume.TransferOptions{Skip: func(rel string) bool { return !wanted[rel] }})
	if err != nil {
		return nil, false, err
	}
	if len(files) != len(wanted) {
		return nil, false, fmt.Errorf("%d of %d segments were copied", len(files), len(wanted))
	}
	saved, err := l.deliver(to)
	if err != nil {
		return nil, false, err
	}
	files = append(files, saved...)
	for n := range files {
		files[n].Path = filepath.Join(wal.Dir, files[n].Path)
	}
	return files, cloned && l.cloned, volume.Mkdir(filepath.Join(to, "archive_status"), 0o700)
}

// Rewritten implements engine.Copier: segments are used again.
func (d *Driver) Rewritten() []string { return []string{wal.Dir + "/*"} }

var _ engine.Copier = (*Driver)(nil)

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
