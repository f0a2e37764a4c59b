package proxy

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"kurabe"
)

var now = time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)

// host is one with its own pool of a network that all share.
func host(id kurabe.HostID, pool string) kurabe.HostReport {
	return kurabe.HostReport{Host: id, Zones: []string{"a"}, AddressPool: pool, Network: "10.0.0.0/16"}
}

func server(id kurabe.InstanceID, on kurabe.HostID, address string, duty kurabe.Duty, epoch kurabe.Epoch) kurabe.Assignment {
	a := kurabe.Assignment{Instance: id, Host: on, Goal: kurabe.GoalRunning, Address: "10.0.9.9", ListensAt: address, Port: 5432, Settings: map[string]string{"max_connections": "200"}}
	if epoch > 0 {
		a.Role = &kurabe.Role{Epoch: epoch, Duty: duty}
	}
	return a
}

// pair is a target of two servers, of which one writes.
func pair(primary kurabe.InstanceID, epoch kurabe.Epoch, admits bool) *Target {
	duty := func(id kurabe.InstanceID) kurabe.Duty {
		if id == primary {
			return kurabe.DutyWrite
		}
		return kurabe.DutyFollow
	}
	return &Target{
		Group:       &kurabe.Group{Primary: primary, Epoch: epoch},
		Assignments: []kurabe.Assignment{server("db-1", "h1", "10.0.1.1", duty("db-1"), epoch), server("db-1~2", "h2", "10.0.2.1", duty("db-1~2"), epoch)},
		Reports:     []kurabe.InstanceReport{{Instance: primary, Role: &kurabe.RoleReport{Epoch: epoch, Writing: admits}}},
	}
}

// world is one of three hosts and a proxy of a pair.
func world() World {
	return World{
		Now: now,
		Spec: &kurabe.Proxy{
			ID: "prx-1", Name: "p", Revision: 1, Engine: kurabe.Postgres, Auth: []kurabe.ProxyAuth{{SecretARN: "arn:s"}, {SecretARN: "arn:gone"}},
			Pool: kurabe.ProxyPool{MaxConnectionsPercent: 50, MaxIdleConnectionsPercent: 10, BorrowTimeoutS: 7}, Target: "db-1",
			Endpoints: []kurabe.ProxyEndpoint{{ID: "e1", Name: "default"}, {ID: "e2", Name: "ro", Reads: true}},
		},
		Target: pair("db-1", 3, true), Secrets: map[string]kurabe.SecretVersionID{"arn:s": "v1"},
		Hosts:     []kurabe.HostReport{host("h1", "10.0.1.0/24"), host("h2", "10.0.2.0/24"), host("h3", "10.0.3.0/24")},
		Closed:    map[kurabe.HostID]string{},
		Lost:      map[kurabe.HostID]time.Time{},
		Removed:   map[kurabe.HostID]bool{},
		Addresses: map[string]bool{"10.0.2.1": true},
		Proxies:   map[kurabe.HostID]int{"h2": 0, "h3": 1},
	}
}

// then is the world after a plan was written, in which the hosts have done what they were told.
func (w World) then(t *testing.T) World {
	t.Helper()
	before := w
	before.Orders = slices.Clone(w.Orders)
	r := Next(w)
	if !reflect.DeepEqual(before, w) {
		t.Fatal("the plan has changed its input")
	}
	if r.Status != nil {
		w.Status = r.Status
	}
	orders := slices.DeleteFunc(slices.Clone(w.Orders), func(o Order) bool { return slices.Contains(r.Withdrawn, o.Assignment.Host) })
	for _, a := range r.Assignments {
		at := slices.IndexFunc(orders, func(o Order) bool { return o.Assignment.Host == a.Host })
		if at >= 0 && orders[at].Assignment.Generation >= a.Generation {
			t.Fatalf("the generation of host %s falls from %d to %d", a.Host, orders[at].Assignment.Generation, a.Generation)
		}
		o := Order{Assignment: a, Report: &kurabe.ProxyReport{Host: a.Host, Proxy: a.Proxy, Generation: a.Generation, Done: !a.Absent, Absent: a.Absent, PID: 7}}
		if _, lost := w.Lost[a.Host]; lost {
			o.Report = nil
		}
		if at >= 0 {
			orders[at] = o
		} else {
			orders = append(orders, o)
		}
	}
	w.Orders = orders
	return w
}

// settled plans until nothing changes.
func (w World) settled(t *testing.T) World {
	t.Helper()
	for range 10 {
		next := w.then(t)
		if reflect.DeepEqual(next, w) {
			return w
		}
		w = next
	}
	t.Fatalf("the plan finds no end: %+v", Next(w))
	return w
}

