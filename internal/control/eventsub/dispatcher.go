package eventsub

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

const (
	// turnEvents bounds the events that one turn looks at, turnSize the transaction from which on it
	// takes no further event: one event may add a notification for each subscription.
	turnEvents = 1000
	turnSize   = store.TxnOpsMax - MaxSubscriptions - 30
	// behindMax is how many events a subscription may be behind. The store keeps the newest
	// store.EventCountMax, so that what is given up is still there to be counted.
	behindMax  = store.EventCountMax / 2
	retryPause = 200 * time.Millisecond
)

// Dispatcher queues events for the topics of their subscriptions.
type Dispatcher struct {
	scope.Scope
	Log *slog.Logger
	// Source returns the ARN of an event's source and its tags.
	Source func(kurabe.Event) (arn string, tags []kurabe.Tag)
}

// Run dispatches until ctx ends, which is when the term of the fence does.
func (d *Dispatcher) Run(ctx context.Context, fence store.Fence) {
	wake, stop := d.View.SubscribeDeliveries() // a topic whose queue was full may have room again
	defer stop()
	for ctx.Err() == nil {
		moved, err := d.turn(ctx, fence)
		switch {
		case moved:
			continue
		case err != nil && ctx.Err() == nil:
			d.Log.Warn("events not dispatched, tried again", logkey.Error, err)
			select {
			case <-time.After(retryPause):
			case <-ctx.Done():
			}
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
		}
	}
}

// turn queues what it can in one transaction, and says whether it has come any further.
func (d *Dispatcher) turn(ctx context.Context, fence store.Fence) (bool, error) {
	t := d.begin()
	if len(t.subscriptions) == 0 {
		return false, nil
	}
	for key := range maps.Clone(t.cursor.Behind) {
		t.catchUp(key)
	}
	t.pass()
	if !t.moved {
		return false, nil
	}
	revision, err := t.change.PutEventCursor(t.cursor, t.read).RequireElected(fence).Commit(ctx, d.KV)
	if err != nil {
		return false, err
	}
	return true, d.View.WaitRevision(ctx, revision)
}

// turn is a transaction in the making.
type turn struct {
	*Dispatcher
	subscriptions map[string]kurabe.EventSubscription
	keys          []string // of the subscriptions, sorted
	cursor        kurabe.EventCursor
	read          int64 // where the cursor was written last
	change        *store.Change
	moved         bool
	now           time.Time
}

func (d *Dispatcher) begin() *turn {
	r := d.View.EventCursor()
	t := &turn{
		Dispatcher: d, subscriptions: map[string]kurabe.EventSubscription{}, cursor: r.Value, read: r.ModRevision,
		change: store.NewChange(), now: d.Now().UTC(),
	}
	t.cursor.Behind = maps.Clone(t.cursor.Behind)
	// What is older than every subscription is passed without a look.
	oldest := kurabe.EventPlace{}
	for _, s := range d.View.EventSubscriptions() {
		t.subscriptions[s.Value.Key()] = s.Value
		t.keys = append(t.keys, s.Value.Key())
		if len(t.keys) == 1 || s.Value.Since.Compare(oldest) < 0 {
			oldest = s.Value.Since
		}
	}
	if len(t.keys) > 0 && r.ModRevision == 0 && oldest.Revision == 0 {
		oldest = d.View.LastEvent() // the state is that of a backup: what it has was told before it
	}
	if t.cursor.Passed.Compare(oldest) < 0 {
		t.cursor.Passed, t.moved = oldest, len(t.keys) > 0 && r.ModRevision == 0
	}
	return t
}

// queue queues an event for a subscription if that wants it, and says false when its topic has no
// room.
func (t *turn) queue(s kurabe.EventSubscription, e store.PlacedEvent) bool {
	return e.Place.Compare(s.Since) < 0 || !s.Matches(e.Event) || t.change.Notify(t.View, t.notification(e.Event, s.TopicARN, t.now))
}

// pass goes through the events that no subscription has passed.
func (t *turn) pass() {
	for _, e := range t.View.EventsAfter(t.cursor.Passed, turnEvents) {
		if t.change.Size() > turnSize {
			return
		}
		for _, key := range t.keys {
			if _, behind := t.cursor.Behind[key]; !behind && !t.queue(t.subscriptions[key], e) {
				t.put(key, t.cursor.Passed)
			}
		}
		t.cursor.Passed, t.moved = e.Place, true
	}
}

// catchUp goes on with a subscription that is behind. What is behind by too much is given up, and
// counted with what else found no room.
func (t *turn) catchUp(key string) {
	s, there := t.subscriptions[key]
	place := t.cursor.Behind[key]
	for _, e := range t.View.EventsAfter(place, turnEvents) {
		switch {
		case !there || e.Place.Compare(t.cursor.Passed) > 0:
			t.caughtUp(key)
			return
		case t.change.Size() > turnSize:
			return
		case t.queue(s, e):
		case t.View.EventCountAfter(place) > behindMax || t.now.Sub(e.At) > store.EventAgeMax-time.Hour:
			t.change.NotifyOrCount(t.View, t.notification(e.Event, s.TopicARN, t.now))
		default:
			return
		}
		place = e.Place
		t.put(key, place)
	}
	if place.Compare(t.cursor.Passed) >= 0 || len(t.View.EventsAfter(place, 1)) == 0 {
		t.caughtUp(key)
	}
}

func (t *turn) put(key string, place kurabe.EventPlace) {
	if t.cursor.Behind == nil {
		t.cursor.Behind = map[string]kurabe.EventPlace{}
	}
	t.cursor.Behind[key], t.moved = place, true
}

func (t *turn) caughtUp(key string) {
	delete(t.cursor.Behind, key)
	t.moved = true
}
