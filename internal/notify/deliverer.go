package notify

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kurabe"
	"kurabe/internal/event"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// Config is what a Deliverer needs.
type Config struct {
	KV   store.KV
	View *store.View
	Log  *slog.Logger
	Now  func() time.Time
	// URL is where the links of documents lead to: the service, as subscribers reach it.
	URL string
	// OpenSigner returns what signs, and has its certificate published.
	OpenSigner func(ctx context.Context) (*Signer, error)
	Guard      AddressGuard
	Mail       Mail
}

// Deliverer delivers while its server is the elected one.
type Deliverer struct {
	Config
	client    *http.Client
	delivered atomic.Int64
	failed    atomic.Int64
	unqueued  atomic.Int64

	signing sync.Mutex // guards opened
	opened  *Signer
}

// New returns a Deliverer; Run is a part of a term.
func New(c Config) *Deliverer { return &Deliverer{Config: c, client: newHTTPClient(c.Guard)} }

// Intervals.
const (
	// saveEvery is how long a cursor may be ahead of its record: what a crash repeats.
	saveEvery  = 200 * time.Millisecond
	sweepEvery = 30 * time.Second
	saveTime   = time.Second // of the last save of a term
	// trimBatch is how many notifications one transaction may remove; the largest have fewer
	// than partsMost parts.
	trimBatch = 100
	partsMost = 24
	// dropBatch is how many a subscription that fails gives up at once in a crowded queue.
	dropBatch = 1000
)

// term is one election's work.
type term struct {
	*Deliverer
	fence store.Fence
	moved chan struct{} // a lane has moved its cursor, or has ended

	mu      sync.Mutex // guards everything below, and the lanes
	lanes   map[kurabe.SubscriptionID]*lane
	running sync.WaitGroup
}

// Run delivers until the term ends.
func (d *Deliverer) Run(ctx context.Context, fence store.Fence) {
	t := &term{Deliverer: d, fence: fence, moved: make(chan struct{}, 1), lanes: map[kurabe.SubscriptionID]*lane{}}
	wake, stop := d.View.SubscribeDeliveries()
	defer stop()
	defer func() {
		t.running.Wait()
		// What was delivered since the last save would be delivered again. The fence still decides.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
		defer cancel()
		_ = t.save(last)
	}()
	timer := time.NewTimer(saveEvery)
	defer timer.Stop()
	var sweep time.Time
	for ctx.Err() == nil {
		t.startLanes(ctx)
		select {
		case <-ctx.Done():
			return
		case <-wake:
			continue
		case <-t.moved:
			continue
		case <-timer.C:
		}
		err := t.save(ctx)
		if err == nil && !d.Now().Before(sweep) {
			sweep = d.Now().Add(sweepEvery)
			err = t.sweep(ctx)
		}
		if err != nil && ctx.Err() == nil {
			d.Log.Warn("deliveries not stored", logkey.Error, err)
		}
		timer.Reset(saveEvery)
	}
}

// startLanes has a goroutine for each subscription that has something to be sent.
func (t *term) startLanes(ctx context.Context) {
	for _, topic := range t.View.Topics() {
		crowded := t.View.Crowded(topic.Value.ID)
		for _, sub := range t.View.Subscriptions(topic.Value.ID) {
			l := t.lane(sub.Value)
			if crowded {
				l.dropOldest(topic.Value, sub.Value)
			}
			t.mu.Lock()
			start := !l.running && l.hasWork(sub.Value)
			l.running = l.running || start
			t.mu.Unlock()
			if start {
				t.running.Go(func() { l.run(ctx, topic.Value.Name) })
			}
		}
	}
}

// lane returns that of a subscription.
func (t *term) lane(s kurabe.Subscription) *lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lanes[s.ID]
	if l == nil {
		cursor := t.View.DeliveryCursor(s)
		l = &lane{term: t, id: s.ID, topic: s.Topic, cursor: cursor, saved: cursor}
		t.lanes[s.ID] = l
	}
	return l
}

