package store

import (
	"slices"
	"strings"
	"time"

	"kurabe"
)

// eventList holds events sorted by sequence word, which is their order in time.
type eventList struct {
	sorted []storedEvent
}

// storedEvent keeps the key's word beside the event: the key is what is
// deleted, whatever the record says.
type storedEvent struct {
	seq   string
	event kurabe.Event
}

func bySeq(e storedEvent, seq string) int { return strings.Compare(e.seq, seq) }

// put inserts an event; nearly always at the end. Readers get copies, so the
// slice may grow in place.
func (l *eventList) put(e kurabe.Event, seq string) {
	s := storedEvent{seq, e}
	if n := len(l.sorted); n == 0 || l.sorted[n-1].seq < seq {
		l.sorted = append(l.sorted, s)
		return
	}
	at, found := slices.BinarySearchFunc(l.sorted, seq, bySeq)
	if found {
		l.sorted[at] = s
		return
	}
	l.sorted = slices.Insert(l.sorted, at, s)
}

// remove deletes an event. The oldest go first when pruning, so the front is
// cut off instead of moved.
func (l *eventList) remove(seq string) {
	at, found := slices.BinarySearchFunc(l.sorted, seq, bySeq)
	switch {
	case !found:
	case at == 0:
		l.sorted[0] = storedEvent{} // lets go of the strings
		l.sorted = l.sorted[1:]
	default:
		l.sorted = slices.Delete(l.sorted, at, at+1)
	}
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
		out = append(out, s.seq)
	}
	return out
}