func (w World) order(t *testing.T, of kurabe.HostID) kurabe.ProxyAssignment {
	t.Helper()
	for _, o := range w.Orders {
		if o.Assignment.Host == of {
			return o.Assignment
		}
	}
	t.Fatalf("host %s has no order: %+v", of, w.Orders)
	return kurabe.ProxyAssignment{}
}

func TestCreated(t *testing.T) {
	w := world().settled(t)
	a := w.order(t, "h2") // not with the primary, and not where another proxy is
	if len(w.Orders) != 1 || a.MaxServers != 100 || a.MaxIdle != 20 || a.BorrowTimeoutS != 7 || a.Port != 5432 || !a.ServerTLS {
		t.Errorf("%+v", w.Orders)
	}
	if got := a.Endpoints; len(got) != 2 || got[0].Address != "10.0.2.2" || got[1].Address != "10.0.2.3" || !got[1].Reads {
		t.Errorf("endpoints %+v", got)
	}
	if want := []kurabe.ProxySecret{{ARN: "arn:s", Version: "v1"}}; !slices.Equal(a.Secrets, want) {
		t.Errorf("secrets %+v", a.Secrets)
	}
	if a.Route.Writer != "10.0.1.1:5432" || a.Route.Epoch != 1 {
		t.Errorf("route %+v", a.Route)
	}
	s := w.Status
	if s.State != kurabe.ProxyAvailable || s.Host != "h2" || len(s.Endpoints) != 2 || s.Endpoints[0].State != kurabe.ProxyAvailable || s.Endpoints[0].Address != "10.0.2.2" {
		t.Errorf("status %+v", s)
	}
	if len(s.Targets) != 1 || s.Targets[0].Server != "db-1" || s.Targets[0].State != kurabe.TargetRegistering {
		t.Errorf("targets %+v", s.Targets)
	}
}

func TestNoHost(t *testing.T) {
	w := world()
	w.Hosts = nil
	w = w.settled(t)
	if w.Status.State != kurabe.ProxyInsufficientResource || len(w.Orders) != 0 {
		t.Fatalf("%+v", w.Status)
	}
	w.Hosts = world().Hosts
	if w = w.settled(t); w.Status.State != kurabe.ProxyAvailable {
		t.Errorf("%+v", w.Status)
	}
	full := world()
	full.Hosts = []kurabe.HostReport{host("h9", "10.0.9.0/31")}
	if full = full.settled(t); full.Status.State != kurabe.ProxyIncompatibleNetwork {
		t.Errorf("%+v", full.Status)
	}
}

// TestRoute: a deposed primary is named no more from the moment on at which the group has
// another epoch, and its successor when it admits clients.
func TestRoute(t *testing.T) {
	w := world().settled(t)
	route := func() kurabe.ProxyRoute { return w.order(t, w.Status.Host).Route }
	first := route()
	for _, s := range []struct {
		name   string
		target *Target
		writer string
		rises  bool
	}{
		{"another epoch", pair("db-1~2", 4, false), "", true},
		{"it admits clients", pair("db-1~2", 4, true), "10.0.2.1:5432", false},
		{"it says nothing for a moment", pair("db-1~2", 4, false), "10.0.2.1:5432", false},
		{"back at once", pair("db-1", 5, true), "10.0.1.1:5432", true},
		{"the same one, in another epoch", pair("db-1", 6, false), "", true},
		{"and again", pair("db-1", 6, true), "10.0.1.1:5432", false},
		{"the target is gone", nil, "", true},
	} {
		w.Target = s.target
		w = w.settled(t)
		got := route()
		if got.Writer != s.writer || (got.Epoch > first.Epoch) != s.rises || got.Epoch < first.Epoch {
			t.Errorf("%s: %+v after %+v", s.name, got, first)
		}
		first = got
		if w.Status.State != kurabe.ProxyAvailable {
			t.Errorf("%s: the state is %s", s.name, w.Status.State)
		}
	}
}

// An instance that becomes Multi-AZ keeps its server, and its clients.
func TestBecomesMultiAZ(t *testing.T) {
	w := world()
	w.Target = &Target{Assignments: []kurabe.Assignment{server("db-1", "h1", "10.0.1.1", "", 0)}}
	w = w.settled(t)
	before := w.order(t, w.Status.Host).Route
	w.Target = pair("db-1", 1, false)
	w = w.settled(t)
	if after := w.order(t, w.Status.Host).Route; !reflect.DeepEqual(before, after) {
		t.Errorf("%+v became %+v", before, after)
	}
}

