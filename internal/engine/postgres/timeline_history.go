package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
)

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
