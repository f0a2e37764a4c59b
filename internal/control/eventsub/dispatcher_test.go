package eventsub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/event"
	"kurabe/internal/store"
)

const topicARN = "arn:aws:sns:us-east-1:000000000000:t"

// bed is a dispatcher that tests turn by hand, and a topic with a subscriber who takes nothing.
type bed struct {
	t testing.TB
	Subscriptions
	d     *Dispatcher
	fence store.Fence
	said  int
}

func newBed(t testing.TB) *bed {
	t.Helper()
	b := &bed{t: t}
	b.Scope = scopetest.New(t)
	b.SourceExists = func(string, string) bool { return true }
	b.d = &Dispatcher{Scope: b.Scope, Log: slog.New(slog.DiscardHandler), Source: func(e kurabe.Event) (string, []kurabe.Tag) {
		return b.ARN("db", e.Source), []kurabe.Tag{{Key: "team", Value: "<a&b>"}}
	}}
	b.addTopic("t")
	b.elect()
	return b
}

func (b *bed) addTopic(name string) {
	b.t.Helper()
	id := kurabe.TopicID("id-" + name)
	scopetest.Commit(b.t, b.Scope, store.NewChange().PutTopic(kurabe.Topic{ID: id, Name: name, ARN: "arn:aws:sns:us-east-1:000000000000:" + name}, 0).
		PutSubscription(kurabe.Subscription{ID: "s", Topic: id, ConfirmedAt: scopetest.Now}, 0))
}

// elect has another server elected: what the one before writes is refused from then on.
func (b *bed) elect() {
	b.t.Helper()
	revision, err := store.NewChange().Put(store.PlannerElectionKey, []byte("h")).Commit(b.t.Context(), b.KV)
	if err != nil {
		b.t.Fatal(err)
	}
	b.fence = store.Fence{Key: store.PlannerElectionKey, ModRevision: revision}
}

func (b *bed) subscribe(s kurabe.EventSubscription) {
	b.t.Helper()
	if s.TopicARN == "" {
		s.TopicARN = topicARN
	}
	if _, err := b.CreateEventSubscription(b.t.Context(), s); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) say(kinds ...event.Kind) {
	b.t.Helper()
	change := store.NewChange()
	for _, k := range kinds {
		b.said++
		change.AddEvent(k.And(fmt.Sprint(" ", b.said)).Told(scopetest.Now, "shop", "db-1"))
	}
	scopetest.Commit(b.t, b.Scope, change)
}

// settle turns until nothing moves, and says how often it did.
func (b *bed) settle() int {
	b.t.Helper()
	for n := 0; ; n++ {
		if moved, err := b.d.turn(b.t.Context(), b.fence); err != nil {
			b.t.Fatal(err)
		} else if !moved {
			return n
		}
	}
}

// queued are the messages of a topic's queue, without the announcements of subscriptions.
func (b *bed) queued(name string) (texts []string) {
	b.t.Helper()
	for _, q := range b.View.FirstQueued(kurabe.TopicID("id-"+name), 1<<20) {
		n, err := q.Notification()
		if err != nil {
			b.t.Fatal(err)
		}
		var d document
		if json.Unmarshal([]byte(n.Message), &d) == nil {
			texts = append(texts, d.Message)
		}
	}
	return texts
}

func (b *bed) want(name string, want ...string) {
	b.t.Helper()
	if got := b.queued(name); !slices.Equal(got, want) {
		b.t.Errorf("%s: %q, want %q", name, got, want)
	}
}

func TestDispatch(t *testing.T) {
	b := newBed(t)
	b.addTopic("backups")
	b.say(event.Created)
	b.settle()
	b.subscribe(kurabe.EventSubscription{Name: "all"})
	b.subscribe(kurabe.EventSubscription{Name: "Backups", TopicARN: topicARN[:len(topicARN)-1] + "backups", SourceType: "db-instance", Categories: []string{"Backup"}})
	b.subscribe(kurabe.EventSubscription{Name: "others", SourceType: "db-instance", Sources: []string{"other"}})
	b.subscribe(kurabe.EventSubscription{Name: "off", Disabled: true})
	b.say(event.BackupBegun, event.BackupDone)
	b.say(event.Restarted)
	b.settle()
	b.want("t", "Backing up DB instance 2", "Finished DB instance backup 3", "DB instance restarted 4")
	b.want("backups", "Backing up DB instance 2", "Finished DB instance backup 3")
	b.say(event.Stopped)
	b.settle()
	if n := b.settle(); n != 0 {
		t.Errorf("it goes on without an event: %d turns", n)
	}
	b.want("t", "Backing up DB instance 2", "Finished DB instance backup 3", "DB instance restarted 4", "DB instance stopped 5")
}

func TestMessage(t *testing.T) {
	b := newBed(t)
	n := b.d.notification(event.Restarted.Told(time.Date(2026, 3, 2, 12, 0, 0, 7e6, time.UTC), "shop", "db-1"), topicARN, scopetest.Now)
	want := `{"Event Source":"db-instance","Event Time":"2026-03-02 12:00:00.007",` +
		`"Identifier Link":"https://console.aws.amazon.com/rds/home?region=us-east-1#dbinstance:id=shop","Source ID":"shop",` +
		`"Source ARN":"arn:aws:rds:us-east-1:000000000000:db:shop",` +
		`"Event ID":"http://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_Events.Messages.html#RDS-EVENT-0006",` +
		`"Event Message":"DB instance restarted","Tags":{"team":"<a&b>"}}`
	if n.Message != want || n.Subject != "RDS Notification Message" || n.TopicARN != topicARN ||
		n.Attributes["EventID"].Text != "RDS-EVENT-0006" || n.Attributes["Resource"].Text != "arn:aws:rds:us-east-1:000000000000:db:shop" {
		t.Errorf("%+v", n)
	}
}

