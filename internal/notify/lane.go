package notify

import (
	"context"
	"errors"
	"net/url"
	"time"

	"kurabe"
	"kurabe/internal/event"
	"kurabe/internal/logkey"
	"kurabe/internal/notify/filter"
	"kurabe/internal/store"
)

// lane is the way of notifications to one subscription. It has a goroutine while there is
// something to be sent, so that one that hangs holds up no other. The term's lock guards it.
type lane struct {
	*term
	id      kurabe.SubscriptionID
	topic   kurabe.TopicID
	running bool
	cursor  kurabe.DeliveryCursor // where it is
	saved   kurabe.DeliveryCursor // what its record says
	why     string                // the newest reason for giving one up

	sentAt time.Time // of the goroutine, for the throttle
	policy string    // the text that wanted was made of
	wanted filter.Policy
}

// hasWork says whether a subscription has something to be sent.
func (l *lane) hasWork(s kurabe.Subscription) bool {
	if s.ConfirmedAt.IsZero() {
		return s.Token != "" && l.cursor.Asked != s.Token && l.Now().Before(s.TokenUntil)
	}
	_, more := l.View.NextQueued(l.cursor)
	return more
}

// run sends what there is, one after the other.
func (l *lane) run(ctx context.Context, topicName string) {
	defer func() {
		l.mu.Lock()
		l.running = false
		l.mu.Unlock()
		l.wake() // something may have come since it looked
	}()
	for ctx.Err() == nil {
		topic, there := l.View.Topic(topicName)
		sub, known := l.View.Subscription(l.topic, l.id)
		if !there || !known || topic.Value.ID != l.topic || !l.step(ctx, topic.Value, sub.Value) {
			return
		}
	}
}

// step sends, or passes over, the next message; false when there is none.
func (l *lane) step(ctx context.Context, topic kurabe.Topic, sub kurabe.Subscription) bool {
	l.mu.Lock()
	cursor, work := l.cursor, l.hasWork(sub)
	l.mu.Unlock()
	if !work {
		return false
	}
	if cursor.RetryAt.After(l.Now()) {
		l.await(ctx, cursor.RetryAt)
		return true // the message that is due may be another by then
	}
	if sub.ConfirmedAt.IsZero() {
		asked := cursor
		asked.Asked, asked.Attempts, asked.RetryAt = sub.Token, 0, time.Time{}
		l.deliver(ctx, links{l.URL}.confirmation(topic, sub), cursor, asked, sub.TokenUntil)
		return true
	}
	q, _ := l.View.NextQueued(cursor)
	n, err := q.Notification()
	if err != nil {
		l.Log.Error("notification cannot be read", logkey.Error, err)
		l.giveUp(cursor, q.Pass(cursor), "its record cannot be read")
		return true
	}
	if n.Time.Before(sub.ConfirmedAt) || !l.wants(sub, n) {
		l.move(cursor, q.Pass(cursor))
		return true
	}
	m := links{l.URL}.notification(topic, sub, n)
	l.deliver(ctx, m, cursor, q.Pass(cursor), n.Time.Add(m.policy.Retry.Total()))
	return true
}

// wants says whether the filter policy of a subscription lets a notification through.
func (l *lane) wants(sub kurabe.Subscription, n kurabe.Notification) bool {
	text, body := sub.Settings["FilterPolicy"], sub.Settings["FilterPolicyScope"] == "MessageBody"
	if text == "" {
		return true
	}
	if text != l.policy {
		parsed, err := filter.Parse(text, body)
		if err != nil {
			l.Log.Error("filter policy cannot be read", logkey.Error, err)
			return true
		}
		l.policy, l.wanted = text, parsed
	}
	if body {
		return l.wanted.Body(Text(n, sub.Protocol))
	}
	return l.wanted.Attributes(n.Attributes)
}