func TestReaders(t *testing.T) {
	w := world()
	w.Target.Assignments[0].Role.Readers = []string{"10.0.2.1", "10.0.7.7"}
	w = w.settled(t)
	a := w.order(t, w.Status.Host)
	if !slices.Equal(a.Route.Readers, []string{"10.0.2.1:5432"}) || len(w.Status.Targets) != 2 || !w.Status.Targets[1].Reads {
		t.Errorf("%+v, targets %+v", a.Route, w.Status.Targets)
	}
}

// TestHostIsLost: a proxy moves with its addresses, after a while, and its old host removes it
// when it is back.
func TestHostIsLost(t *testing.T) {
	w := world().settled(t)
	before := w.order(t, "h2")
	w.Lost["h2"] = now
	if r := Next(w); len(r.Assignments) > 0 || !r.LookAgain.Equal(now.Add(moveAfter)) {
		t.Fatalf("at once: %+v", r)
	}
	w.Now = now.Add(moveAfter)
	w = w.settled(t)
	after := w.order(t, "h3")
	if !reflect.DeepEqual(before.Endpoints, after.Endpoints) || after.Route.Epoch < before.Route.Epoch || w.Status.Host != "h3" || !w.order(t, "h2").Absent {
		t.Errorf("%+v became %+v", before, after)
	}
	delete(w.Lost, "h2")
	w.Orders = slices.Clone(w.Orders)
	for n := range w.Orders {
		if a := w.Orders[n].Assignment; a.Host == "h2" {
			w.Orders[n].Report = &kurabe.ProxyReport{Host: "h2", Generation: a.Generation, Absent: true}
		}
	}
	if w = w.settled(t); len(w.Orders) != 1 || w.Status.Host != "h3" {
		t.Errorf("when it is back: %+v", w.Orders)
	}
}

// A host with a pool that no other can hold gives the proxy another address.
func TestAddressStaysWithItsNetwork(t *testing.T) {
	w := world()
	for n := range w.Hosts {
		w.Hosts[n].Network = ""
	}
	w = w.settled(t)
	w.Lost = map[kurabe.HostID]time.Time{"h2": now.Add(-time.Hour)}
	w = w.settled(t)
	if at := w.order(t, "h3").Endpoints[0].Address; at != "10.0.3.1" {
		t.Errorf("the address is %s", at)
	}
}

func TestModified(t *testing.T) {
	w := world().settled(t)
	spec := *w.Spec
	spec.Revision, spec.RequireTLS = 2, true
	w.Spec = &spec
	r := Next(w)
	if r.Status == nil || r.Status.State != kurabe.ProxyModifying || len(r.Assignments) != 1 || !r.Assignments[0].RequireTLS {
		t.Fatalf("%+v", r)
	}
	if w = w.settled(t); w.Status.State != kurabe.ProxyAvailable {
		t.Errorf("%+v", w.Status)
	}
	w.Secrets = maps.Clone(w.Secrets)
	w.Secrets["arn:s"] = "v2"
	r = Next(w)
	if len(r.Assignments) != 1 || r.Assignments[0].Secrets[0].Version != "v2" || r.Status != nil && r.Status.State != kurabe.ProxyAvailable {
		t.Errorf("another secret: %+v", r)
	}
}

func messages(list []kurabe.Event) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Message)
	}
	return out
}

// The event of its creation is told once, when clients can log in.
func TestCreatedIsTold(t *testing.T) {
	w := world()
	var told []string
	for range 4 {
		told = append(told, messages(Next(w).Events)...)
		w = w.then(t)
	}
	status := *w.Status
	status.State = kurabe.ProxyInsufficientResource
	w.Status = &status
	if told = append(told, messages(Next(w).Events)...); !slices.Equal(told, []string{"RDS created DB proxy p"}) {
		t.Errorf("told %q", told)
	}
}

func TestDeleted(t *testing.T) {
	w := world().settled(t)
	spec := *w.Spec
	spec.Deleting = &kurabe.Deletion{At: now}
	w.Spec = &spec
	if r := Next(w); r.Gone || len(r.Assignments) != 1 || !r.Assignments[0].Absent || r.Status.State != kurabe.ProxyDeleting {
		t.Fatalf("%+v", r)
	}
	w = w.then(t)
	if r := Next(w); !r.Gone || len(r.Events) != 1 || r.Events[0].Message != "RDS deleted DB proxy p" {
		t.Errorf("%+v", r)
	}
	never := world()
	never.Spec = &spec
	if r := Next(never); !r.Gone {
		t.Errorf("one that was never placed: %+v", r)
	}
}
