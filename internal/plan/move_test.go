package plan_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kurabe"
	"kurabe/internal/plan/backup"
)

// aloneFleet is an instance with one server, on one of several hosts.
func aloneFleet(t tester, engine kurabe.EngineName, hosts, days int) *groupFleet {
	t.Helper()
	f := newGroupFleet(engine, false)
	f.w.Spec.Now.MultiAZ, f.w.Spec.Now.RetentionDays = false, days
	f.spread(hosts)
	f.calm(t)
	if f.w.Group != nil || len(f.servers) != 1 {
		t.Fatalf("it is no lone server: %+v", f.w.Group)
	}
	f.available()
	return f
}

// available ends the snapshot that backups begin with, which nobody takes here.
func (f *groupFleet) available() {
	s := *f.w.Status
	s.State, s.Action = kurabe.StateAvailable, ""
	f.w.Status = &s
	f.w.Backups = []backup.Backup{{Name: "first", CreatedAt: f.w.Now, TakenAt: f.w.Now, State: kurabe.SnapshotAvailable}}
}

func (f *groupFleet) drain(hosts ...kurabe.HostID) {
	f.w.Closed = map[kurabe.HostID]string{}
	f.w.Emptied = f.w.Closed
	for _, h := range hosts {
		f.w.Closed[h] = "host " + string(h) + " is drained"
	}
}

// where is the host of the one server, "" when there are several.
func (f *groupFleet) where() kurabe.HostID {
	if len(f.servers) != 1 {
		return ""
	}
	return f.w.Members[f.primary()].Host
}

func TestLoneServerLeavesADrainedHost(t *testing.T) {
	for _, engine := range []kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB} {
		t.Run(string(engine), func(t *testing.T) {
			f := aloneFleet(t, engine, 3, 1)
			from := f.where()
			boot := f.w.Members[f.primary()].Boot
			f.drain(from)
			for range 4 {
				f.calm(t)
			}
			to := f.where()
			if to == "" || to == from || f.w.Status.Host != to || f.w.Status.Move != "" {
				t.Errorf("on %q after %q, status %+v", to, from, f.w.Status)
			}
			if w := f.servers[f.primary()]; !w.running || w.boot != boot || len(f.acked) == 0 {
				t.Errorf("the writer was started again: %+v", w)
			}
			for id := range f.acked {
				if !slices.Contains(f.servers[f.primary()].log, id) {
					t.Errorf("write %d is gone", id)
				}
			}
			if f.w.Status.Applied.MultiAZ || f.w.Status.SecondZone != "" || f.w.Status.Converting {
				t.Errorf("it is taken for a pair: %+v", f.w.Status)
			}
			if n := f.w.Status.Failovers; n != 0 {
				t.Errorf("a move is counted as %d failovers", n)
			}
			for _, id := range []string{"KURABE-EVENT-0026", "KURABE-EVENT-0027"} {
				if !f.told(id) {
					t.Errorf("%s is not told", id)
				}
			}
			for _, id := range []string{"RDS-EVENT-0024", "RDS-EVENT-0029", "RDS-EVENT-0030", "RDS-EVENT-0013", "RDS-EVENT-0015", "RDS-EVENT-0049", "KURABE-EVENT-0022"} {
				if f.told(id) {
					t.Errorf("%s is told", id)
				}
			}
			// And again, from where it is now.
			f.drain(from, to)
			for range 4 {
				f.calm(t)
			}
			if third := f.where(); third == "" || third == from || third == to {
				t.Errorf("on %q after %q and %q", third, from, to)
			}
		})
	}
}

func TestLoneServerStaysWhereItMust(t *testing.T) {
	for name, c := range map[string]struct {
		engine kurabe.EngineName
		hosts  int
		days   int
		change func(f *groupFleet)
	}{
		"no other host":         {kurabe.Postgres, 1, 1, func(*groupFleet) {}},
		"others are drained":    {kurabe.Postgres, 2, 1, func(f *groupFleet) { f.drain("h1", "h2") }},
		"another network":       {kurabe.Postgres, 2, 1, func(f *groupFleet) { f.elsewhere() }},
		"a restart is needed":   {kurabe.MariaDB, 2, 0, func(*groupFleet) {}},
		"its host is not heard": {kurabe.Postgres, 2, 1, func(f *groupFleet) { f.machines[f.where()].cut = true }},
	} {
		t.Run(name, func(t *testing.T) {
			f := aloneFleet(t, c.engine, c.hosts, c.days)
			from := f.where()
			f.drain(from)
			c.change(f)
			for range 3 {
				f.calm(t)
			}
			if name == "its host is not heard" { // calm has it heard again
				return
			}
			if f.where() != from || f.w.Group != nil || f.w.Status.Move != "" || len(f.w.Status.SecondZone) > 0 || f.told("KURABE-EVENT-0026") {
				t.Errorf("on %q, was on %q: %+v, %+v", f.where(), from, f.w.Status, f.w.Group)
			}
		})
	}
}