// wake makes Run look at the lanes again.
func (t *term) wake() {
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

// save writes the cursors that have moved and removes the notifications that all have passed.
func (t *term) save(ctx context.Context) error {
	topics := map[kurabe.TopicID]kurabe.Topic{}
	for _, topic := range t.View.Topics() {
		topics[topic.Value.ID] = topic.Value
	}
	for {
		change, cursors := t.moves(topics)
		if change.Empty() {
			break
		}
		if err := t.commit(ctx, change); err != nil {
			return err
		}
		t.mu.Lock()
		for id, cursor := range cursors {
			t.lanes[id].saved = cursor
		}
		t.mu.Unlock()
	}
	for id := range topics {
		if err := t.trim(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// moves returns a change with the cursors that are ahead of their records, as many as one takes,
// and what they are saved as.
func (t *term) moves(topics map[kurabe.TopicID]kurabe.Topic) (*store.Change, map[kurabe.SubscriptionID]kurabe.DeliveryCursor) {
	change, cursors := store.NewChange(), map[kurabe.SubscriptionID]kurabe.DeliveryCursor{}
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, l := range t.lanes {
		topic, there := topics[l.cursor.Topic]
		sub, known := t.View.Subscription(l.cursor.Topic, id)
		if !there || !known {
			if !l.running {
				delete(t.lanes, id) // it was deleted, and its cursor with it
			}
			continue
		}
		l.tell(change, topic, sub.Value)
		if l.cursor != l.saved && change.Size() < store.TxnOpsMax-2 {
			change.PutDeliveryCursor(l.cursor)
			cursors[id] = l.cursor
		}
	}
	return change, cursors
}

// trim removes what every confirmed subscription is done with, by their records.
func (t *term) trim(ctx context.Context, topic kurabe.TopicID) error {
	for more := true; more; {
		first := t.View.FirstQueued(topic, trimBatch)
		if len(first) == 0 {
			return nil
		}
		var cursors []kurabe.DeliveryCursor
		for _, sub := range t.View.Subscriptions(topic) { // after the queue: whoever may see it is there
			if !sub.Value.ConfirmedAt.IsZero() {
				cursors = append(cursors, t.View.DeliveryCursor(sub.Value))
			}
		}
		change := store.NewChange()
		for _, q := range first {
			waits := func(d kurabe.DeliveryCursor) bool { return !q.Behind(d) }
			if more = !slices.ContainsFunc(cursors, waits); !more || change.Size() > store.TxnOpsMax-partsMost {
				break
			}
			change.DeleteQueued(q)
		}
		if change.Empty() {
			return nil
		}
		if err := t.commit(ctx, change); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what belongs to deleted topics, and subscriptions that nobody confirmed.
func (t *term) sweep(ctx context.Context) error {
	for {
		change := store.NewChange().RemoveNotifyLeftovers(t.View)
		if change.Empty() {
			break
		}
		if err := t.commit(ctx, change); err != nil {
			return err
		}
	}
	for _, topic := range t.View.Topics() {
		for _, sub := range t.View.Subscriptions(topic.Value.ID) {
			if sub.Value.ConfirmedAt.IsZero() && sub.Value.TokenUntil.Before(t.Now()) {
				if err := t.commit(ctx, store.NewChange().DeleteSubscription(sub.Value, sub.ModRevision)); err != nil && !errors.Is(err, store.ErrConflict) {
					return err
				}
			}
		}
	}
	return nil
}

// unqueuedEvery is how often a full queue is an event, and so how much of the count a crash costs.
const unqueuedEvery = 10 * time.Second

// TellUnqueued tells of the notifications of this server for which a queue had no room: events
// and alarms cannot wait for it. It runs on every server.
func (d *Deliverer) TellUnqueued(ctx context.Context) error {
	ticker := time.NewTicker(unqueuedEvery)
	defer ticker.Stop()
	waiting := map[kurabe.TopicID]int{}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		for id, n := range d.View.TakeGivenUp() {
			waiting[id] += n
			d.unqueued.Add(int64(n))
		}
		change, told := store.NewChange(), []kurabe.TopicID{}
		for _, topic := range d.View.Topics() {
			if n := waiting[topic.Value.ID]; n > 0 && change.Size() < store.TxnOpsMax-1 {
				told = append(told, topic.Value.ID)
				change.AddEvent(event.NotificationsUnqueued.With(n).Told(d.Now(), topic.Value.Name, string(topic.Value.ID)))
			}
		}
		if change.Empty() {
			continue
		}
		if _, err := change.Commit(ctx, d.KV); err != nil {
			continue // told the next time
		}
		for _, id := range told {
			delete(waiting, id)
		}
	}
}

// Counts are the deliveries of this server since its start.
type Counts struct{ Delivered, Failed, Unqueued int64 }

// Counts returns them.
func (d *Deliverer) Counts() Counts {
	return Counts{d.delivered.Load(), d.failed.Load(), d.unqueued.Load()}
}

func (t *term) commit(ctx context.Context, change *store.Change) error {
	revision, err := change.RequireElected(t.fence).Commit(ctx, t.KV)
	if err != nil {
		return err
	}
	return t.View.WaitRevision(ctx, revision)
}
