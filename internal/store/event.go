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

// PruneEvents deletes events that are older than EventAgeMax or beyond
// EventCountMax, at most one transaction's worth, and returns how many. The
// caller calls again while the count is TxnOpsMax.
func PruneEvents(ctx context.Context, kv KV, view *View, now time.Time) (int, error) {
	seqs := view.expiredEvents(now.Add(-EventAgeMax), TxnOpsMax)
	if len(seqs) == 0 {
		return 0, nil
	}
	c := NewChange()
	for _, seq := range seqs {
		c.Delete(eventKey(seq))
	}
	rev, err := c.Commit(ctx, kv)
	if err != nil {
		return 0, fmt.Errorf("prune events: %w", err)
	}
	// Without the wait a second call would find the same events again.
	if err := view.WaitRevision(ctx, rev); err != nil {
		return 0, fmt.Errorf("prune events: %w", err)
	}
	return len(seqs), nil
}

// eventList holds events in two orders: by sequence word, which is that of time, and by their
// commits, for whoever must miss none.
type eventList struct {
	sorted, committed []*storedEvent
}

// storedEvent keeps the key's word beside the event: the key is what is
// deleted, whatever the record says.
type storedEvent struct {
	place kurabe.EventPlace
	event kurabe.Event
}

func bySeq(e *storedEvent, seq string) int { return strings.Compare(e.place.Seq, seq) }

func byPlace(e *storedEvent, p kurabe.EventPlace) int { return e.place.Compare(p) }

// insert puts an event where it belongs; nearly always at the end. Readers get
// copies, so the slice may grow in place.
func insert[T any](list []*storedEvent, e *storedEvent, at T, order func(*storedEvent, T) int) []*storedEvent {
	if n := len(list); n == 0 || order(list[n-1], at) < 0 {
		return append(list, e)
	}
	n, _ := slices.BinarySearchFunc(list, at, order)
	return slices.Insert(list, n, e)
}

// takeOut removes an event. The oldest go first when pruning, so the front is cut
// off instead of moved.
func takeOut[T any](list []*storedEvent, at T, order func(*storedEvent, T) int) ([]*storedEvent, *storedEvent) {
	n, found := slices.BinarySearchFunc(list, at, order)
	if !found {
		return list, nil
	}
	e := list[n]
	if n == 0 {
		list[0] = nil // lets go of the strings
		return list[1:], e
	}
	return slices.Delete(list, n, n+1), e
}

func (l *eventList) put(e kurabe.Event, place kurabe.EventPlace) {
	l.remove(place.Seq)
	s := &storedEvent{place, e}
	l.sorted = insert(l.sorted, s, place.Seq, bySeq)
	l.committed = insert(l.committed, s, place, byPlace)
}

func (l *eventList) remove(seq string) {
	var old *storedEvent
	if l.sorted, old = takeOut(l.sorted, seq, bySeq); old != nil {
		l.committed, _ = takeOut(l.committed, old.place, byPlace)
	}
}

func (l *eventList) firstAfter(p kurabe.EventPlace) int {
	n, found := slices.BinarySearchFunc(l.committed, p, byPlace)
	if found {
		n++
	}
	return n
}

func (l *eventList) after(p kurabe.EventPlace, limit int) []PlacedEvent {
	list := l.committed[l.firstAfter(p):]
	list = list[:min(limit, len(list))]
	out := make([]PlacedEvent, len(list))
	for n, e := range list {
		out[n] = PlacedEvent{e.event, e.place}
	}
	return out
}

func (l *eventList) between(from, to time.Time) []kurabe.Event {
	at, _ := slices.BinarySearchFunc(l.sorted, eventSeqTime(from), bySeq)
	end, _ := slices.BinarySearchFunc(l.sorted, eventSeqTime(to), bySeq)
	if end <= at {
		return nil
	}
	out := make([]kurabe.Event, 0, end-at)
	for _, s := range l.sorted[at:end] {
		out = append(out, s.event)
	}
	return out
}

func (l *eventList) expired(cutoff time.Time, limit int) []string {
	end, _ := slices.BinarySearchFunc(l.sorted, eventSeqTime(cutoff), bySeq)
	end = min(max(end, len(l.sorted)-EventCountMax), limit)
	out := make([]string, 0, max(end, 0))
	for _, s := range l.sorted[:max(end, 0)] {
		out = append(out, s.place.Seq)
	}
	return out
}
