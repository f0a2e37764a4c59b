package control

import (
	"context"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

func TestJoinTokens(t *testing.T) {
	c := newTestWorld(t)
	now := c.Now()
	c.Now = func() time.Time { return now }
	ctx := t.Context()
	for _, validity := range []time.Duration{0, -time.Hour, time.Second, 8 * 24 * time.Hour} {
		if _, err := c.AddJoinToken(ctx, "t0", "h", validity); kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue {
			t.Errorf("good for %s: %v", validity, err)
		}
	}
	for _, id := range []string{"t1", "t2"} {
		if _, err := c.AddJoinToken(ctx, id, "right", time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	host := kurabe.JoinedHost{ID: "h2", Zones: []string{"us-east-1b"}, Key: "k"}
	refused := func(what, says, token, hash string, h kurabe.JoinedHost) {
		t.Helper()
		if err := c.AdmitHost(ctx, token, hash, h); kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	admitted := func(what, token string, h kurabe.JoinedHost) {
		t.Helper()
		if err := c.AdmitHost(ctx, token, "right", h); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("no such token", "not known", "t9", "right", host)
	refused("a wrong secret", "not known", "t1", "wrong", host)
	refused("no zone", "no zone", "t1", "right", kurabe.JoinedHost{ID: "h2", Key: "k"})
	refused("a zone that is none", "no zone", "t1", "right", kurabe.JoinedHost{ID: "h2", Zones: []string{"x"}, Key: "k"})
	refused("the id of a host that there is", "host h1 already", "t1", "right", kurabe.JoinedHost{ID: "h1", Zones: host.Zones, Key: "k"})
	admitted("at last", "t1", host)
	admitted("once more, since the answer was lost", "t1", host)
	refused("with another key", "was used", "t1", "right", kurabe.JoinedHost{ID: "h2", Zones: host.Zones, Key: "other"})
	refused("another host", "was used", "t1", "right", kurabe.JoinedHost{ID: "h3", Zones: host.Zones, Key: "k"})
	refused("the id of a joined host, with a good token", "host h2 already", "t2", "right", kurabe.JoinedHost{ID: "h2", Zones: host.Zones, Key: "other"})
	server := kurabe.JoinedHost{ID: "h4", Zones: host.Zones, Key: "k4", Server: &kurabe.ServerPlace{Link: "l", Peer: "p"}}
	if _, err := c.AddServerToken(ctx, "t4", "right", time.Hour); err != nil {
		t.Fatal(err)
	}
	refused("a server with an agent's token", "for an agent", "t2", "right", server)
	refused("an agent with a server's token", "for a server", "t4", "right", kurabe.JoinedHost{ID: "h3", Zones: host.Zones, Key: "k"})
	admitted("a server", "t4", server)
	if s := c.View.Servers(); len(s) != 1 || s[0].Value.ID != "h4" {
		t.Errorf("servers: %+v", s)
	}
	if _, err := c.AddServerToken(ctx, "t5", "right", time.Hour); err != nil {
		t.Fatal(err)
	}
	refused("a server at the address of another one", "server h4 has that address", "t5", "right",
		kurabe.JoinedHost{ID: "h5", Zones: host.Zones, Key: "k5", Server: &kurabe.ServerPlace{Link: "l2", Peer: "p"}})
	now = now.Add(time.Hour)
	refused("after its time, by the host that it has let in", "expired", "t1", "right", host)
	refused("after its time", "expired", "t2", "right", kurabe.JoinedHost{ID: "h3", Zones: host.Zones, Key: "k"})
	if _, err := c.AddJoinToken(ctx, "t3", "right", time.Hour); err != nil {
		t.Fatal(err)
	}
	if left := c.View.JoinTokens(); len(left) != 1 || left[0].Value.ID != "t3" {
		t.Errorf("expired tokens stay: %+v", left)
	}
}

func TestPlaceOnHosts(t *testing.T) {
	c := newTestWorld(t)
	far := scopetest.Host()
	far.Host, far.Zones, far.AddressPool = "h2", []string{"us-east-1d"}, "10.0.0.64/27"
	c.Zones = append(c.Zones, "us-east-1d")
	joined := kurabe.JoinedHost{ID: "h2", Zones: far.Zones, Key: "k"}
	scopetest.Commit(t, c.Scope, store.NewChange().PutJoinedHost(joined, 0).PutHost(far))
	spec := kurabe.InstanceSpec{ID: "db-X", Zone: "us-east-1d", Engine: kurabe.Postgres, Now: kurabe.InstanceSettings{EngineVersion: "15.18", Class: "db.local.micro"}}
	expect := func(what, says string) {
		t.Helper()
		err := c.CheckPlace(spec)
		if says == "" && err != nil || says != "" && (kurabe.CodeOf(err) != kurabe.CodeInsufficientCapacity || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	expect("a host that was not heard", "was not heard yet")
	record, _ := c.View.JoinedHost("h2")
	presence := func(lost bool) {
		scopetest.Commit(t, c.Scope, store.NewChange().PutPresence(kurabe.Presence{Host: "h2", Lost: lost, Since: c.Now()}, record.ModRevision))
	}
	presence(false)
	expect("a host that is heard", "")
	presence(true)
	expect("a host that is lost", "is not heard")
	presence(false)
	spec.Now.MultiAZ = true
	expect("a pair on hosts that do not reach each other", "cannot reach each other")
	spec.Zone = ""
	expect("a pair where it can be", "")
	spec.Now.MultiAZ, spec.Zone = false, "us-east-1d"
	if err := c.DrainHost(t.Context(), "h2", true); err != nil {
		t.Fatal(err)
	}
	expect("a drained host", "is drained")
	if err := c.RemoveHost(t.Context(), "h2"); err != nil {
		t.Fatal(err)
	}
	if _, known := c.View.Host("h2"); known {
		t.Error("what a removed host said of itself is still there")
	}
	expect("a removed host", "no host is in zone")
}

func TestHostIsGivenUp(t *testing.T) {
	c := newTestWorld(t)
	ctx := t.Context()
	far := scopetest.Host()
	far.Host, far.Zones = "h2", []string{"us-east-1a"}
	scopetest.Commit(t, c.Scope, store.NewChange().PutJoinedHost(kurabe.JoinedHost{ID: "h2", Zones: far.Zones, Key: "k"}, 0).PutHost(far).
		PutReport(kurabe.InstanceReport{Host: "h2", Instance: "db-1"}))
	if err := c.GiveUpHost(ctx, "h1"); kurabe.CodeOf(err) != kurabe.CodeInvalidInstanceState {
		t.Errorf("the service's own host: %v", err)
	}
	if err := c.GiveUpHost(ctx, "h2"); kurabe.CodeOf(err) != kurabe.CodeInvalidInstanceState || !strings.Contains(err.Error(), "is heard") {
		t.Errorf("one that is not lost: %v", err)
	}
	record, _ := c.View.JoinedHost("h2")
	scopetest.Commit(t, c.Scope, store.NewChange().PutPresence(kurabe.Presence{Host: "h2", Lost: true, Since: c.Now()}, record.ModRevision))
	if err := c.GiveUpHost(ctx, "h2"); err != nil {
		t.Fatal(err)
	}
	if !c.View.Gone("h2") || c.View.Closed("h2") == "" {
		t.Error("it is not given up")
	}
	if _, err := c.AddJoinToken(ctx, "t1", "right", time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := c.AdmitHost(ctx, "t1", "right", kurabe.JoinedHost{ID: "h2", Zones: far.Zones, Key: "k"}); err == nil || !strings.Contains(err.Error(), "given up") {
		t.Errorf("let in again: %v", err)
	}
	if err := c.RemoveHost(ctx, "h2"); err != nil {
		t.Fatal(err)
	}
	if entries, _, err := c.KV.List(ctx, store.ReportPrefix("h2")); err != nil || len(entries) != 0 {
		t.Errorf("its words stay: %v, %v", entries, err)
	}
}

// TestServerIsRemoved: one that holds the state goes out of those that do first, and stays
// when that is refused.
func TestServerIsRemoved(t *testing.T) {
	c := newTestWorld(t)
	ctx := t.Context()
	scopetest.Commit(t, c.Scope, store.NewChange().PutJoinedHost(kurabe.JoinedHost{ID: "h2", Drained: true, Server: &kurabe.ServerPlace{Peer: "p2"}}, 0))
	var asked []string
	refusal := kurabe.Errorf(kurabe.CodeInvalidInstanceState, "too few")
	c.RemoveMember = func(_ context.Context, h kurabe.JoinedHost) error {
		asked = append(asked, h.Server.Peer)
		return refusal
	}
	if err := c.RemoveHost(ctx, "h2"); err != refusal || len(c.View.Servers()) != 1 {
		t.Errorf("%v; servers %v", err, c.View.Servers())
	}
	record, _ := c.View.JoinedHost("h2")
	scopetest.Commit(t, c.Scope, store.NewChange().PutPresence(kurabe.Presence{Host: "h2", Lost: true, Since: c.Now()}, record.ModRevision))
	if err := c.GiveUpHost(ctx, "h2"); err != refusal || c.View.Gone("h2") {
		t.Errorf("%v", err)
	}
	c.RemoveMember = func(context.Context, kurabe.JoinedHost) error { return nil }
	if err := c.GiveUpHost(ctx, "h2"); err != nil || len(c.View.Servers()) != 0 {
		t.Errorf("%v; servers %v", err, c.View.Servers())
	}
	// Another one may be at its address by now.
	c.RemoveMember = func(context.Context, kurabe.JoinedHost) error { return refusal }
	if err := c.RemoveHost(ctx, "h2"); err != nil {
		t.Error(err)
	}
	if len(asked) != 2 || asked[0] != "p2" {
		t.Errorf("asked: %v", asked)
	}
}

// A host that was removed, or given up, does not come back with the token that it had.
func TestARemovedHostHasNoToken(t *testing.T) {
	for _, gone := range []bool{false, true} {
		c := newTestWorld(t)
		ctx := t.Context()
		if _, err := c.AddJoinToken(ctx, "t1", "right", time.Hour); err != nil {
			t.Fatal(err)
		}
		h := kurabe.JoinedHost{ID: "h2", Zones: []string{"us-east-1a"}, Key: "k"}
		for range 2 { // the answer may have been lost
			if err := c.AdmitHost(ctx, "t1", "right", h); err != nil || c.CheckJoinToken("t1", "right") != nil || c.CheckJoinToken("t1", "wrong") == nil {
				t.Fatal(err)
			}
		}
		if gone {
			record, _ := c.View.JoinedHost("h2")
			scopetest.Commit(t, c.Scope, store.NewChange().PutPresence(kurabe.Presence{Host: "h2", Lost: true, Since: c.Now()}, record.ModRevision))
			if err := c.GiveUpHost(ctx, "h2"); err != nil {
				t.Fatal(err)
			}
		} else if err := c.DrainHost(ctx, "h2", true); err != nil {
			t.Fatal(err)
		}
		if err := c.RemoveHost(ctx, "h2"); err != nil {
			t.Fatal(err)
		}
		if err := c.AdmitHost(ctx, "t1", "right", h); err == nil || c.CheckJoinToken("t1", "right") == nil {
			t.Errorf("given up %v: let in again: %v", gone, err)
		}
	}
}
