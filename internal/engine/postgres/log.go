package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/volume"
)

// logSlot makes the server keep its log until it is stored elsewhere.
const logSlot = "kurabe_log"

// walLog reads the log as files and asks the server, about once a second, how far
// they are durable. It is no receiver of a stream: the server wakes one of those at
// each commit, which the clients pay for (DESIGN.md).
type walLog struct {
	conn   *pgx.Conn
	reader segmentReader
}

var (
	_ engine.Logger = (*Driver)(nil)
	_ engine.Log    = (*walLog)(nil)
)

// OpenLog implements engine.Logger.
func (d *Driver) OpenLog(ctx context.Context, i engine.Instance) (engine.Log, error) {
	conn, err := d.adminConn(ctx, i)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l, err := openLog(ctx, conn, i.Home.DataDir())
	if err != nil {
		closeConn(ctx, conn)
		return nil, fmt.Errorf("open log: %w", err)
	}
	return l, nil
}

func openLog(ctx context.Context, conn *pgx.Conn, dataDir string) (*walLog, error) {
	var bytes int64
	var recovering bool
	err := conn.QueryRow(ctx, `SELECT setting::bigint, pg_catalog.pg_is_in_recovery() FROM pg_catalog.pg_settings WHERE name = 'wal_segment_size'`).
		Scan(&bytes, &recovering)
	if err != nil {
		return nil, err
	}
	if recovering {
		return nil, fmt.Errorf("%w: it is in recovery", engine.ErrNotReady)
	}
	s, err := wal.NewSegments(bytes)
	if err != nil {
		return nil, err
	}
	root, err := volume.OpenRoot(dataDir)
	if err != nil {
		return nil, err
	}
	return &walLog{conn, segmentReader{root: root, segments: s}}, nil
}

// slot is what the server says of ours.
type slot struct {
	found   bool
	usable  bool    // it still has what it promised
	restart wal.LSN // everything from there on is held back
	flushed wal.LSN // the log is durable up to there
	// timeline is the one that is written now.
	timeline uint32
}

// look asks for the slot and the end of the log in one statement.
func (l *walLog) look(ctx context.Context) (slot, error) {
	var s slot
	var restart, state *string
	var flushed, file string
	err := l.conn.QueryRow(ctx, `SELECT s.slot_name IS NOT NULL, s.restart_lsn::text, s.wal_status,
			f.at::text, pg_catalog.pg_walfile_name(f.at)
		FROM pg_catalog.pg_current_wal_flush_lsn() AS f(at)
		LEFT JOIN pg_catalog.pg_replication_slots s ON s.slot_name = $1`, logSlot).
		Scan(&s.found, &restart, &state, &flushed, &file)
	if err != nil {
		return slot{}, err
	}
	s.flushed, s.timeline, err = end(flushed, file)
	l.reader.newest = s.timeline
	if err != nil || restart == nil {
		return s, err
	}
	s.restart, err = wal.ParseLSN(*restart)
	s.usable = state != nil && *state != "lost"
	return s, err
}

// end reads a place and the timeline of the segment's name. The name itself is the
// one before or after when the place is on the border, depending on the major.
func end(at, file string) (wal.LSN, uint32, error) {
	place, err := wal.ParseLSN(at)
	var timeline uint32
	if _, nameErr := fmt.Sscanf(file, "%08X", &timeline); nameErr != nil {
		err = errors.Join(err, fmt.Errorf("the server names a segment %q", file))
	}
	return place, timeline, err
}

// Begin implements engine.Log. A slot that was made before goes on when it has kept
// its promise.
func (l *walLog) Begin(ctx context.Context) (kurabe.LogPosition, error) {
	from, found, err := l.held(ctx)
	if errors.Is(err, engine.ErrLogGone) {
		if err = makeLogSlot(ctx, l.conn, found); err == nil {
			from, _, err = l.held(ctx)
		}
	}
	if err != nil {
		return kurabe.LogPosition{}, fmt.Errorf("begin log: %w", err)
	}
	return from, nil
}

// makeLogSlot makes the slot in which the log is reserved now, and not when a receiver first
// comes: from the last checkpoint on. One that is there goes.
func makeLogSlot(ctx context.Context, conn *pgx.Conn, there bool) error {
	if there {
		if _, err := conn.Exec(ctx, "SELECT pg_catalog.pg_drop_replication_slot($1)", logSlot); err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, "SELECT pg_catalog.pg_create_physical_replication_slot($1, true, false)", logSlot)
	return err
}

// State implements engine.Log: a place is the same in the log of every server.
func (l *walLog) State(kurabe.LogPosition) string { return "" }

// held is the beginning of the oldest segment that the slot holds back.
func (l *walLog) held(ctx context.Context) (from kurabe.LogPosition, found bool, err error) {
	s, err := l.look(ctx)
	if err != nil {
		return from, false, err
	}
	if !s.usable {
		return from, s.found, fmt.Errorf("%w: its replication slot is missing", engine.ErrLogGone)
	}
	from = l.reader.segments.Position(s.timeline, l.reader.segments.Begin(s.restart))
	return from, true, l.present(from)
}

