package plan_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"kurabe"
)

var policies = []string{kurabe.StandbyLostDegrade, kurabe.StandbyLostBlock}

// policy has the user say what becomes of commits when no standby answers.
func (f *groupFleet) policy(what string) {
	group := kurabe.ParameterGroup{}
	if f.w.Parameters != nil {
		group = *f.w.Parameters
	}
	group.Values = maps.Clone(group.Values)
	if group.Values == nil {
		group.Values = map[string]kurabe.ParameterValue{}
	}
	group.Values[kurabe.ParameterStandbyLost] = kurabe.ParameterValue{Value: what, Method: kurabe.ApplyImmediate}
	f.w.Parameters = &group
}

func (f *groupFleet) blocks() bool {
	return f.w.Parameters != nil && f.w.Parameters.Values[kurabe.ParameterStandbyLost].Value == kurabe.StandbyLostBlock
}

// checkTwo demands of a write that is acknowledged where commits go on alone no more that two
// servers have it.
func (f *groupFleet) checkTwo(t tester, s *server, write int) {
	if f.w.Group == nil || !f.w.Group.RequireStandby {
		return
	}
	f.seen["acks of two"]++
	have := 0
	for _, o := range f.servers {
		if slices.Contains(o.log, write) {
			have++
		}
	}
	if have < 2 {
		t.Fatalf("%s acknowledges write %d, which %d servers have: %+v", s.id, write, have, f.w.Group)
	}
}

// reboot is what a user has to do where a copy cannot be made while commits wait.
func (f *groupFleet) reboot(t tester) {
	for range 3 { // where an old word of the primary has it copied once more
		if !f.blocks() || f.w.Spec.Engine.CopiesWhileCommitsWait() || f.w.Group == nil || len(f.w.Group.SyncSet) > 0 {
			return
		}
		f.seen["reboots"]++
		f.wish(t, func(s *kurabe.InstanceSpec) { s.RebootSeq++ })
	}
}

// times is how often an event was told.
func (f *groupFleet) times(id string) (n int) {
	for _, e := range f.events {
		if e.ID == id {
			n++
		}
	}
	return n
}

// blocked is a whole pair whose commits go on alone no more, and whose standby was lost.
func blocked(t *testing.T, engine kurabe.EngineName) (f *groupFleet, w, standby *server) {
	t.Helper()
	f = newGroupFleet(engine, false)
	f.calm(t)
	f.policy(kurabe.StandbyLostBlock)
	f.calm(t)
	w = f.servers[f.primary()]
	standby = f.servers[w.id.Member(2)]
	if !f.w.Group.RequireStandby || !f.w.Group.InSyncSet(standby.id) || f.w.Status.BlockedAt != (time.Time{}) {
		t.Fatalf("it is not whole: %+v", f.w.Group)
	}
	f.without(t, standby)
	if f.times("KURABE-EVENT-0028") != 1 || f.w.Status.BlockedAt.IsZero() || !f.w.Group.InSyncSet(standby.id) || len(f.w.Members[w.id].Role.WaitFor) != 1 {
		t.Fatalf("commits are to wait: %+v, %+v, events %+v", f.w.Group, f.w.Status, f.events)
	}
	return f, w, standby
}

// without has all go well but for one server, which is frozen.
func (f *groupFleet) without(t *testing.T, lost *server) {
	t.Helper()
	for range 12 {
		f.read()
		f.decide(t)
		lost.hung = lost.running
		for _, id := range f.ids() {
			s := f.servers[id]
			if s == nil {
				continue
			}
			f.hear(s)
			f.obey(s)
			f.append(s)
			f.acknowledge(t, s)
			f.report(s)
			f.deliver(s)
		}
	}
}

// Commits that wait go on when the standby is back, when the user says so, and when it is an
// instance of one zone.
func TestBlockedGoesOn(t *testing.T) {
	for _, engine := range []kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB} {
		for name, exit := range map[string]func(f *groupFleet){
			"the standby is back": nil,
			"degrade":             func(f *groupFleet) { f.policy(kurabe.StandbyLostDegrade) },
			"one zone":            func(f *groupFleet) { f.ask(func(s *kurabe.InstanceSpec) { s.Now.MultiAZ = false }) },
		} {
			t.Run(string(engine)+", "+name, func(t *testing.T) {
				f, w, standby := blocked(t, engine)
				acked := len(f.acked)
				f.without(t, standby)
				if len(f.acked) != acked || f.times("KURABE-EVENT-0010") > 0 {
					t.Fatalf("%d writes were acknowledged, events %+v", len(f.acked)-acked, f.events)
				}
				if exit == nil {
					f.calm(t)
				} else {
					exit(f)
					f.without(t, standby)
					if f.w.Group != nil && f.w.Group.RequireStandby || len(w.waits) > 0 {
						t.Errorf("it still blocks: %+v, waits for %v", f.w.Group, w.waits)
					}
				}
				if len(f.acked) == acked || f.times("KURABE-EVENT-0029") != 1 || !f.w.Status.BlockedAt.IsZero() {
					t.Errorf("commits do not go on: events %+v", f.events)
				}
			})
		}
	}
}

// A primary that is started again while commits wait lets clients in to read where a copy can
// be made nevertheless, and the standby may not take over then. Another one keeps them out.
func TestBlockedRestarts(t *testing.T) {
	for engine, reads := range map[kurabe.EngineName]bool{kurabe.Postgres: true, kurabe.MariaDB: false} {
		t.Run(string(engine), func(t *testing.T) {
			f, w, standby := blocked(t, engine)
			w.die()
			f.without(t, standby)
			acked := len(f.acked)
			if !w.running || f.opens(w) != reads || f.w.Group.InSyncSet(standby.id) == reads || f.w.Group.Primary != w.id {
				t.Fatalf("running %v, open %v, %+v", w.running, f.opens(w), f.w.Group)
			}
			f.without(t, standby)
			if len(f.acked) != acked {
				t.Errorf("%d writes were acknowledged", len(f.acked)-acked)
			}
			f.recovers(t)
		})
	}
}

// The policy is of no effect where there is no standby, and stops no commit by itself.
func TestBlockWaitsUntilWhole(t *testing.T) {
	f := newGroupFleet(kurabe.Postgres, false)
	f.w.Spec.Now.MultiAZ = false
	f.policy(kurabe.StandbyLostBlock)
	f.calm(t)
	if acked := len(f.acked); acked == 0 || f.w.Group != nil {
		t.Fatalf("one zone: %d acknowledged, %+v", acked, f.w.Group)
	}
	f.policy(kurabe.StandbyLostDegrade)
	f.wish(t, func(s *kurabe.InstanceSpec) { s.Now.MultiAZ = true })
	standby := f.servers[f.primary().Member(2)]
	f.without(t, standby) // commits go on alone
	f.policy(kurabe.StandbyLostBlock)
	acked := len(f.acked)
	f.without(t, standby)
	if len(f.acked) == acked || f.w.Group.RequireStandby {
		t.Fatalf("a word alone stops commits: %+v", f.w.Group)
	}
	f.calm(t)
	if !f.w.Group.RequireStandby {
		t.Errorf("it does not block although it is whole: %+v", f.w.Group)
	}
}
