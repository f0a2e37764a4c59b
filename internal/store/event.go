package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"kurabe"
	"slices"
	"strings"
	"time"
)

// EventAgeMax is how long an event is kept: RDS's fourteen days.
const EventAgeMax = 14 * 24 * time.Hour

// EventCountMax bounds the events that are kept, newest first. A fleet of 1000
// instances that restart daily writes 56,000 in fourteen days; at 400 bytes
// each the bound is 40 MB of memory.
const EventCountMax = 100_000

// AddEvent appends an event and gives it its Seq, which sorts by At, then by
// the event's place in this change; the random end keeps apart those of two
// changes in the same nanosecond.
func (c *Change) AddEvent(e kurabe.Event) *Change {
	e.Seq = eventSeq(e.At, c.events)
	c.events++
	key := eventKey(e.Seq)
	return c.Require(key, 0).put(key, e, e.Seq)
}

// eventSeq makes a sequence word: 16 hex digits of nanoseconds since 1970,
// which sort like the number until 2262.
func eventSeq(at time.Time, n int) string {
	var random [6]byte
	rand.Read(random[:]) // never fails
	return fmt.Sprintf("%016x-%04x-%x", max(at.UnixNano(), 0), n, random)
}

// eventSeqTime is the smallest sequence word of an event at that time.
func eventSeqTime(at time.Time) string { return fmt.Sprintf("%016x", max(at.UnixNano(), 0)) }

// PruneEvents deletes events, and entries of the history of alarms, that are older than they
// are kept or beyond their number, at most one transaction's worth, and returns how many. The
// caller calls again while the count is TxnOpsMax.
func PruneEvents(ctx context.Context, kv KV, view *View, now time.Time) (int, error) {
	keys := view.expired(now, TxnOpsMax)
	if len(keys) == 0 {
		return 0, nil
	}
	c := NewChange()
	for _, key := range keys {
		c.Delete(key)
	}
	rev, err := c.Commit(ctx, kv)
	if err != nil {
		return 0, fmt.Errorf("prune events: %w", err)
	}
	// Without the wait a second call would find the same events again.
	if err := view.WaitRevision(ctx, rev); err != nil {
		return 0, fmt.Errorf("prune events: %w", err)
	}
	return len(keys), nil
}

// timeline holds records sorted by sequence word, which is their order in time.
type timeline[T any] struct {
	sorted []moment[T]
}

// moment keeps the key's word beside the record: the key is what is deleted, whatever the
// record says.
type moment[T any] struct {
	seq   string
	value T
}

func bySeq[T any](m moment[T], seq string) int { return strings.Compare(m.seq, seq) }

// put inserts a record; nearly always at the end. Readers get copies, so the slice may grow in
// place.
func (l *timeline[T]) put(value T, seq string) {
	m := moment[T]{seq, value}
	if n := len(l.sorted); n == 0 || l.sorted[n-1].seq < seq {
		l.sorted = append(l.sorted, m)
		return
	}
	at, found := slices.BinarySearchFunc(l.sorted, seq, bySeq)
	if found {
		l.sorted[at] = m
		return
	}
	l.sorted = slices.Insert(l.sorted, at, m)
}

// remove deletes a record. The oldest go first when pruning, so the front is cut off instead
// of moved.
func (l *timeline[T]) remove(seq string) {
	at, found := slices.BinarySearchFunc(l.sorted, seq, bySeq)
	switch {
	case !found:
	case at == 0:
		l.sorted[0] = moment[T]{} // lets go of the strings
		l.sorted = l.sorted[1:]
	default:
		l.sorted = slices.Delete(l.sorted, at, at+1)
	}
}

func (l *timeline[T]) between(from, to time.Time) []T {
	at, _ := slices.BinarySearchFunc(l.sorted, eventSeqTime(from), bySeq)
	end, _ := slices.BinarySearchFunc(l.sorted, eventSeqTime(to), bySeq)
	if end <= at {
		return nil
	}
	out := make([]T, 0, end-at)
	for _, m := range l.sorted[at:end] {
		out = append(out, m.value)
	}
	return out
}

// expired returns the keys, up to limit, of the records before cutoff or beyond the newest keep.
func (l *timeline[T]) expired(cutoff time.Time, keep, limit int, key func(seq string) string) []string {
	end, _ := slices.BinarySearchFunc(l.sorted, eventSeqTime(cutoff), bySeq)
	end = min(max(end, len(l.sorted)-keep), limit)
	out := make([]string, 0, max(end, 0))
	for _, m := range l.sorted[:max(end, 0)] {
		out = append(out, key(m.seq))
	}
	return out
}
