package store

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kurabe"
)

// Bounds of what waits for delivery, which the store and every View hold in memory: of one
// topic, and of all.
const (
	topicQueueMax      = 20_000
	topicQueueBytesMax = 32 << 20
	queueMax           = 50_000
	queueBytesMax      = 64 << 20
)

const (
	// partBytes is what one record has of a notification.
	partBytes = 90 << 10
	// packFrom is from where on a notification is packed: less is not worth the work.
	packFrom = 4 << 10
	// unpackedMax bounds a notification as JSON: six bytes for each one, and its frame.
	unpackedMax = 8 * kurabe.NotificationBytesMax
	// notifyOpsMax is up to how many writes a change takes notifications in: the change that
	// tells of itself matters more than its notifications.
	notifyOpsMax = TxnOpsMax - 27
)

// PutTopic writes a topic that was read at mod, 0 for a new one.
func (c *Change) PutTopic(t kurabe.Topic, mod int64) *Change {
	return c.RequireTopic(t.Name, mod).put(topicKey(t.Name), t, t.Name)
}

// RequireTopic demands that the topic of a name is the one read at mod, 0 that there is none.
func (c *Change) RequireTopic(name string, mod int64) *Change { return c.Require(topicKey(name), mod) }

// DeleteTopic removes a topic that was read at mod. What belongs to it is a leftover from then
// on (View.NotifyLeftovers).
func (c *Change) DeleteTopic(name string, mod int64) *Change {
	return c.RequireTopic(name, mod).Delete(topicKey(name))
}

// PutSubscription writes a subscription that was read at mod, 0 for a new one.
func (c *Change) PutSubscription(s kurabe.Subscription, mod int64) *Change {
	key := subscriptionKey(s.Topic, s.ID)
	return c.Require(key, mod).put(key, s, string(s.Topic), string(s.ID))
}

// RequireSubscriptionsUnwritten demands that no subscription to a topic was written after
// revision.
func (c *Change) RequireSubscriptionsUnwritten(topic kurabe.TopicID, revision int64) *Change {
	return c.RequireUnwritten(subscriptions+string(topic)+"/", revision)
}

// DeleteSubscription removes a subscription that was read at mod, and how far it has come.
func (c *Change) DeleteSubscription(s kurabe.Subscription, mod int64) *Change {
	key := subscriptionKey(s.Topic, s.ID)
	return c.Require(key, mod).Delete(key).Delete(deliveryCursorKey(s.Topic, s.ID))
}

// PutDeliveryCursor writes how far a subscription has come. Only the elected server does, so
// that the change compares the election and not the cursor.
func (c *Change) PutDeliveryCursor(d kurabe.DeliveryCursor) *Change {
	return c.put(deliveryCursorKey(d.Topic, d.Subscription), d, string(d.Topic), string(d.Subscription))
}

// DeleteQueued removes a notification that every subscription is done with.
func (c *Change) DeleteQueued(q *Queued) *Change {
	for n := range q.parts {
		c.Delete(q.key + strconv.Itoa(n))
	}
	return c
}

// Notify queues a notification in this change: it is sent to the topic's confirmed subscribers
// if the change is committed, and only then. It says false, and queues nothing, when there is
// no room, in the topic's queue or in the transaction. A topic without a confirmed
// subscription, or none of that ARN, needs no room. The ID is made where there is none; Time must
// be set.
func (c *Change) Notify(view *View, n kurabe.Notification) bool {
	topic, wanted := view.notifiable(n.TopicARN)
	if !wanted {
		return true
	}
	if n.Time.IsZero() {
		c.fail(errors.New("store: a notification without a time"))
		return true
	}
	if n.ID == "" {
		n.ID = kurabe.NewUUID()
	}
	value, err := packNotification(n)
	if err != nil {
		c.fail(err)
		return true
	}
	parts := slices.Collect(slices.Chunk(value, partBytes))
	if len(c.ops)+len(parts) > notifyOpsMax || !view.room(topic, len(value)) {
		return false
	}
	// How many parts there are is in the key, so that one that lacks a part is known.
	key := notificationKey(topic, fmt.Sprintf("%s-%d", eventSeq(n.Time, c.notified), len(parts)))
	c.notified++
	for i, part := range parts {
		c.Put(key+strconv.Itoa(i), part)
	}
	return true
}

