package hostlink

import (
	"errors"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

// comes says whether a life of the host is let in.
func (b *hearingBed) comes(life string) bool {
	b.Helper()
	e, _ := b.elected()
	err := b.take(b.Context(), e, "h1", life, "10.0.0.9:4711")
	if err != nil && !errors.Is(err, ErrDouble) {
		b.Fatal(err)
	}
	return err == nil
}

func (b *hearingBed) double() *kurabe.Double {
	p, _ := b.View.Presence("h1")
	return p.Double
}

// passes is time in which the host says that it is there each second.
func (b *hearingBed) passes(seconds int) {
	b.Helper()
	for range seconds {
		b.at = b.at.Add(time.Second)
		b.say(Alive{})
		b.look()
	}
}

func TestAHostIsOneMachine(t *testing.T) {
	b := newHearingBed(t)
	b.want("the first one", b.comes("a"), true)
	b.passes(10)
	b.want("another one while it is heard", b.comes("b"), false)
	b.want("itself, started again", b.comes("a"), true)
	b.say(Alive{SilentFor: 20 * time.Second})
	b.look()
	b.at = b.at.Add(20*time.Second + kurabe.HostLostAfter)
	b.look()
	b.want("another one while it is away as it said", b.comes("b"), false)
	b.at = b.at.Add(time.Millisecond)
	kv := b.KV
	b.KV = brokenKV{kv}
	b.look()
	b.want("another one when it is decided that it is lost, and perhaps not written", b.comes("b"), false)
	b.KV = kv
	b.look()
	b.look()
	b.want("lost", b.lost(), true)
	if b.double() != nil {
		t.Error("a machine that was started anew is told to be a copy")
	}
	b.want("another one when it is lost", b.comes("b"), true)
	b.want("the first one after that", b.comes("a"), false)
	b.at = b.at.Add(kurabe.HostLostAfter)
	b.say(Alive{Looking: true})
	b.look()
	b.want("back before it has looked", b.lost(), true)
	b.want("the first one while the other one looks", b.comes("a"), false)
	b.want("the other one", b.comes("b"), true)
	b.at = b.at.Add(kurabe.HostLostAfter)
	b.want("the first one while the other one still looks", b.comes("a"), false)
	b.passes(1)
	b.want("heard again", b.lost(), false)
	b.want("and then", b.comes("a"), false)
}

func TestThePlaceIsKnownToTheNextPlanner(t *testing.T) {
	b := newHearingBed(t)
	b.want("the first one", b.comes("a"), true)
	b.passes(1)
	b.serve(b.KV)
	b.want("another one, which comes first", b.comes("b"), false)
	b.want("the first one", b.comes("a"), true)
	election := Election{Since: b.at, Fence: store.Fence{ModRevision: b.View.Revision()}}
	b.Elected = func() (Election, bool) { return election, true }
	b.want("another one under the next election", b.comes("b"), false)
	b.want("the first one under the next election", b.comes("a"), true)
}

// A copy is told of once, by one event of each instance: what comes while the host speaks on.
func TestACopyIsToldOf(t *testing.T) {
	b := newHearingBed(t)
	b.write(store.NewChange().PutAssignment(kurabe.Assignment{Host: "h1", Instance: "db-A"}, 0).PutAssignment(kurabe.Assignment{Host: "h1", Instance: "db-A~2"}, 0))
	events := func() int { return len(b.View.Events(time.Time{}, b.at.Add(time.Hour))) }
	b.comes("a")
	b.passes(1)
	b.comes("b")
	b.look()
	if b.double() != nil {
		t.Error("told before the host has spoken on")
	}
	since := b.at
	b.passes(1)
	if d := b.double(); d == nil || d.From != "10.0.0.9" || !d.Since.Equal(since) {
		t.Fatalf("%+v", d)
	}
	for range 3 {
		b.comes("b")
		b.passes(60)
	}
	b.serve(b.KV)
	b.passes(1)
	b.comes("b")
	b.passes(1)
	if n := events(); n != 1 {
		t.Errorf("%d events of one copy", n)
	}
	b.at = b.at.Add(doubleTime)
	b.passes(5)
	if b.double() != nil {
		t.Error("it is told of when it comes no more")
	}
	b.comes("b")
	b.passes(1)
	if n := events(); b.double() == nil || n != 2 {
		t.Errorf("%d events when it comes again", n)
	}
}
