package plan_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"kurabe"
)

// apartPair is a whole pair over hosts.
func apartPair(t *testing.T, engine kurabe.EngineName) (f *groupFleet, primary, standby *server) {
	t.Helper()
	f = newGroupFleet(engine, false)
	f.w.Spec.Now.RetentionDays = 1
	f.spread(2)
	f.calm(t)
	f.calm(t)
	f.whole(t)
	return f, f.servers[f.primary()], f.servers[f.w.Group.SyncSet[0]]
}

// A primary whose disk is nearly full hands over to the other host, and is stopped there. It is
// started again when there is room, and is a standby then. Nobody goes back and forth.
func TestFullDiskIsLeft(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine kurabe.EngineName) {
		f, primary, standby := apartPair(t, engine)
		from := len(f.events)
		primary.full = true
		f.rests(t)
		if f.primary() != standby.id || !f.opens(standby) || primary.running || f.w.Members[primary.id].Goal != kurabe.GoalStopped {
			t.Fatalf("%s writes, %+v, %+v", f.primary(), primary, f.w.Status)
		}
		f.serves(t, standby)
		if f.saga(from) != "0013 0015 0049" || f.times("KURABE-EVENT-0045") != 1 || f.told("RDS-EVENT-0007") || !f.usable() || f.w.Status.Reason == "" {
			t.Errorf("told are %s, %+v", f.saga(from), f.w.Status)
		}
		primary.full = false
		f.serves(t, standby)
		f.whole(t)
		if !primary.running || f.w.Status.Reason != "" {
			t.Errorf("%+v, %+v", primary, f.w.Status)
		}
		f.recovers(t)
	})
}

// A standby on a full disk is stopped, and commits go on or wait as the policy has it.
func TestStandbyOnAFullDiskIsStopped(t *testing.T) {
	for _, policy := range policies {
		f, primary, standby := apartPair(t, kurabe.Postgres)
		f.policy(policy)
		f.calm(t)
		standby.full = true
		f.rests(t)
		acked := len(f.acked)
		f.calm(t)
		if standby.running || f.primary() != primary.id || f.times("KURABE-EVENT-0045") != 1 {
			t.Fatalf("%s: %+v, %+v", policy, standby, f.w.Group)
		}
		if waits := len(f.acked) == acked; waits != f.w.Group.RequireStandby {
			t.Errorf("%s: commits wait: %v", policy, waits)
		}
		standby.full = false
		f.rests(t)
		f.serves(t, primary)
		f.whole(t)
	}
}

// Where a disk ends under servers that do not grow, which nobody has stop, they are left and stopped
// as well, if others have room. If not, they run on: they can be read.
func TestDiskEndsUnderAPair(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine kurabe.EngineName) {
		f, primary, standby := apartPair(t, engine)
		standby.ends = true
		f.rests(t)
		if standby.running || f.times("KURABE-EVENT-0045") != 1 || !f.opens(primary) {
			t.Fatalf("%+v, %+v", standby, f.w.Status)
		}
		primary.ends = true
		f.rests(t)
		f.serves(t, primary)
		standby.ends = false
		f.rests(t)
		if f.rests(t); f.primary() != standby.id || primary.running {
			t.Fatalf("%s writes, %+v, %+v", f.primary(), primary, f.w.Status)
		}
		primary.ends = false
		f.rests(t)
		f.whole(t)
	})
}

// Where nobody has room the instance is stopped, as on one host; so it is on a disk of both.
func TestNobodyHasRoom(t *testing.T) {
	f, primary, standby := apartPair(t, kurabe.Postgres)
	primary.full, standby.full = true, true
	f.rests(t)
	if primary.running || standby.running || f.w.Status.State != kurabe.StateStorageFull {
		t.Fatalf("%+v", f.w.Status)
	}
	primary.full, standby.full = false, false
	f.rests(t)
	f.whole(t)
	f, primary, standby, _ = pair(t, kurabe.Postgres)
	primary.full = true
	f.rests(t)
	if primary.running || standby.running || f.w.Status.State != kurabe.StateStorageFull {
		t.Fatalf("on one host: %+v", f.w.Status)
	}
}

// Disks that fill in turn do not have clients go to and fro: one that was left just now is no
// place to go to, whatever room it has.
func TestDisksThatFillInTurn(t *testing.T) {
	f, first, second := apartPair(t, kurabe.Postgres)
	first.full = true
	for n := 0; f.primary() == first.id; n++ {
		if n > 100 {
			t.Fatalf("%+v", f.w.Group)
		}
		f.calm(t)
	}
	f.w.Status.Storage.HandedOverAt = f.w.Now.Add(time.Hour) // however long it takes to be whole again
	first.full = false
	f.rests(t)
	f.whole(t)
	second.full = true
	f.calm(t)
	f.calm(t)
	if f.primary() != second.id || f.w.Status.State != kurabe.StateStorageFull {
		t.Fatalf("%s writes: %+v", f.primary(), f.w.Status)
	}
	second.full = false
	f.rests(t)
	second.full = true
	f.w.Status.Storage.HandedOverAt = f.w.Now.Add(-time.Hour)
	f.rests(t)
	if f.primary() != first.id {
		t.Errorf("%s writes: %+v", f.primary(), f.w.Status)
	}
}

