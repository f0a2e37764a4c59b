package hostlink_test

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/hostlink/hostlinktest"
	"kurabe/internal/hostread"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// several is servers of one service, one of which is the elected planner's.
type haServers struct {
	all     []*far
	planner atomic.Int32
	since   atomic.Int64 // ns
}

// newHAServers makes n servers s0, s1, … over one store; the first is the planner's.
func newHAServers(t *testing.T, n int, kv store.KV, ca *pki.CA) *haServers {
	t.Helper()
	s := &haServers{}
	for i := range n {
		f := newFar(t, kv, ca)
		f.server.Elected = func() (hostlink.Election, bool) {
			return hostlink.Election{Since: time.Unix(0, s.since.Load())}, int(s.planner.Load()) == i
		}
		f.server.Identity = *f.party(t, pki.Party{Kind: pki.PartyServer, ID: string(id(i))})
		s.all = append(s.all, f)
		h := kurabe.JoinedHost{ID: id(i), Server: &kurabe.ServerPlace{Link: f.addr}}
		if _, err := store.NewChange().PutJoinedHost(h, 0).Commit(t.Context(), kv); err != nil {
			t.Fatal(err)
		}
	}
	s.elect(t, 0)
	return s
}

func id(i int) kurabe.HostID { return kurabe.HostID("s" + string(rune('0'+i))) }

// elect makes a server the planner's, and waits until all know; -1 for none.
func (s *haServers) elect(t *testing.T, i int) {
	t.Helper()
	s.since.Store(time.Now().UnixNano())
	s.planner.Store(int32(i))
	op := store.Op{Key: store.PlannerElectionKey, Delete: true}
	if i >= 0 {
		op = store.Op{Key: store.PlannerElectionKey, Value: []byte(id(i))}
	}
	revision, err := s.all[0].kv.Txn(t.Context(), nil, []store.Op{op})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.all {
		if err := f.view.WaitRevision(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRedirected: the suite, by an agent that knows the last server only.
func TestRedirected(t *testing.T) {
	hostlinktest.Run(t, func(t *testing.T, kv store.KV, signer hostlink.Signer) hostlink.Link {
		s := newHAServers(t, 3, kv, signer.(*pki.CA))
		s.all[0].joined(t, "h1")
		link := s.all[2].agent(t, "h1")
		settle(t, link)
		return link
	})
}

// settle follows a link until it has found the planner's server.
func settle(t *testing.T, link hostlink.Link) {
	t.Helper()
	updates := link.Assignments(t.Context(), "h1")
	select {
	case <-updates:
	case <-time.After(20 * time.Second):
		t.Fatal("no server is found")
	}
	go func() {
		for range updates { // ends with the test
		}
	}()
}

func TestAgentFollowsThePlanner(t *testing.T) {
	ca, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := newHAServers(t, 3, store.NewMemory(), ca)
	s.all[0].joined(t, "h1")
	learned := make(chan []string, 10)
	identity := s.all[0].party(t, pki.Party{Kind: pki.PartyAgent, ID: "h1"})
	link := hostlink.NewRemote(hostlink.RemoteConfig{
		Server: s.all[1].addr, Roots: s.all[0].roots, Identity: func() *tls.Certificate { return identity }, Log: quiet(),
		Learned: func(all []string) { learned <- all },
		Reads:   readsOf("h1"),
	})
	beats := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	defer func() { stop(); <-beats }()
	go func() { defer close(beats); _ = lookedLeases().Beat(ctx, link.Alive) }()
	settle(t, link)
	if all := <-learned; !slices.Equal(all, []string{s.all[0].addr, s.all[1].addr, s.all[2].addr}) {
		t.Errorf("it has learned of %v", all)
	}
	reach := func(what string) {
		t.Helper()
		began := time.Now()
		for link.PutHost(t.Context(), kurabe.HostReport{Host: "h1"}) != nil {
			if time.Since(began) > 20*time.Second {
				t.Fatalf("%s: no server is found", what)
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Logf("%s: %s", what, time.Since(began))
		// Whoever is asked on another server has the host asked all the same.
		for i, f := range s.all {
			if _, err := hostread.Ask(t.Context(), asks(f), "h1", echo, "k"); i > 0 && err != nil {
				t.Errorf("%s: asked at server %d: %v", what, i, err)
			}
		}
	}
	reach("at first")
	s.elect(t, 2)
	reach("another one is elected")
	s.elect(t, -1)
	time.Sleep(1500 * time.Millisecond) // until its stream has ended
	if err := link.PutHost(t.Context(), kurabe.HostReport{Host: "h1"}); err == nil {
		t.Error("somebody answers while nobody is elected")
	}
	s.elect(t, 0)
	reach("elected again")
	s.all[0].stop()
	s.elect(t, 1)
	reach("its server is gone")
}

// TestOnlyThePlannerHears: no other server takes a beat, or judges.
func TestOnlyThePlannerHears(t *testing.T) {
	ca, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := newHAServers(t, 2, store.NewMemory(), ca)
	s.all[0].joined(t, "h1")
	for _, f := range s.all {
		go f.server.Watch(t.Context()) // ends with the test
	}
	link := s.all[1].agent(t, "h1")
	settle(t, link)
	go lookedLeases().Beat(t.Context(), link.Alive) // ends with the test
	until := func(what string, lost bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if p, ok := s.all[0].view.Presence("h1"); ok && p.Lost == lost {
				return
			}
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	until("it is not heard", false)
	// Elected anew, the silence counts from then, whatever was heard before.
	s.elect(t, -1)
	s.all[1].now.Store(int64(time.Hour))
	s.all[0].now.Store(int64(time.Hour))
	time.Sleep(1500 * time.Millisecond)
	if p, _ := s.all[0].view.Presence("h1"); p.Lost {
		t.Error("judged while nobody is elected")
	}
}

// TestEnter: what makes a server goes to one that was let in as one.
func TestEnter(t *testing.T) {
	ca, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := newHAServers(t, 2, store.NewMemory(), ca)
	f := s.all[1]
	f.joined(t, "h1")
	f.server.Enter = func(_ context.Context, host kurabe.HostID) (hostlink.EnterAnswer, error) {
		return hostlink.EnterAnswer{Cluster: string(host)}, nil
	}
	for name, p := range map[string]pki.Party{
		"an agent": {Kind: pki.PartyAgent, ID: "s1"}, "an agent's host": {Kind: pki.PartyServer, ID: "h1"}, "nobody": {Kind: pki.PartyServer, ID: "s9"},
	} {
		if _, err := hostlink.Enter(t.Context(), f.addr, f.roots, *f.party(t, p)); !errors.Is(err, hostlink.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a, err := hostlink.Enter(t.Context(), f.addr, f.roots, *f.party(t, pki.Party{Kind: pki.PartyServer, ID: "s1"}))
	if err != nil || a.Cluster != "s1" {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestHomeGoesOver: the suite, by a link that leaves the process in the middle.
func TestHomeGoesOver(t *testing.T) {
	hostlinktest.Run(t, func(t *testing.T, kv store.KV, signer hostlink.Signer) hostlink.Link {
		ca := signer.(*pki.CA)
		s := newHAServers(t, 2, kv, ca)
		s.all[0].joined(t, "h1")
		far := s.all[1].agent(t, "h1")
		settle(t, far)
		home := hostlink.NewHome(hostlink.NewLocal(kv, ca, quiet()), far)
		time.AfterFunc(50*time.Millisecond, home.GoFar)
		return home
	})
}