// present: the slot says what the server will not remove; the file says that it has
// not been removed before.
func (l *walLog) present(p kurabe.LogPosition) error {
	file, err := l.reader.open(p.File)
	if err != nil {
		return err
	}
	return file.Close()
}

// Resume implements engine.Log.
func (l *walLog) Resume(ctx context.Context, from kurabe.LogPosition) error {
	s, err := l.look(ctx)
	if err == nil {
		err = l.resume(s, from)
	}
	if err != nil {
		return fmt.Errorf("resume log at %s: %w", from, err)
	}
	return nil
}

func (l *walLog) resume(s slot, from kurabe.LogPosition) error {
	timeline, at, err := l.reader.segments.Place(from)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", engine.ErrLogGone, err)
	case !s.found:
		return fmt.Errorf("%w: its replication slot is missing", engine.ErrLogGone)
	case !s.usable:
		return fmt.Errorf("%w: it grew past max_slot_wal_keep_size", engine.ErrLogGone)
	case timeline != s.timeline:
		return fmt.Errorf("%w: the server writes timeline %d", engine.ErrLogGone, s.timeline)
	case at > s.flushed:
		return fmt.Errorf("%w: the server's log ends at %s", engine.ErrLogGone, s.flushed)
	case l.reader.segments.Begin(s.restart) > l.reader.segments.Begin(at):
		return fmt.Errorf("%w: its replication slot begins at %s", engine.ErrLogGone, s.restart)
	case at == s.flushed && at == l.reader.segments.Begin(at):
		return nil // The segment may not exist before its first byte does.
	}
	return l.present(l.reader.segments.Position(timeline, at))
}

// Mark implements engine.Log.
func (l *walLog) Mark(ctx context.Context) (kurabe.LogMark, error) {
	var at, file string
	mark := kurabe.LogMark{At: time.Now().UTC()}
	err := l.conn.QueryRow(ctx, `SELECT f.at::text, pg_catalog.pg_walfile_name(f.at) FROM pg_catalog.pg_current_wal_flush_lsn() AS f(at)`).
		Scan(&at, &file)
	mark.Until = time.Now().UTC()
	if err != nil {
		return kurabe.LogMark{}, fmt.Errorf("mark log: %w", err)
	}
	flushed, timeline, err := end(at, file)
	if err != nil {
		return kurabe.LogMark{}, fmt.Errorf("mark log: %w", err)
	}
	mark.Position, l.reader.newest = l.reader.segments.Position(timeline, flushed), timeline
	return mark, nil
}

// Release implements engine.Log. The server writes the slot's place down at its next
// checkpoint, before it removes a segment: a crash in between only keeps more.
func (l *walLog) Release(ctx context.Context, before kurabe.LogPosition) error {
	_, at, err := l.reader.segments.Place(before)
	if err == nil {
		// The server refuses to go back, or past the end of its log.
		_, err = l.conn.Exec(ctx, `SELECT pg_catalog.pg_replication_slot_advance(slot_name, $2::text::pg_lsn)
			FROM pg_catalog.pg_replication_slots WHERE slot_name = $1 AND restart_lsn < $2::text::pg_lsn`, logSlot, at.String())
	}
	if err != nil {
		return fmt.Errorf("release log before %s: %w", before, err)
	}
	return nil
}

// Close implements engine.Log.
func (l *walLog) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTimeout)
	defer cancel()
	return errors.Join(l.conn.Close(ctx), l.reader.root.Close())
}

// holder is the session by which a follower is told which log to keep.
type holder struct {
	conn    *pgx.Conn
	dataDir string
}

// OpenLogHolder implements engine.Logger.
func (d *Driver) OpenLogHolder(ctx context.Context, i engine.Instance) (engine.LogHolder, error) {
	conn, err := d.adminConn(ctx, i)
	if err != nil {
		return nil, fmt.Errorf("open a session to hold the log: %w", err)
	}
	return &holder{conn, i.Home.DataDir()}, nil
}

// Close implements engine.LogHolder.
func (h *holder) Close() { closeConn(context.Background(), h.conn) }

