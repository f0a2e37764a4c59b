package hostlink_test

import (
	"context"
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// machine is the link of a host from one life of one machine.
func (f *far) machine(t *testing.T, life string) *hostlink.Remote {
	t.Helper()
	identity := f.party(t, pki.Party{Kind: pki.PartyAgent, ID: "h1"})
	return hostlink.NewRemote(hostlink.RemoteConfig{
		Server: f.addr, Roots: f.roots, Identity: func() *tls.Certificate { return identity }, Life: life, Log: quiet(),
	})
}

// assign gives the host an instance.
func (f *far) assign(t *testing.T, id kurabe.InstanceID) {
	t.Helper()
	if _, err := store.NewChange().PutAssignment(kurabe.Assignment{Host: "h1", Instance: id}, 0).Commit(t.Context(), f.kv); err != nil {
		t.Fatal(err)
	}
}

// linked is the stream of a host, which has begun.
func linked(t *testing.T, link hostlink.Link) <-chan hostlink.Update {
	t.Helper()
	updates := link.Assignments(t.Context(), "h1")
	select {
	case <-updates:
	case <-time.After(30 * time.Second):
		t.Fatal("its stream does not begin")
	}
	return updates
}

// told waits until an update names an instance.
func told(t *testing.T, updates <-chan hostlink.Update, id kurabe.InstanceID) {
	t.Helper()
	for end := time.After(30 * time.Second); ; {
		select {
		case u := <-updates:
			for _, a := range u.Orders {
				if a.Envelope().Ref == id.Ref() {
					return
				}
			}
		case <-end:
			t.Fatalf("nobody is told of %s", id)
		}
	}
}

// untold demands that nothing comes for two beats.
func untold(t *testing.T, updates <-chan hostlink.Update) {
	t.Helper()
	select {
	case u := <-updates:
		t.Fatalf("it is told %+v", u)
	case <-time.After(2 * time.Second):
	}
}

// TestACopyGetsNothing: a copy of a machine hears and may do nothing while the first one is
// there, which notices nothing of it.
func TestACopyGetsNothing(t *testing.T) {
	f := fresh(t)
	go f.server.Watch(t.Context()) // ends with the test
	first, copied := f.machine(t, "boot-1 8:1"), f.machine(t, "boot-2 8:1")
	orders := linked(t, first)
	go lookedLeases().Beat(t.Context(), first.Alive)
	stolen := copied.Assignments(t.Context(), "h1")
	other := func(life string) *hostlink.Remote { return f.machine(t, life) }
	_, word := other("boot-2 8:1").Alive(t.Context(), hostlink.Alive{})
	_, renewal := other("boot-1 8:2").Renew(t.Context(), []byte("csr"))
	for name, err := range map[string]error{
		"word": word, "renewal": renewal, "place": other("boot-2 8:1").Place(t.Context(), time.Second, time.Second),
		"report": other("").PutHost(t.Context(), kurabe.HostReport{Host: "h1"}),
	} {
		if !errors.Is(err, hostlink.ErrDouble) || !errors.Is(err, hostlink.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.assign(t, "db-1")
	told(t, orders, "db-1")
	wake, done := f.view.Subscribe()
	defer done()
	for end := time.After(30 * time.Second); ; {
		if p, _ := f.view.Presence("h1"); p.Double != nil && p.Double.From == "127.0.0.1" {
			break
		}
		select {
		case <-wake:
		case <-end:
			t.Fatal("nobody is told of the copy")
		}
	}
	untold(t, stolen)
	if err := first.PutHost(t.Context(), kurabe.HostReport{Host: "h1"}); err != nil {
		t.Errorf("the first one: %v", err)
	}
}

// TestAnAgentThatIsStartedAgain is let in at once, whatever is left of the one before.
func TestAnAgentThatIsStartedAgain(t *testing.T) {
	f := fresh(t)
	before := f.machine(t, "boot-1 8:1")
	linked(t, before)
	again := f.machine(t, "boot-1 8:1")
	if _, err := again.Alive(t.Context(), hostlink.Alive{}); err != nil {
		t.Fatal(err)
	}
	orders := linked(t, again)
	f.assign(t, "db-1")
	told(t, orders, "db-1")
}

// TestAMachineThatIsStartedAnew gets the place when what it was before is lost; then that is
// told nothing more, though its connection is still there.
func TestAMachineThatIsStartedAnew(t *testing.T) {
	f := fresh(t)
	go f.server.Watch(t.Context()) // ends with the test
	before, ctx := f.machine(t, "boot-1 8:1"), t.Context()
	orders := linked(t, before)
	if _, err := before.Alive(ctx, hostlink.Alive{}); err != nil { // its last word
		t.Fatal(err)
	}
	anew := f.machine(t, "boot-2 8:1")
	if err := anew.Place(ctx, time.Second, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	fresh := linked(t, anew)
	f.assign(t, "db-1")
	told(t, fresh, "db-1")
	untold(t, orders)
	if _, err := f.machine(t, "boot-1 8:1").Alive(ctx, hostlink.Alive{}); !errors.Is(err, hostlink.ErrDouble) {
		t.Errorf("what it was before: %v", err)
	}
	if p, _ := f.view.Presence("h1"); p.Double != nil {
		t.Errorf("it is told to be a copy: %+v", p.Double)
	}
}

// TestACopyAtAnotherServer: the planner changes, and the copy is the first to find the new one.
func TestACopyAtAnotherServer(t *testing.T) {
	ca, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := newHAServers(t, 2, store.NewMemory(), ca)
	revision := s.all[0].joined(t, "h1")
	if err := s.all[1].view.WaitRevision(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	if err := s.all[0].machine(t, "boot-1 8:1").Place(t.Context(), 30*time.Second, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	s.elect(t, 1)
	if err := s.all[0].machine(t, "boot-2 8:1").Place(t.Context(), 30*time.Second, time.Second); !errors.Is(err, hostlink.ErrDouble) {
		t.Errorf("the copy: %v", err)
	}
	if err := s.all[0].machine(t, "boot-1 8:1").Place(t.Context(), 30*time.Second, time.Second); err != nil {
		t.Errorf("the first one: %v", err)
	}
}

// TestPlaceOfNobody: while the service is not reached, nobody waits for long.
func TestPlaceOfNobody(t *testing.T) {
	f := fresh(t)
	f.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := f.machine(t, "boot-1 8:1").Place(ctx, 100*time.Millisecond, time.Minute); err == nil || errors.Is(err, hostlink.ErrRefused) || ctx.Err() != nil {
		t.Error(err)
	}
}