// NotifyOrCount is Notify for what cannot be refused, an event or an alarm: without room the
// notification is given up, and counted once the change is committed (View.TakeGivenUp).
func (c *Change) NotifyOrCount(view *View, n kurabe.Notification) *Change {
	if !c.Notify(view, n) {
		c.unqueued = append(c.unqueued, func() { view.giveUp(n.TopicARN) })
	}
	return c
}

// partOf reads the key of a part.
func partOf(p keyParts) (n, of int, ok bool) {
	n, err := strconv.Atoi(p.part)
	if err == nil {
		of, err = strconv.Atoi(p.name[strings.LastIndexByte(p.name, '-')+1:])
	}
	return n, of, err == nil && 0 <= n && n < of && of <= unpackedMax/partBytes
}

func packNotification(n kurabe.Notification) ([]byte, error) {
	value, err := json.Marshal(n)
	if err != nil || len(value) < packFrom {
		return value, err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(value) // into memory
	err = w.Close()
	return b.Bytes(), err
}

// Queued is a notification that waits for its subscribers. It is never changed.
type Queued struct {
	key      string // up to the name of the part
	revision int64  // of the first part
	parts    [][]byte
	size     int
}

// Notification decodes it.
func (q *Queued) Notification() (n kurabe.Notification, err error) {
	value := bytes.Join(q.parts, nil)
	if len(value) > 0 && value[0] != '{' {
		r, err := gzip.NewReader(bytes.NewReader(value))
		if err != nil {
			return n, &CorruptError{Key: q.key, Err: err}
		}
		if value, err = io.ReadAll(io.LimitReader(r, unpackedMax)); err != nil {
			return n, &CorruptError{Key: q.key, Err: err}
		}
	}
	return decode[kurabe.Notification](Entry{Key: q.key, Value: value})
}

// Pass returns a cursor that has this notification behind it.
func (q *Queued) Pass(d kurabe.DeliveryCursor) kurabe.DeliveryCursor {
	d.Revision, d.Key, d.Attempts, d.RetryAt = q.revision, q.key, 0, time.Time{}
	return d
}

// Behind says whether a cursor has passed it.
func (q *Queued) Behind(d kurabe.DeliveryCursor) bool { return q.compare(d.Revision, d.Key) <= 0 }

// Bytes is its size in the store.
func (q *Queued) Bytes() int { return q.size }

// compare orders by commit: by the clocks of several servers a later one could come to lie
// before a cursor, and be lost.
func (q *Queued) compare(revision int64, key string) int {
	return cmp.Or(cmp.Compare(q.revision, revision), strings.Compare(q.key, key))
}

func (q *Queued) whole() bool {
	return !slices.ContainsFunc(q.parts, func(p []byte) bool { return p == nil })
}

// topicState is what belongs to a topic beside its record.
type topicState struct {
	subscriptions map[kurabe.SubscriptionID]Record[kurabe.Subscription]
	cursors       map[kurabe.SubscriptionID]Record[kurabe.DeliveryCursor]
	byKey         map[string]*Queued
	queue         []*Queued // the whole ones, in order
	bytes         int       // of all
}

// notifyOf returns the state of a topic, to be changed.
func (s *state) notifyOf(id kurabe.TopicID) *topicState {
	t := s.notify[id]
	if t == nil {
		t = &topicState{map[kurabe.SubscriptionID]Record[kurabe.Subscription]{}, map[kurabe.SubscriptionID]Record[kurabe.DeliveryCursor]{}, map[string]*Queued{}, nil, 0}
		s.notify[id] = t
	}
	return t
}

func (s *state) putNotify(p keyParts, e Entry) error {
	switch p.kind {
	case KindTopic:
		return keep(s.topics, p.name, e)
	case KindSubscription:
		return keep(s.notifyOf(p.topic).subscriptions, kurabe.SubscriptionID(p.name), e)
	case KindDeliveryCursor:
		return keep(s.notifyOf(p.topic).cursors, kurabe.SubscriptionID(p.name), e)
	}
	part, of, ok := partOf(p)
	if !ok {
		return errors.New("it is no part of a notification")
	}
	s.notifyOf(p.topic).put(notificationKey(p.topic, p.name), part, of, e)
	return nil
}

func (t *topicState) put(key string, part, count int, e Entry) {
	t.remove(t.byKey[key], part)
	old := t.byKey[key]
	if old == nil {
		old = &Queued{key: key, parts: make([][]byte, count)}
	}
	q := &Queued{key, old.revision, slices.Clone(old.parts), old.size + len(e.Value)}
	q.parts[part] = append([]byte{}, e.Value...)
	if part == 0 {
		q.revision = e.ModRevision
	}
	t.bytes += len(e.Value)
	t.byKey[key] = q
	if !q.whole() {
		return
	}
	at := len(t.queue)
	if at > 0 && t.queue[at-1].compare(q.revision, q.key) > 0 {
		at, _ = t.find(q.revision, q.key)
	}
	t.queue = slices.Insert(t.queue, at, q)
}

// find says where in the queue a place is, or would be.
func (t *topicState) find(revision int64, key string) (int, bool) {
	return slices.BinarySearchFunc(t.queue, key, func(q *Queued, key string) int { return q.compare(revision, key) })
}

// remove takes a part out, and the whole out of the queue.
func (t *topicState) remove(old *Queued, part int) {
	if old == nil || old.parts[part] == nil {
		return
	}
	if at, found := t.find(old.revision, old.key); found && at == 0 {
		t.queue[0] = nil // lets go of it
		t.queue = t.queue[1:]
	} else if found {
		t.queue = slices.Delete(t.queue, at, at+1)
	}
	q := &Queued{old.key, old.revision, slices.Clone(old.parts), old.size - len(old.parts[part])}
	t.bytes -= len(q.parts[part])
	q.parts[part] = nil
	t.byKey[q.key] = q
	if !slices.ContainsFunc(q.parts, func(p []byte) bool { return p != nil }) {
		delete(t.byKey, q.key)
	}
}

func (s *state) removeNotify(p keyParts) {
	if p.kind == KindTopic {
		delete(s.topics, p.name)
		return
	}
	t := s.notify[p.topic]
	if t == nil {
		return
	}
	switch p.kind {
	case KindSubscription:
		delete(t.subscriptions, kurabe.SubscriptionID(p.name))
	case KindDeliveryCursor:
		delete(t.cursors, kurabe.SubscriptionID(p.name))
	case KindNotification:
		if part, _, ok := partOf(p); ok {
			t.remove(t.byKey[notificationKey(p.topic, p.name)], part)
		}
	}
	if len(t.subscriptions)+len(t.cursors)+len(t.byKey) == 0 {
		delete(s.notify, p.topic)
	}
}

// notifiable returns the topic of an ARN if a subscriber is to hear of a notification.
func (v *View) notifiable(arn string) (kurabe.TopicID, bool) {
	t, ok := v.TopicByARN(arn)
	if !ok {
		return "", false
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	if s := v.state.notify[t.Value.ID]; s != nil {
		for _, sub := range s.subscriptions {
			if !sub.Value.ConfirmedAt.IsZero() {
				return t.Value.ID, true
			}
		}
	}
	return "", false
}

// room says whether the queue of a topic takes a notification of that size.
func (v *View) room(topic kurabe.TopicID, size int) bool { return v.fits(topic, size, 4) }

// Crowded says whether the queue of a topic, or of all, is filled to three quarters.
func (v *View) Crowded(topic kurabe.TopicID) bool { return !v.fits(topic, 0, 3) }

// fits says whether one more of that size stays within some quarters of the bounds.
func (v *View) fits(topic kurabe.TopicID, size, quarters int) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	count, bytes := 1, size
	for id, t := range v.state.notify {
		if id == topic && (len(t.byKey) >= topicQueueMax/4*quarters || t.bytes+size > topicQueueBytesMax/4*quarters) {
			return false
		}
		count, bytes = count+len(t.byKey), bytes+t.bytes
	}
	return count <= queueMax/4*quarters && bytes <= queueBytesMax/4*quarters
}

func (v *View) giveUp(arn string) {
	t, ok := v.TopicByARN(arn)
	v.mu.Lock()
	defer v.mu.Unlock()
	if ok {
		v.givenUp[t.Value.ID]++
	}
}

// TakeGivenUp returns how many notifications of each topic found no room since the last call.
func (v *View) TakeGivenUp() map[kurabe.TopicID]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := v.givenUp
	v.givenUp = map[kurabe.TopicID]int{}
	return out
}

