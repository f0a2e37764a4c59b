package plan_test

import (
	"testing"

	"kurabe"
)

// step has one server report as it is, and the planner decide.
func (f *groupFleet) step(t *testing.T, servers ...*server) {
	t.Helper()
	for _, s := range servers {
		f.hear(s)
		f.obey(s)
		f.report(s)
		f.deliver(s)
	}
	f.read()
	f.decide(t)
}

// pair is a whole one, and what its servers were started with.
func pair(t *testing.T, engine kurabe.EngineName) (f *groupFleet, primary, standby *server, boot int64) {
	t.Helper()
	f = newGroupFleet(engine, false)
	f.w.Spec.Now.RetentionDays = 1 // or MariaDB has no log to follow yet
	f.calm(t)
	f.calm(t)
	primary, standby = f.servers[firstServer], f.servers[secondServer]
	boot = f.w.Members[firstServer].Boot
	if len(f.w.Group.SyncSet) != 1 || f.w.Members[secondServer].Boot != boot {
		t.Fatalf("%+v", f.w.Group)
	}
	return f, primary, standby, boot
}

// ask is wish without coming to rest.
func (f *groupFleet) ask(change func(s *kurabe.InstanceSpec)) {
	s := *f.w.Spec
	s.Revision++
	change(&s)
	f.w.Spec = &s
}

// What restarts servers goes to the standby first. While that is down for it the primary keeps
// what it has, also when commits have gone on alone meanwhile: two that restart at once have
// nobody to hand over to, and a primary's stop waits for an answer that cannot come.
func TestWriterServesWhileItsStandbyRestarts(t *testing.T) {
	for _, engine := range []kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB} {
		t.Run(string(engine), func(t *testing.T) {
			f, primary, standby, boot := pair(t, engine)
			f.ask(func(s *kurabe.InstanceSpec) { s.Now.Class = "db.t3.small" })
			f.step(t)
			kept := func(when string) {
				t.Helper()
				if w, s := f.w.Members[firstServer].Boot, f.w.Members[secondServer].Boot; w != boot || s != boot+1 {
					t.Fatalf("%s: writer %d, standby %d, both began with %d", when, w, s, boot)
				}
			}
			kept("ordered")
			standby.die() // it stops for its restart, and is slow to be back
			f.report(standby)
			f.deliver(standby)
			f.step(t, primary)
			kept("down")
			f.step(t, primary)
			if len(f.w.Group.SyncSet) != 0 {
				t.Fatalf("%+v", f.w.Group)
			}
			kept("commits go on alone")
			standby.outbox.Running, standby.outbox.Role.Position = true, 0 // it starts, and has said nothing
			f.deliver(standby)
			f.step(t, primary)
			kept("it starts")
			f.calm(t)
			f.calm(t)
			if f.primary() != secondServer || f.w.Members[firstServer].Boot != boot+1 || len(f.w.Group.SyncSet) != 1 {
				t.Errorf("in the end: %+v, %+v", f.w.Group, f.w.Members[firstServer])
			}
		})
	}
}

// A restart in place is the primary's alone at first; its standby restarts when it is back.
func TestStandbyWaitsForARestartInPlace(t *testing.T) {
	f, primary, standby, boot := pair(t, kurabe.MariaDB)
	f.ask(func(s *kurabe.InstanceSpec) { s.RebootSeq++ })
	f.step(t)
	if w, s := f.w.Members[firstServer].Boot, f.w.Members[secondServer].Boot; w != boot+1 || s != boot {
		t.Fatalf("writer %d, standby %d, both began with %d", w, s, boot)
	}
	f.step(t, standby)
	if s := f.w.Members[secondServer].Boot; s != boot {
		t.Fatalf("the standby restarts with its writer")
	}
	f.step(t, primary, standby)
	f.calm(t)
	if f.primary() != firstServer || standby.boot != boot+1 || primary.boot != boot+1 {
		t.Errorf("in the end: %+v, writer %d, standby %d", f.w.Group, primary.boot, standby.boot)
	}
}

// A failover that the user asks for has static parameters take effect that wait for a reboot.
func TestFailoverTakesParametersAlong(t *testing.T) {
	f := wide(t)
	boot := f.w.Members[firstServer].Boot
	f.w.Parameters = parameterGroup(map[string]kurabe.ParameterValue{"max_worker_processes": {Value: "24", Method: kurabe.ApplyPendingReboot}})
	f.step(t)
	if len(f.w.Status.PendingParameters) != 1 {
		t.Fatalf("pending: %v", f.w.Status.PendingParameters)
	}
	f.ask(func(s *kurabe.InstanceSpec) { s.FailoverSeq++ })
	f.step(t)
	if w, s := f.w.Members[firstServer], f.w.Members[secondServer]; w.Boot != boot || s.Boot != boot+1 || w.Role.Duty != kurabe.DutyWrite {
		t.Fatalf("writer %+v, standby %+v", w, s)
	}
	f.calm(t)
	f.calm(t)
	if f.primary() != secondServer || f.w.Status.FailoverSeq != f.w.Spec.FailoverSeq || len(f.w.Status.PendingParameters) != 0 {
		t.Errorf("%+v, pending %v", f.w.Group, f.w.Status.PendingParameters)
	}
	for _, id := range []kurabe.InstanceID{firstServer, secondServer} {
		if a := f.w.Members[id]; a.Boot != boot+1 || a.Settings["max_worker_processes"] != "24" || f.servers[id].boot != a.Boot {
			t.Errorf("%s: %+v", id, a)
		}
	}
}

// Who was named has become the primary by itself: nobody takes over once more.
func TestNamedWriterIsNotDeposed(t *testing.T) {
	f := newGroupFleet(kurabe.Postgres, true)
	f.calm(t)
	f.calm(t)
	f.servers[f.primary()].die()
	f.calm(t)
	f.calm(t)
	primary := f.primary()
	f.ask(func(s *kurabe.InstanceSpec) { s.FailoverSeq, s.FailoverTo = s.FailoverSeq+1, primary })
	f.calm(t)
	if f.primary() != primary || f.w.Status.FailoverSeq != f.w.Spec.FailoverSeq || f.w.Group.HandoverCandidate != "" || f.times("RDS-EVENT-0034") != 1 {
		t.Errorf("%+v, %+v", f.w.Group, f.events)
	}
}

// A primary that stops for a restart in place hears nobody any more. Who may have to take over,
// should it not come up, keeps the right to; one that does not live has none to keep.
func TestRestartInPlaceKeepsItsHeir(t *testing.T) {
	for _, lives := range []bool{true, false} {
		f, primary, standby, _ := pair(t, kurabe.MariaDB)
		f.ask(func(s *kurabe.InstanceSpec) { s.RebootSeq++ })
		f.step(t)
		if !lives {
			standby.die()
		}
		f.report(standby)
		f.deliver(standby)
		f.report(primary)
		primary.outbox.Role.SilentFollowers, primary.outbox.Role.NearlyCaughtUp = []kurabe.InstanceID{standby.id}, nil
		f.deliver(primary)
		f.step(t)
		if f.w.Group.InSyncSet(standby.id) != lives {
			t.Errorf("it lives: %v, %+v", lives, f.w.Group)
		}
	}
}
