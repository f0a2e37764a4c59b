package plan_test

import (
	"slices"
	"testing"
	"time"

	"kurabe"
)

// apartFleet is a pair on two of three hosts, each in a zone of its own.
func apartFleet(t *testing.T) *groupFleet {
	t.Helper()
	f := newGroupFleet(kurabe.Postgres, false)
	f.spread(3)
	f.calm(t)
	f.wantWhole(t)
	return f
}

// wantWhole demands a pair of two hosts, and returns them.
func (f *groupFleet) wantWhole(t *testing.T) (primary, standby kurabe.HostID) {
	t.Helper()
	g := f.w.Group
	if g == nil || len(g.Members) != 2 || len(g.SyncSet) != 1 {
		t.Fatalf("it is not whole: %+v", g)
	}
	w, _ := g.Member(g.Primary)
	s, _ := g.Member(g.SyncSet[0])
	if w.Host == s.Host || w.Zone == s.Zone {
		t.Fatalf("both servers are on host %s, zones %s and %s", w.Host, w.Zone, s.Zone)
	}
	if f.w.Status.SecondZone != s.Zone || f.w.Status.State != kurabe.StateAvailable {
		t.Fatalf("told are state %s, second zone %s; it is in %s", f.w.Status.State, f.w.Status.SecondZone, s.Zone)
	}
	return w.Host, s.Host
}

func (f *groupFleet) third(a, b kurabe.HostID) kurabe.HostID {
	for _, h := range f.w.Hosts {
		if h.Host != a && h.Host != b {
			return h.Host
		}
	}
	return ""
}

func (f *groupFleet) told(id string) bool {
	return slices.ContainsFunc(f.events, func(e kurabe.Event) bool { return e.ID == id })
}

func TestDrainedHostIsLeft(t *testing.T) {
	for _, role := range []string{"standby", "writer"} {
		t.Run(role, func(t *testing.T) {
			f := apartFleet(t)
			primary, standby := f.wantWhole(t)
			drained, third := standby, f.third(primary, standby)
			if role == "writer" {
				drained = primary
			}
			f.w.Closed = map[kurabe.HostID]string{drained: "host " + string(drained) + " is drained"}
			f.w.Emptied = f.w.Closed
			for range 4 {
				f.calm(t)
			}
			w, s := f.wantWhole(t)
			if w == drained || s == drained || w != third && s != third {
				t.Errorf("on %s and %s; %s is drained", w, s, drained)
			}
			if !f.told("KURABE-EVENT-0022") || role == "writer" && !f.told("RDS-EVENT-0049") {
				t.Errorf("events %+v", f.events)
			}
			if told := f.w.Status.Failovers == 1; told != (role == "writer") {
				t.Errorf("%d failovers are counted", f.w.Status.Failovers)
			}
		})
	}
}

func TestDrainedHostIsKeptWithoutAnother(t *testing.T) {
	f := newGroupFleet(kurabe.Postgres, false)
	f.spread(2)
	f.calm(t)
	primary, standby := f.wantWhole(t)
	f.w.Closed = map[kurabe.HostID]string{standby: "host " + string(standby) + " is drained"}
	f.w.Emptied = f.w.Closed
	for range 3 {
		f.calm(t)
	}
	if w, s := f.wantWhole(t); w != primary || s != standby {
		t.Errorf("on %s and %s, was on %s and %s", w, s, primary, standby)
	}
}

func TestStandbyOfALostHostIsMadeElsewhere(t *testing.T) {
	f := apartFleet(t)
	primary, standby := f.wantWhole(t)
	lost := f.machines[standby]
	lost.cut = true
	work := func(d time.Duration) {
		for range int(d / (500 * time.Millisecond)) {
			f.pass(500 * time.Millisecond)
			f.work(t, lost)
		}
	}
	work(4 * time.Minute)
	if f.told("KURABE-EVENT-0022") {
		t.Fatal("a machine that restarts would be back sooner")
	}
	work(2 * time.Minute)
	if !f.told("KURABE-EVENT-0022") {
		t.Fatalf("after six minutes it is waited for: %+v", f.w.Group)
	}
	lost.cut = false
	for range 3 {
		f.calm(t)
	}
	if w, s := f.wantWhole(t); w != primary || s != f.third(primary, standby) {
		t.Errorf("on %s and %s; %s was lost", w, s, standby)
	}
}

// A primary that the service does not hear, and whose standby follows it, serves.
func TestVouchedWriterIsAvailable(t *testing.T) {
	f := apartFleet(t)
	primary, _ := f.wantWhole(t)
	f.machines[primary].cut = true
	epoch := f.w.Group.Epoch
	for range 30 {
		f.pass(500 * time.Millisecond)
		f.work(t, nil)
	}
	if f.w.Group.Epoch != epoch || f.w.Status.State != kurabe.StateAvailable || f.lost()[primary].IsZero() {
		t.Errorf("lost since %s; state %s, epoch %d after %d", f.lost()[primary], f.w.Status.State, f.w.Group.Epoch, epoch)
	}
}

// A standby whose host has not spoken lately is not given the right to write: that host may be
// gone, and nobody could take the right back. The primary, which has everything, is started.
func TestNobodyTakesOverUnheard(t *testing.T) {
	f := apartFleet(t)
	primary, standby := f.wantWhole(t)
	epoch := f.w.Group.Epoch
	f.machines[standby].cut = true
	f.pass(3 * time.Second) // it is not lost yet
	f.machines[primary].last = f.w.Now
	w := f.servers[f.primary()]
	w.lease = f.w.Now.Add(time.Minute)
	w.die()
	for range 4 {
		f.hear(w)
		f.report(w)
		f.deliver(w)
		f.read()
		f.decide(t)
	}
	if a := f.w.Members[w.id]; f.w.Group.Epoch != epoch || a.Role.StartSeq <= w.started {
		t.Fatalf("epoch %d after %d, start %d ordered", f.w.Group.Epoch, epoch, a.Role.StartSeq)
	}
	f.machines[standby].cut = false
	f.machines[standby].last = f.w.Now
	f.read()
	f.decide(t)
	if f.w.Group.Epoch != epoch {
		t.Errorf("a start is under way, and another one takes over: %+v", f.w.Group)
	}
}
