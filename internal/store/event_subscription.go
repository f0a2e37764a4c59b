package store

import (
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

// EventsAfter returns the events after a place in the order of their commits, at most limit.
func (v *View) EventsAfter(p kurabe.EventPlace, limit int) []PlacedEvent {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.events.after(p, limit)
}

// LastEvent is the place of the newest event, zero without any.
func (v *View) LastEvent() (p kurabe.EventPlace) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if list := v.state.events.committed; len(list) > 0 {
		p = list[len(list)-1].place
	}
	return p
}

// EventCountAfter is how many events are after a place.
func (v *View) EventCountAfter(p kurabe.EventPlace) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.state.events.committed) - v.state.events.firstAfter(p)
}
