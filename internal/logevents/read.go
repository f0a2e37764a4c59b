package logevents

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
)

// source is a block, or a tail, of a stream as it was at a moment.
type source struct {
	of   *stream
	ref  blockRef // of a tail only first and sum
	tail *tail
}

// sources are the parts of a stream that may have events of a time, from (inclusive) to (exclusive).
func (s *stream) sources(from, to int64) (list []source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.blocks {
		if r.sum.max >= from && r.sum.min < to {
			list = append(list, source{of: s, ref: r})
		}
	}
	if t := s.tail; t.sum.count > 0 && t.sum.max >= from && t.sum.min < to {
		list = append(list, source{s, blockRef{first: t.first, sum: t.sum, raw: t.size}, &t})
	}
	return list
}

// read reads a source into a block. ok is false when it is not there any more: it was removed, or
// is damaged, which is told.
func (r *reader) source(from source, b *Block) (ok bool, err error) {
	b.Group, b.Stream = from.of.Group, from.of.Stream
	if from.tail != nil {
		own := Block{Group: b.Group, Stream: b.Stream} // b.Text may be r's
		err = from.tail.events(&own)
		if err != nil {
			// It has become blocks, which hold what it held.
			return r.moved(from, b)
		}
		*b = own
		return true, nil
	}
	err = r.read(from.ref, b)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, errBlock):
		from.of.c.Lost(from.of.Group, from.of.Stream, from.ref.stored, "a block in "+from.ref.segment+" is damaged")
		return false, nil
	}
	return err == nil, err
}

// moved reads the blocks that a tail has become.
func (r *reader) moved(from source, b *Block) (bool, error) {
	out := Block{Group: b.Group, Stream: b.Stream, First: from.ref.first}
	last := from.ref.first + from.ref.sum.count
	from.of.mu.Lock()
	refs := slices.Clone(from.of.blocks)
	from.of.mu.Unlock()
	for _, ref := range refs {
		if ref.first < from.ref.first || ref.first >= last {
			continue
		}
		part := Block{Group: b.Group, Stream: b.Stream}
		ok, err := r.source(source{of: from.of, ref: ref}, &part)
		if err != nil {
			return false, err
		}
		for n, e := range part.Events {
			if ok && ref.first+int64(n) < last {
				out.add(Event{e.Time, e.Ingested, part.Text[e.Start:e.End]})
			}
		}
	}
	*b = out
	return len(out.Events) > 0, nil
}