// deliver makes one attempt, at its time. It moves the cursor on from one place to the next when
// the message was delivered, or is given up: because there are no more attempts, or because it
// has waited behind others for so long that those of its own would have ended.
func (l *lane) deliver(ctx context.Context, m message, from, to kurabe.DeliveryCursor, until time.Time) {
	if throttle := m.policy.Throttle; throttle != nil {
		if due := l.sentAt.Add(time.Second / time.Duration(throttle.MaxReceivesPerSecond)); due.After(l.Now()) {
			l.await(ctx, due)
			return
		}
	}
	l.sentAt = l.Now()
	err := l.send(ctx, m)
	if ctx.Err() != nil {
		return
	}
	failed, _ := errors.AsType[*failure](err)
	switch {
	case err == nil:
		l.delivered.Add(1)
		l.move(from, to)
		return
	case failed == nil: // ours, such as a key that does not sign
		l.Log.Error("notification not sent", logkey.Error, err)
		failed = &failure{reason: "it could not be made"}
	}
	l.failed.Add(1)
	delay, more := m.policy.Retry.Delay(from.Attempts + 1)
	delay = max(delay, failed.after)
	if failed.permanent || !more || l.Now().Add(delay).After(until) {
		l.giveUp(from, to, failed.reason)
		return
	}
	again := from
	again.Attempts++
	again.RetryAt = l.Now().Add(delay)
	l.move(from, again)
}

// lookEvery is how often a lane that waits looks whether its cursor was moved by others.
const lookEvery = time.Second

// await waits for a time, or for lookEvery.
func (l *lane) await(ctx context.Context, due time.Time) {
	timer := time.NewTimer(min(due.Sub(l.Now()), lookEvery))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// send makes one attempt by the protocol.
func (l *lane) send(ctx context.Context, m message) error {
	signer, err := l.signer(ctx)
	if err == nil {
		err = signer.sign(&m.document, m.topic.Settings["SignatureVersion"])
	}
	if err != nil {
		return err
	}
	if m.subscription.Protocol == "http" || m.subscription.Protocol == "https" {
		return post(ctx, l.client, m)
	}
	return l.Mail.send(ctx, m)
}

// move moves the cursor, unless it was moved meanwhile.
func (l *lane) move(from, to kurabe.DeliveryCursor) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cursor.Revision != from.Revision || l.cursor.Key != from.Key || l.cursor.Asked != from.Asked {
		return false
	}
	to.GivenUp, to.Told, to.ToldAt = l.cursor.GivenUp, l.cursor.Told, l.cursor.ToldAt
	l.cursor = to
	return true
}

// giveUp moves the cursor past something that is not delivered, and counts it.
func (l *lane) giveUp(from, to kurabe.DeliveryCursor, why string) {
	if l.move(from, to) {
		l.mu.Lock()
		l.cursor.GivenUp++
		l.why = why
		l.mu.Unlock()
	}
}

// dropOldest gives up the oldest notifications of a subscription that fails, when the queue that
// it holds is crowded: else one that is gone would soon be every publisher's trouble.
func (l *lane) dropOldest(topic kurabe.Topic, sub kurabe.Subscription) {
	l.mu.Lock()
	cursor := l.cursor
	saved := cursor.Revision == l.saved.Revision && cursor.Key == l.saved.Key
	l.mu.Unlock()
	if cursor.Attempts == 0 || !saved || sub.ConfirmedAt.IsZero() {
		return
	}
	to, count := cursor, 0
	for range dropBatch {
		q, more := l.View.NextQueued(to)
		if !more {
			break
		}
		to, count = q.Pass(to), count+1
	}
	to.Attempts, to.RetryAt = cursor.Attempts, cursor.RetryAt // the next one has no better chances
	if count > 0 && l.move(cursor, to) {
		l.mu.Lock()
		l.cursor.GivenUp += count
		l.why = "the queue of the topic was filling up while the subscriber did not take any"
		l.mu.Unlock()
	}
}

// tellEvery is how often a subscription that gives up notifications is an event.
const tellEvery = 10 * time.Minute

// tell adds the event of what was given up to the change that saves the count. The caller holds
// the lock.
func (l *lane) tell(change *store.Change, topic kurabe.Topic, sub kurabe.Subscription) {
	now := l.Now()
	count := l.cursor.GivenUp - l.cursor.Told
	if count == 0 || !l.cursor.ToldAt.IsZero() && now.Before(l.cursor.ToldAt.Add(tellEvery)) || change.Size() >= store.TxnOpsMax-3 {
		return
	}
	l.cursor.Told, l.cursor.ToldAt = l.cursor.GivenUp, now
	why := l.why
	if why == "" {
		why = "the service ended meanwhile"
	}
	change.AddEvent(event.NotificationsGivenUp.With(count, sub.ID, shown(sub), why).Told(now, topic.Name, string(topic.ID)))
}

// shown is the endpoint of a subscription as it may be shown: of a URL without what could be a
// secret.
func shown(s kurabe.Subscription) string {
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Host == "" {
		return s.Endpoint
	}
	return u.Scheme + "://" + u.Host
}