// Topic returns a topic by its name.
func (v *View) Topic(name string) (Record[kurabe.Topic], bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t, ok := v.state.topics[name]
	return t, ok
}

// TopicByARN returns a topic by its ARN, of which the name is the last part.
func (v *View) TopicByARN(arn string) (Record[kurabe.Topic], bool) {
	t, ok := v.Topic(arn[strings.LastIndexByte(arn, ':')+1:])
	return t, ok && t.Value.ARN == arn
}

// Topics returns every topic, by name.
func (v *View) Topics() []Record[kurabe.Topic] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedByName(v.state.topics)
}

// Subscriptions returns the subscriptions to a topic, by id.
func (v *View) Subscriptions(topic kurabe.TopicID) []Record[kurabe.Subscription] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t := v.state.notify[topic]
	if t == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(t.subscriptions), func(a, b Record[kurabe.Subscription]) int { return cmp.Compare(a.Value.ID, b.Value.ID) })
}

// Subscription returns a subscription to a topic.
func (v *View) Subscription(topic kurabe.TopicID, id kurabe.SubscriptionID) (Record[kurabe.Subscription], bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t := v.state.notify[topic]
	if t == nil {
		return Record[kurabe.Subscription]{}, false
	}
	s, ok := t.subscriptions[id]
	return s, ok
}