// elsewhere has every host but the primary's be in another network.
func (f *groupFleet) elsewhere() {
	for n, h := range f.w.Hosts {
		if h.Host != f.where() {
			f.w.Hosts[n].AddressPool, f.w.Hosts[n].Network = strings.Replace(h.AddressPool, "10.0.0", "10.0.9", 1), "10.0.9.0/24"
		}
	}
}

// A host in the zone of now goes before one with more memory.
func TestMoveKeepsItsZone(t *testing.T) {
	f := aloneFleet(t, kurabe.Postgres, 3, 1)
	from := f.where()
	zone := f.w.Status.Zone
	third := f.third(from, f.third(from, ""))
	for n, h := range f.w.Hosts {
		if h.Host == third {
			f.w.Hosts[n].Zones, f.w.Hosts[n].MemoryBytes = []string{zone, "us-east-1x"}, h.MemoryBytes-1
		}
	}
	f.drain(from)
	for range 4 {
		f.calm(t)
	}
	if f.where() != third || f.w.Status.Zone != zone {
		t.Errorf("on %s in %s; %s is in %s", f.where(), f.w.Status.Zone, third, zone)
	}
}

// Whoever takes the drain back before it has moved has it stay.
func TestMoveIsCalledOff(t *testing.T) {
	f := aloneFleet(t, kurabe.Postgres, 2, 1)
	from := f.where()
	f.drain(from)
	for n := 0; f.w.Group == nil || len(f.w.Group.Members) < 2; n++ {
		if n > 100 {
			t.Fatal("the move does not begin")
		}
		f.read()
		f.decide(t)
		for _, id := range f.ids() {
			f.hear(f.servers[id])
			f.obey(f.servers[id])
			f.report(f.servers[id])
			f.deliver(f.servers[id])
		}
	}
	f.drain()
	for range 4 {
		f.calm(t)
	}
	if f.where() != from || f.w.Status.Move != "" || f.told("KURABE-EVENT-0027") {
		t.Errorf("on %q, was on %q: %+v", f.where(), from, f.w.Status)
	}
}

// TestMoveLosesNothing moves a server while whatever may happen to a group happens.
func TestMoveLosesNothing(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		f := aloneFleet(t, rapid.SampledFrom([]kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB}).Draw(t, "engine"), rapid.IntRange(2, 3).Draw(t, "hosts"), 1)
		f.drain(f.where())
		for range rapid.IntRange(0, 2).Draw(t, "ahead") {
			f.calm(t)
		}
		actions := groupActions(f)
		maps.Copy(actions, hostActions(f))
		actions[""] = func(t *rapid.T) { f.checkOne(t) }
		t.Repeat(actions)
		f.recovers(t)
		for what, n := range f.seen {
			seen[what] += n
		}
		for _, e := range f.events {
			seen[e.ID]++
		}
	})
	for _, what := range []string{"acks", "takeovers", "KURABE-EVENT-0026", "KURABE-EVENT-0027"} {
		if seen[what] == 0 {
			t.Errorf("no run had any %s, so this proves nothing", what)
		}
	}
}

// A host that only gets nothing new, because it was not heard yet, is not to be emptied.
func TestLoneServerStaysOnAHostNotHeardYet(t *testing.T) {
	f := aloneFleet(t, kurabe.Postgres, 3, 1)
	from := f.where()
	f.w.Closed = map[kurabe.HostID]string{from: "host " + string(from) + " was not heard yet"}
	for range 4 {
		f.calm(t)
	}
	if now := f.where(); now != from || f.w.Status.Move != "" {
		t.Errorf("it is on %q, move %q", now, f.w.Status.Move)
	}
}

// A move that is to begin before the end of a failover was told waits for that.
func TestMoveWaitsForTheEndOfAFailover(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine kurabe.EngineName) {
		f := newGroupFleet(engine, false)
		f.w.Spec.Now.RetentionDays = 1
		f.spread(3)
		f.calm(t)
		f.calm(t)
		f.available()
		from := len(f.events)
		dead := f.servers[f.primary()]
		dead.die()
		for n := 0; f.primary() == dead.id && n < 5; n++ {
			f.step(t, dead)
		}
		if !f.w.Status.FailingOver {
			t.Fatalf("nobody has taken over: %+v, %+v", f.w.Group, f.w.Status)
		}
		f.available()
		f.ask(func(s *kurabe.InstanceSpec) { s.Now.MultiAZ = false })
		host := f.w.Members[f.primary()].Host
		f.drain(host)
		for range 3 {
			f.calm(t)
		}
		f.available()
		f.rests(t)
		if n := f.times("RDS-EVENT-0049"); n != 1 || !strings.HasPrefix(f.saga(from), "0013") {
			t.Errorf("the end of the failover was told %d times: %s", n, f.saga(from))
		}
		if !f.told("KURABE-EVENT-0027") || f.where() == host {
			t.Errorf("it did not move: on %q, %+v", f.where(), f.w.Status)
		}
	})
}
