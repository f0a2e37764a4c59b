package store

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe"
)

var testTopic = kurabe.Topic{ID: "t-1", Name: "alerts", ARN: "arn:aws:sns:us-east-1:000000000000:alerts"}

// topicView returns a view of a store with a topic and a confirmed subscription.
func topicView(t *testing.T) (KV, *View, kurabe.Subscription) {
	t.Helper()
	kv := NewMemory()
	view := mustView(t, kv)
	sub := kurabe.Subscription{ID: "s-1", Topic: testTopic.ID, ConfirmedAt: time.Unix(1, 0)}
	commit(t, kv, view, NewChange().PutTopic(testTopic, 0).PutSubscription(sub, 0))
	return kv, view, sub
}

func commit(t *testing.T, kv KV, view *View, c *Change) {
	t.Helper()
	revision, err := c.Commit(testContext(t), kv)
	if err == nil {
		err = view.WaitRevision(testContext(t), revision)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func notification(text string, at time.Time) kurabe.Notification {
	return kurabe.Notification{TopicARN: testTopic.ARN, Message: text, Time: at}
}

// The order is that of the commits, even if a clock says otherwise; a cursor that has passed
// one of them has passed no later one.
func TestNotificationsInOrderOfCommit(t *testing.T) {
	kv, view, sub := topicView(t)
	big := strings.Repeat("<\x01", kurabe.NotificationBytesMax/2)
	noise := make([]byte, kurabe.NotificationBytesMax/2)
	rand.Read(noise)
	texts := []string{"first", big, hex.EncodeToString(noise), "last"}
	for n, text := range texts {
		c := NewChange()
		if !c.Notify(view, notification(text, time.Unix(100-int64(n), 0))) {
			t.Fatalf("no room for %d", n)
		}
		commit(t, kv, view, c)
	}
	again := mustView(t, kv) // one that loads
	for _, v := range []*View{view, again} {
		cursor := v.DeliveryCursor(sub)
		for _, want := range texts {
			q, ok := v.NextQueued(cursor)
			if !ok {
				t.Fatal("the queue ends early")
			}
			n, err := q.Notification()
			if err != nil || n.Message != want || n.ID == "" {
				t.Fatalf("message %.20q with the id %q: %v; want %.20q", n.Message, n.ID, err, want)
			}
			if q.Behind(cursor) || !q.Behind(q.Pass(cursor)) {
				t.Error("a cursor does not know what it has passed")
			}
			cursor = q.Pass(cursor)
		}
		if q, more := v.NextQueued(cursor); more {
			t.Fatalf("one too many: %+v", q)
		}
	}
	for _, q := range view.FirstQueued(testTopic.ID, 9) {
		commit(t, kv, view, NewChange().DeleteQueued(q))
	}
	if count, bytes := view.QueueSize(testTopic.ID); count != 0 || bytes != 0 {
		t.Errorf("%d notifications of %d bytes are left", count, bytes)
	}
}

// Nobody is told of a change that was not committed.
func TestNotificationIsOfItsChange(t *testing.T) {
	kv, view, sub := topicView(t)
	c := NewChange().Require(topicKey("alerts"), 99)
	c.Notify(view, notification("never", time.Unix(2, 0)))
	if _, err := c.Commit(testContext(t), kv); err == nil {
		t.Fatal("committed")
	}
	if q, ok := view.NextQueued(view.DeliveryCursor(sub)); ok {
		t.Errorf("queued %+v", q)
	}
}

func TestNotificationNeedsASubscriber(t *testing.T) {
	kv := NewMemory()
	view := mustView(t, kv)
	commit(t, kv, view, NewChange().PutTopic(testTopic, 0).PutSubscription(kurabe.Subscription{ID: "s-1", Topic: testTopic.ID}, 0))
	other := notification("x", time.Unix(2, 0))
	other.TopicARN = "arn:aws:sns:eu-west-1:000000000000:alerts"
	for _, n := range []kurabe.Notification{notification("x", time.Unix(2, 0)), other} {
		if c := NewChange(); !c.Notify(view, n) || !c.Empty() {
			t.Errorf("queued for nobody: %+v", c)
		}
	}
}

// What finds no room is counted when its change is committed.
func TestQueueIsBounded(t *testing.T) {
	kv, view, _ := topicView(t)
	noise := make([]byte, kurabe.NotificationBytesMax/2)
	rand.Read(noise)
	n := notification(hex.EncodeToString(noise), time.Unix(2, 0))
	for range 2 * topicQueueBytesMax / len(noise) {
		c := NewChange()
		if !c.Notify(view, n) {
			break
		}
		commit(t, kv, view, c)
	}
	if _, bytes := view.QueueSize(testTopic.ID); bytes > topicQueueBytesMax || !view.Crowded(testTopic.ID) {
		t.Fatalf("%d bytes are queued", bytes)
	}
	NewChange().NotifyOrCount(view, n)
	if got := view.TakeGivenUp(); len(got) != 0 {
		t.Errorf("counted before the commit: %v", got)
	}
	commit(t, kv, view, NewChange().NotifyOrCount(view, n).AddEvent(kurabe.Event{At: time.Unix(2, 0)}))
	if got := view.TakeGivenUp(); got[testTopic.ID] != 1 {
		t.Errorf("given up %v; want one", got)
	}
}

func TestNotifyLeftoversGo(t *testing.T) {
	kv, view, sub := topicView(t)
	c := NewChange().PutDeliveryCursor(kurabe.DeliveryCursor{Topic: testTopic.ID, Subscription: sub.ID})
	c.Notify(view, notification("x", time.Unix(2, 0)))
	commit(t, kv, view, c)
	if c := NewChange().RemoveNotifyLeftovers(view); !c.Empty() {
		t.Fatalf("of a topic that is there: %+v", c.ops)
	}
	topic, _ := view.Topic("alerts")
	commit(t, kv, view, NewChange().DeleteTopic("alerts", topic.ModRevision))
	commit(t, kv, view, NewChange().RemoveNotifyLeftovers(view))
	entries, _, err := kv.List(testContext(t), Root)
	if err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if len(view.state.notify) != 0 {
		t.Errorf("the view keeps %v", view.state.notify)
	}
}

// A restored cursor would name a revision of another life.
func TestRestoreForgetsCursors(t *testing.T) {
	c := NewChange().PutDeliveryCursor(kurabe.DeliveryCursor{Topic: "t-1", Subscription: "s-1"})
	if _, keep, err := Renumber(Entry{Key: c.ops[0].Key, Value: c.ops[0].Value}, time.Unix(1, 0)); keep || err != nil {
		t.Errorf("kept: %v, %v", keep, err)
	}
}

// Notifications wake deliverers and no planner.
func TestNotificationsWakeDeliverers(t *testing.T) {
	kv, view, _ := topicView(t)
	planner, stop := view.Subscribe()
	defer stop()
	deliverer, stop := view.SubscribeDeliveries()
	defer stop()
	<-planner
	<-deliverer
	c := NewChange()
	c.Notify(view, notification("x", time.Unix(2, 0)))
	commit(t, kv, view, c)
	if <-deliverer; len(planner) != 0 {
		t.Error("the planner is woken")
	}
	if got := view.TakeDirty(); len(got.Instances) != 0 {
		t.Errorf("dirty: %+v", got)
	}
	if !slices.Equal(view.FirstQueued(testTopic.ID, 0), nil) {
		t.Error("more than asked for")
	}
}