// An event that another server wrote with a clock that is behind comes after what was passed.
func TestOrderIsThatOfCommits(t *testing.T) {
	b := newBed(t)
	b.subscribe(kurabe.EventSubscription{Name: "all"})
	b.say(event.Created)
	b.settle()
	scopetest.Commit(t, b.Scope, store.NewChange().AddEvent(event.Restarted.Told(scopetest.Now.Add(-time.Minute), "shop", "db-1")))
	b.settle()
	b.want("t", "DB instance created 1", "DB instance restarted")
}

// killer is a store at which the service dies: before a write, or after it and before its answer.
type killer struct {
	store.KV
	before, after bool
}

var errKilled = errors.New("killed")

func (k *killer) Txn(ctx context.Context, conds []store.Cond, ops []store.Op) (int64, error) {
	if k.before {
		return 0, errKilled
	}
	revision, err := k.KV.Txn(ctx, conds, ops)
	if k.after && err == nil {
		err = errKilled
	}
	return revision, err
}

func TestEachEventOnce(t *testing.T) {
	for name, k := range map[string]*killer{"before the write": {before: true}, "after the write": {after: true}} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.subscribe(kurabe.EventSubscription{Name: "all"})
			b.settle()
			b.say(event.BackupBegun, event.BackupDone)
			k.KV = b.KV
			dying := *b.d
			dying.KV = k
			if _, err := dying.turn(t.Context(), b.fence); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			old := b.fence
			b.elect()
			b.say(event.Restarted)
			if _, err := b.d.turn(t.Context(), old); !errors.Is(err, store.ErrConflict) {
				t.Errorf("one that is not elected any more dispatches: %v", err)
			}
			b.settle()
			b.want("t", "Backing up DB instance 1", "Finished DB instance backup 2", "DB instance restarted 3")
		})
	}
}

// fill leaves no room in the queue of a topic.
func (b *bed) fill(name string) {
	b.t.Helper()
	filler := kurabe.Notification{TopicARN: topicARN[:len(topicARN)-1] + name, Subject: "filler", Time: scopetest.Now}
	for full := false; !full; {
		change := store.NewChange()
		for range 90 {
			full = !change.Notify(b.View, filler) || full
		}
		if !change.Empty() {
			scopetest.Commit(b.t, b.Scope, change)
		}
	}
}

// What waits for room until it is about to be removed is given up, and each is counted.
func TestTooOldIsCounted(t *testing.T) {
	b := newBed(t)
	b.subscribe(kurabe.EventSubscription{Name: "all"})
	b.fill("t")
	const old = 700
	for n := range old {
		change := store.NewChange()
		change.AddEvent(event.Restarted.And(fmt.Sprint(" ", n)).Told(scopetest.Now.Add(time.Minute-store.EventAgeMax), "shop", "db-1"))
		scopetest.Commit(t, b.Scope, change)
	}
	b.say(event.Stopped)
	b.settle()
	if lost := b.View.TakeGivenUp(); lost["id-t"] != old {
		t.Errorf("given up: %v, want %d", lost, old)
	}
	for range 3 {
		change := store.NewChange()
		for _, q := range b.View.FirstQueued("id-t", 100) {
			change.DeleteQueued(q)
		}
		scopetest.Commit(t, b.Scope, change)
		b.settle()
	}
	b.want("t", event.Stopped.Text+" 1")
}

// A topic whose queue is full holds up its own subscription alone, which loses nothing of a burst.
func TestFullTopicWaits(t *testing.T) {
	b := newBed(t)
	b.addTopic("full")
	b.subscribe(kurabe.EventSubscription{Name: "a-full", TopicARN: topicARN[:len(topicARN)-1] + "full"})
	b.subscribe(kurabe.EventSubscription{Name: "free"})
	b.fill("full")
	const burst = 10_000
	var want []string
	for range burst / 50 {
		var kinds []event.Kind
		for range 50 {
			kinds = append(kinds, event.Restarted)
			want = append(want, fmt.Sprint(event.Restarted.Text, " ", len(want)+1))
		}
		b.say(kinds...)
	}
	b.settle()
	b.want("t", want...)
	if got := b.queued("full"); len(got) != 0 {
		t.Fatalf("%d events in a full queue", len(got))
	}
	if behind := b.View.EventCursor().Value.Behind; len(behind) != 1 {
		t.Errorf("behind: %v", behind)
	}
	for n := 0; n < burst+100; { // the subscriber takes some
		change := store.NewChange()
		for _, q := range b.View.FirstQueued("id-full", 100) {
			change.DeleteQueued(q)
			n++
		}
		scopetest.Commit(t, b.Scope, change)
		b.settle()
	}
	b.want("full", want...)
	if behind := b.View.EventCursor().Value.Behind; len(behind) != 0 {
		t.Errorf("behind: %v", behind)
	}
	if lost := b.View.TakeGivenUp(); len(lost) != 0 {
		t.Errorf("given up: %v", lost)
	}
}