// Hold implements engine.LogHolder. The slot of a standby outlives its promotion. It moves no
// farther than what is replayed, and max_slot_wal_keep_size bounds it as on the primary.
func (h *holder) Hold(ctx context.Context, from kurabe.LogPosition) error {
	var bytes int64
	var recovering, found, lost bool
	err := h.conn.QueryRow(ctx, `SELECT c.setting::bigint, pg_catalog.pg_is_in_recovery(), s.slot_name IS NOT NULL,
			coalesce(s.wal_status = 'lost' OR s.restart_lsn IS NULL, false)
		FROM pg_catalog.pg_settings c LEFT JOIN pg_catalog.pg_replication_slots s ON s.slot_name = $1
		WHERE c.name = 'wal_segment_size'`, logSlot).Scan(&bytes, &recovering, &found, &lost)
	if err != nil || !recovering {
		return err // the session that reads a writer's log holds it
	}
	s, err := wal.NewSegments(bytes)
	if err != nil {
		return err
	}
	_, at, err := s.Place(from)
	if err != nil {
		return err
	}
	if !found || lost {
		// What is gone already cannot be held: then it need not hold anything. What has
		// not come in yet is not gone.
		ahead := false
		err := h.conn.QueryRow(ctx, "SELECT coalesce(pg_catalog.pg_last_wal_replay_lsn() < $1::text::pg_lsn, true)", at.String()).Scan(&ahead)
		if err == nil {
			err = dropLogSlot(ctx, h.conn)
		}
		if err != nil || !ahead && !hasSegment(h.dataDir, s.Position(1, at).File) {
			return err
		}
		if err := makeLogSlot(ctx, h.conn, false); err != nil {
			return err
		}
	}
	_, err = h.conn.Exec(ctx, `SELECT pg_catalog.pg_replication_slot_advance(slot_name, least($2::text::pg_lsn, pg_catalog.pg_last_wal_replay_lsn()))
		FROM pg_catalog.pg_replication_slots
		WHERE slot_name = $1 AND restart_lsn < least($2::text::pg_lsn, pg_catalog.pg_last_wal_replay_lsn())`, logSlot, at.String())
	return err
}

// DropLog implements engine.Logger.
func (d *Driver) DropLog(ctx context.Context, i engine.Instance) error {
	err := d.withAdmin(ctx, i, func(conn *pgx.Conn) error { return dropLogSlot(ctx, conn) })
	if err != nil {
		return fmt.Errorf("drop the log's slot: %w", err)
	}
	return nil
}

func dropLogSlot(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT pg_catalog.pg_drop_replication_slot(slot_name)
		FROM pg_catalog.pg_replication_slots WHERE slot_name = $1`, logSlot)
	// Another call was faster.
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == undefinedObject {
		return nil
	}
	return err
}

// hasSegment says whether a server has a segment, of whatever timeline.
func hasSegment(dataDir, name string) bool {
	const timelineDigits = 8
	entries, _ := volume.ReadDir(filepath.Join(dataDir, wal.Dir))
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), name[timelineDigits:]) })
}

// history is the lineage of a timeline, from the server's own file. A first timeline has none.
func (r *segmentReader) history(timeline uint32) (wal.Lineage, error) {
	if n := len(r.past); n > 0 && r.past[n-1].Timeline == timeline {
		return r.past, nil
	}
	var text []byte
	file, err := r.root.Open(wal.HistoryFile(timeline))
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(file, wal.HistoryBytesMost))
		err = errors.Join(err, file.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("history of timeline %d: %w", timeline, err)
	}
	past, err := wal.ParseHistory(string(text), timeline)
	if err == nil {
		r.past = past
	}
	return past, err
}

// Continue implements engine.Log. What the standby that this server was has received of the
// old timeline up to the switch it has in its own segments; what the former writer had behind
// the switch is no part of the history.
func (l *walLog) Continue(ctx context.Context, after kurabe.LogMark) (kurabe.LogPosition, error) {
	from, err := l.goOn(ctx, after.Position)
	if err != nil {
		return kurabe.LogPosition{}, fmt.Errorf("continue log after %s: %w", after.Position, err)
	}
	return from, nil
}

func (l *walLog) goOn(ctx context.Context, after kurabe.LogPosition) (from kurabe.LogPosition, err error) {
	s, err := l.reserve(ctx)
	if err != nil {
		return from, err
	}
	timeline, at, err := l.reader.segments.Place(after)
	if err != nil {
		return from, fmt.Errorf("%w: %w", engine.ErrLogGone, err)
	}
	past, err := l.reader.history(s.timeline)
	if err != nil {
		return from, err
	}
	n := past.Find(timeline)
	switch {
	case n == len(past)-1:
		// Its promotion was cut off: nothing tells where the two servers part.
		return from, fmt.Errorf("%w: this server writes timeline %d too", engine.ErrLogGone, timeline)
	case n < 0:
		return from, fmt.Errorf("%w: timeline %d did not lead to %d", engine.ErrElsewhere, timeline, s.timeline)
	case at > past[n].End:
		return from, fmt.Errorf("%w: timeline %d ended at %s", engine.ErrElsewhere, timeline, past[n].End)
	}
	segments := l.reader.segments
	begin := segments.Begin(at)
	for place := begin; place <= segments.Begin(s.restart) || place == begin; place += wal.LSN(segments.Bytes) {
		if place == s.flushed {
			break // the segment may not exist before its first byte does
		}
		// From the slot's place on the server removes nothing.
		if err := l.present(segments.Position(past.At(segments, place), place)); err != nil {
			return from, err
		}
	}
	return segments.Position(past.At(segments, begin), begin), nil
}

// reserve makes the slot, or another one in the place of one that has lost what it promised.
func (l *walLog) reserve(ctx context.Context) (slot, error) {
	s, err := l.look(ctx)
	if err != nil || s.found && s.usable {
		return s, err
	}
	if err := makeLogSlot(ctx, l.conn, s.found); err != nil {
		return s, err
	}
	return l.look(ctx)
}