// DeliveryCursor returns how far a subscription has come, a new cursor for one that has not
// begun.
func (v *View) DeliveryCursor(s kurabe.Subscription) kurabe.DeliveryCursor {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if t := v.state.notify[s.Topic]; t != nil {
		if r, ok := t.cursors[s.ID]; ok {
			return r.Value
		}
	}
	return kurabe.DeliveryCursor{Topic: s.Topic, Subscription: s.ID}
}

// NextQueued returns the first notification of a topic that a cursor has before it.
func (v *View) NextQueued(d kurabe.DeliveryCursor) (*Queued, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t := v.state.notify[d.Topic]
	if t == nil {
		return nil, false
	}
	at, found := t.find(d.Revision, d.Key)
	if found {
		at++
	}
	if at >= len(t.queue) {
		return nil, false
	}
	return t.queue[at], true
}

// FirstQueued returns the oldest notifications of a topic, at most limit.
func (v *View) FirstQueued(topic kurabe.TopicID, limit int) []*Queued {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t := v.state.notify[topic]
	if t == nil {
		return nil
	}
	return slices.Clone(t.queue[:min(limit, len(t.queue))])
}

// QueueSize is how many notifications of a topic wait, and their bytes in the store.
func (v *View) QueueSize(topic kurabe.TopicID) (count, bytes int) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if t := v.state.notify[topic]; t != nil {
		return len(t.byKey), t.bytes
	}
	return 0, 0
}

// RemoveNotifyLeftovers deletes what belongs to topics that are gone, and cursors of
// subscriptions that are, up to a change's worth.
func (c *Change) RemoveNotifyLeftovers(v *View) *Change {
	v.mu.RLock()
	defer v.mu.RUnlock()
	there := map[kurabe.TopicID]bool{}
	for _, t := range v.state.topics {
		there[t.Value.ID] = true
	}
	remove := func(key string) {
		if len(c.ops) < notifyOpsMax {
			c.Delete(key)
		}
	}
	for id, t := range v.state.notify {
		for sub := range t.cursors {
			if _, ok := t.subscriptions[sub]; !ok || !there[id] {
				remove(deliveryCursorKey(id, sub))
			}
		}
		if there[id] {
			continue
		}
		for sub := range t.subscriptions {
			remove(subscriptionKey(id, sub))
		}
		for _, q := range t.byKey {
			for n, part := range q.parts {
				if part != nil {
					remove(q.key + strconv.Itoa(n))
				}
			}
		}
	}
	return c
}