// In a cluster a reader that is stopped leaves the other one, whom commits wait for.
func TestReaderOnAFullDiskIsStopped(t *testing.T) {
	f := newGroupFleet(kurabe.MariaDB, true)
	f.spread(3)
	f.calm(t)
	f.calm(t)
	f.whole(t)
	primary, full, other := f.servers[f.primary()], f.servers[f.w.Group.SyncSet[0]], f.servers[f.w.Group.SyncSet[1]]
	full.full = true
	f.rests(t)
	f.serves(t, primary)
	if full.running || f.w.Group.InSyncSet(full.id) || !f.w.Group.InSyncSet(other.id) || f.told("KURABE-EVENT-0010") {
		t.Fatalf("%+v, %+v", full, f.w.Group)
	}
	primary.full = true
	f.rests(t)
	f.serves(t, other)
	if f.primary() != other.id || primary.running {
		t.Fatalf("%+v", f.w.Group)
	}
	full.full, primary.full = false, false
	f.rests(t)
	f.whole(t)
}

// obeying has the planner look again while a primary obeys the order that it was just given: it
// has said so, and has not looked at its disk since.
func (f *groupFleet) obeying(t *testing.T, s *server) {
	t.Helper()
	for range 3 {
		for range 2 { // its own writes have it look again
			f.read()
			f.decide(t)
		}
		r := *f.w.Reports[s.id]
		r.Generation, r.Done, r.Failure = f.w.Members[s.id].Generation, false, nil
		f.w.Reports[s.id] = &r
	}
	f.read()
	f.decide(t)
}

// A disk that is left, and one whose standby has yet to leave the others, stay what they are
// while the primary obeys what was ordered for that: no order is taken back that is under way.
func TestOrdersOfAFullDiskStand(t *testing.T) {
	for _, writes := range []bool{true, false} {
		f := newGroupFleet(kurabe.Postgres, true)
		f.spread(3)
		f.calm(t)
		f.calm(t)
		f.whole(t)
		primary, full := f.servers[f.primary()], f.servers[f.w.Group.SyncSet[0]]
		if writes {
			full = primary
		}
		full.full = true
		f.report(full)
		f.deliver(full)
		before := f.w.Members[primary.id].Generation
		f.obeying(t, primary)
		if now := f.w.Members[primary.id]; now.Generation != before+1 || len(now.Role.WaitFor) != 1 {
			t.Errorf("the writer's disk: %v; ordered after %d was %+v", writes, before, now)
		}
		f.rests(t)
		if full.running || f.w.Status.State != kurabe.StateAvailable {
			t.Errorf("the writer's disk: %v; %+v, %+v", writes, full, f.w.Status)
		}
	}
}

// A stop for want of room has no server start with what another one has refused.
func TestStopForRoomKeepsWhatRuns(t *testing.T) {
	for _, hosts := range []int{1, 2} {
		f := newGroupFleet(kurabe.Postgres, false)
		if hosts > 1 {
			f.spread(hosts)
		}
		f.calm(t)
		f.calm(t)
		primary, standby := f.servers[f.primary()], f.servers[f.w.Group.SyncSet[0]]
		boot := primary.boot
		f.tooLarge = true
		f.ask(func(s *kurabe.InstanceSpec) { s.Now.Class = "db.t3.small" })
		f.serves(t, primary)
		primary.full, standby.full = true, true
		f.rests(t)
		if primary.running || f.w.Status.State != kurabe.StateStorageFull {
			t.Fatalf("%d hosts: %+v", hosts, f.w.Status)
		}
		primary.full, standby.full = false, false
		f.rests(t)
		f.serves(t, primary)
		if primary.boot != boot {
			t.Errorf("%d hosts: boot %d after %d: %+v", hosts, primary.boot, boot, f.w.Status)
		}
		f.ask(func(s *kurabe.InstanceSpec) { s.Now.Class = "db.t3.micro" })
		f.rests(t)
		f.recovers(t)
	}
}

// fillDisks has the disk of one host, with all that is on it, be full, or none any more.
func (f *groupFleet) fillDisks(t *rapid.T) {
	clear(f.fullHosts)
	if len(f.servers) == 0 || rapid.IntRange(0, 2).Draw(t, "room") > 0 {
		return
	}
	s := f.servers[rapid.SampledFrom(f.ids()).Draw(t, "on the host of")]
	if a := f.w.Members[s.id]; a != nil {
		f.fullHosts[a.Host] = true
		f.seen["full disks"]++
	}
}
