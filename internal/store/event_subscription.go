package store

import (
	"slices"

	"kurabe"
)

// PutEventSubscription writes a subscription that was read at mod, 0 for a new one.
func (c *Change) PutEventSubscription(s kurabe.EventSubscription, mod int64) *Change {
	key := eventSubscriptionKey(s.Key())
	return c.Require(key, mod).put(key, s, s.Key())
}

// DeleteEventSubscription removes a subscription that was read at mod.
func (c *Change) DeleteEventSubscription(s kurabe.EventSubscription, mod int64) *Change {
	key := eventSubscriptionKey(s.Key())
	return c.Require(key, mod).Delete(key)
}

// RequireEventSubscriptionsUnwritten demands that no subscription was written after revision.
func (c *Change) RequireEventSubscriptionsUnwritten(revision int64) *Change {
	return c.RequireUnwritten(eventSubscriptions, revision)
}

// PutEventCursor writes how far events were queued, read at mod.
func (c *Change) PutEventCursor(cursor kurabe.EventCursor, mod int64) *Change {
	return c.Require(eventCursor, mod).put(eventCursor, cursor)
}

// EventSubscription returns a subscription by its key.
func (v *View) EventSubscription(key string) (Record[kurabe.EventSubscription], bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s, ok := v.state.eventSubscriptions[key]
	return s, ok
}

// EventSubscriptions returns every subscription, by key.
func (v *View) EventSubscriptions() []Record[kurabe.EventSubscription] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedByName(v.state.eventSubscriptions)
}

// EventCursor returns how far events were queued; ModRevision is 0 where none ever were.
func (v *View) EventCursor() Record[kurabe.EventCursor] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.eventCursor
}

// PlacedEvent is an event with its place.
type PlacedEvent struct {
	kurabe.Event
	Place kurabe.EventPlace
}

// putEvent brings in an event, a subscription to events, or how far events were queued.
func (s *state) putEvent(p keyParts, e Entry) error {
	switch p.kind {
	case KindEventSubscription:
		return keep(s.eventSubscriptions, p.name, e)
	case KindEventCursor:
		cursor, err := decode[kurabe.EventCursor](e)
		if err == nil {
			s.eventCursor = Record[kurabe.EventCursor]{cursor, e.ModRevision}
		}
		return err
	}
	ev, err := decode[kurabe.Event](e)
	if err != nil {
		return err
	}
	if _, again := slices.BinarySearchFunc(s.events.sorted, p.name, bySeq[*PlacedEvent]); again {
		s.committed.remove(p.name)
	}
	placed := &PlacedEvent{ev, kurabe.EventPlace{Revision: e.ModRevision, Seq: p.name}}
	s.events.put(placed, p.name)
	s.committed.put(placed)
	return nil
}

// commitOrder has events in the order of their commits, for whoever must miss none: by their times,
// those of a server whose clock is behind would come before what was read.
type commitOrder []*PlacedEvent

func byPlace(e *PlacedEvent, p kurabe.EventPlace) int { return e.Place.Compare(p) }

func (l *commitOrder) put(e *PlacedEvent) {
	at, _ := slices.BinarySearchFunc(*l, e.Place, byPlace)
	*l = slices.Insert(*l, at, e)
}

// remove looks from the front, where what is pruned is.
func (l *commitOrder) remove(seq string) {
	list := *l
	at := slices.IndexFunc(list, func(e *PlacedEvent) bool { return e.Place.Seq == seq })
	switch {
	case at < 0:
	case at == 0:
		list[0] = nil // lets go of it
		*l = list[1:]
	default:
		*l = slices.Delete(list, at, at+1)
	}
}

func (l commitOrder) after(p kurabe.EventPlace) commitOrder {
	at, found := slices.BinarySearchFunc(l, p, byPlace)
	if found {
		at++
	}
	return l[at:]
}

// EventsAfter returns the events after a place in the order of their commits, at most limit.
func (v *View) EventsAfter(p kurabe.EventPlace, limit int) []PlacedEvent {
	v.mu.RLock()
	defer v.mu.RUnlock()
	list := v.state.committed.after(p)
	out := make([]PlacedEvent, 0, min(limit, len(list)))
	for _, e := range list[:min(limit, len(list))] {
		out = append(out, *e)
	}
	return out
}

// LastEvent is the place of the newest event, zero without any.
func (v *View) LastEvent() (p kurabe.EventPlace) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if list := v.state.committed; len(list) > 0 {
		p = list[len(list)-1].Place
	}
	return p
}

// EventCountAfter is how many events are after a place.
func (v *View) EventCountAfter(p kurabe.EventPlace) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.state.committed.after(p))
}