// Scan calls fn with all blocks of a group's streams (nil: all) that may have events of a time,
// from (inclusive) to (exclusive), in Unix milliseconds; a block has others as well. So many workers
// run at once, each with its number; a block is valid until fn returns. An error of fn ends it.
// Blocks with the newest events come first: who wants the newest can leave out the others.
func (s *Store) Scan(ctx context.Context, group string, streams []string, from, to int64, workers int, fn func(worker int, b *Block) error) error {
	var list []source
	for _, one := range s.of(group, streams) {
		list = append(list, one.sources(from, to)...)
	}
	slices.SortFunc(list, func(a, b source) int { return cmp.Compare(b.ref.sum.max, a.ref.sum.max) })
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for w := range min(workers, len(list)) {
		all.Go(func() {
			if err := scan(ctx, list, &next, func(b *Block) error { return fn(w, b) }); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func scan(ctx context.Context, list []source, next *atomic.Int64, fn func(*Block) error) error {
	r, err := newReader()
	if err != nil {
		return err
	}
	defer r.close()
	var b Block
	for ctx.Err() == nil {
		n := int(next.Add(1)) - 1
		if n >= len(list) {
			return nil
		}
		ok, err := r.source(list[n], &b)
		if err == nil && ok {
			err = fn(&b)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Position is the place of an event in the order in which Walk gives them: by time, then by
// stream, then by number.
type Position struct {
	Time   int64
	Stream string
	Number int64 // in its stream
}

// Compare is -1, 0 or 1 where p lies before q, at it or behind it.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Time, q.Time), cmp.Compare(p.Stream, q.Stream), cmp.Compare(p.Number, q.Number))
}

// Found is an event with its place. Its message is the callee's to keep.
type Found struct {
	Position
	Ingested int64 // Unix milliseconds
	Message  []byte
}

// Walk is a reading in order.
type Walk struct {
	Group   string
	Streams []string // nil: all
	From    int64    // Unix milliseconds, inclusive
	To      int64    // exclusive
	// After, where it is not nil, is the event behind which it begins: later ones follow, or earlier
	// ones when it goes Backward.
	After    *Position
	Backward bool
}

// ErrEnough ends a Walk without an error.
var ErrEnough = errors.New("enough")

// Walk calls fn with the events of a time in order. It holds the text of those blocks in memory
// that overlap in time.
func (s *Store) Walk(ctx context.Context, w Walk, fn func(Found) error) error {
	from, to := w.From, w.To
	if w.After != nil && !w.Backward {
		from = max(from, w.After.Time)
	}
	if w.After != nil && w.Backward && w.After.Time < to {
		to = w.After.Time + 1
	}
	var list []source
	for _, one := range s.of(w.Group, w.Streams) {
		list = append(list, one.sources(from, to)...)
	}
	// near is where a source begins, in the direction of the walk.
	near := func(s source) int64 {
		if w.Backward {
			return -s.ref.sum.max
		}
		return s.ref.sum.min
	}
	slices.SortStableFunc(list, func(a, b source) int { return cmp.Compare(near(a), near(b)) })
	r, err := newReader()
	if err != nil {
		return err
	}
	defer r.close()
	walk := walking{Walk: w, from: from, to: to, fn: fn}
	for n, one := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := walk.open(r, one); err != nil {
			return err
		}
		if n+1 < len(list) {
			err = walk.give(near(list[n+1]))
		} else {
			err = walk.give(1<<63 - 1)
		}
		if errors.Is(err, ErrEnough) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// walking is a walk under way.
type walking struct {
	Walk
	from, to int64
	fn       func(Found) error
	pending  []Found // in order
}

// open adds the events of a source that belong to the walk.
func (w *walking) open(r *reader, from source) error {
	var b Block
	ok, err := r.source(from, &b)
	if err != nil || !ok {
		return err
	}
	text := slices.Clone(b.Text)
	for n, e := range b.Events {
		f := Found{Position{e.Time, b.Stream, b.First + int64(n)}, e.Ingested, text[e.Start:e.End:e.End]}
		if e.Time < w.from || e.Time >= w.to || w.After != nil && w.compare(f.Position, *w.After) <= 0 {
			continue
		}
		w.pending = append(w.pending, f)
	}
	slices.SortStableFunc(w.pending, func(a, b Found) int { return w.compare(a.Position, b.Position) })
	return nil
}

// compare is Compare in the direction of the walk.
func (w *walking) compare(a, b Position) int {
	if w.Backward {
		return b.Compare(a)
	}
	return a.Compare(b)
}

// give calls fn with the events that no source after these can have one before.
func (w *walking) give(next int64) error {
	for n, f := range w.pending {
		at := f.Time
		if w.Backward {
			at = -at
		}
		if at >= next {
			w.pending = slices.Clone(w.pending[n:])
			return nil
		}
		if err := w.fn(f); err != nil {
			return err
		}
	}
	w.pending = nil
	return nil
}

// Get reads one event.
func (s *Store) Get(group, streamName string, number int64) (Event, bool, error) {
	one := s.find(group, streamName)
	if one == nil {
		return Event{}, false, nil
	}
	r, err := newReader()
	if err != nil {
		return Event{}, false, err
	}
	defer r.close()
	for _, from := range one.sources(-1<<63, 1<<63-1) {
		if number < from.ref.first || number >= from.ref.first+from.ref.sum.count {
			continue
		}
		var b Block
		ok, err := r.source(from, &b)
		n := number - b.First
		if err != nil || !ok || n >= int64(len(b.Events)) {
			return Event{}, false, err
		}
		e := b.Events[n]
		return Event{e.Time, e.Ingested, slices.Clone(b.Text[e.Start:e.End])}, true, nil
	}
	return Event{}, false, nil
}
