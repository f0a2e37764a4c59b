package plan_test

import (
	"slices"
	"strings"
	"testing"

	"kurabe"
)

const firstServer, secondServer = kurabe.InstanceID("db-AAAAAAAAAAAAAAAAAAAAAAAAAA"), kurabe.InstanceID("db-AAAAAAAAAAAAAAAAAAAAAAAAAA~2")

// resize asks for another class, with what follows from it for max_connections, and for a
// value of max_worker_processes.
func (f *groupFleet) resize(class, workers string) {
	s := *f.w.Spec
	s.Revision++
	s.Now.Class = class
	f.w.Spec = &s
	f.w.Parameters = parameterGroup(map[string]kurabe.ParameterValue{"max_worker_processes": {Value: workers, Method: kurabe.ApplyPendingReboot}})
}

// wide is a group whose servers have much of everything.
func wide(t *testing.T) *groupFleet {
	f := newGroupFleet(kurabe.Postgres, false)
	c := *f.w.Catalog
	c.Parameters = append(slices.Clone(c.Parameters), kurabe.Parameter{Name: "max_worker_processes", Type: "integer", Apply: kurabe.ApplyStatic, Modifiable: true})
	slices.SortFunc(c.Parameters, func(a, b kurabe.Parameter) int { return strings.Compare(a.Name, b.Name) })
	f.w.Catalog = &c
	f.resize("db.t3.small", "16")
	f.calm(t)
	f.calm(t)
	if f.primary() != f.w.Spec.ID || len(f.w.Group.SyncSet) != 1 {
		t.Fatalf("%+v", f.w.Group)
	}
	return f
}

// A standby restarts for lower limits when it has applied that its primary has them; for
// higher ones before its primary; and where some rise and others fall, as soon as its primary
// has both, since it can apply nothing before.
func TestLimitsOfAStandby(t *testing.T) {
	for _, c := range []struct {
		name           string
		class, workers string
		first, second  kurabe.InstanceID // who restarts when
		lags           bool              // the second restarts although the standby applies nothing
	}{
		{"lower", "db.t3.micro", "8", firstServer, secondServer, false},
		{"higher", "db.t3.medium", "32", secondServer, firstServer, true},
		{"some lower, some higher", "db.t3.micro", "32", firstServer, secondServer, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := wide(t)
			before := map[kurabe.InstanceID]int64{firstServer: f.w.Members[firstServer].Boot, secondServer: f.w.Members[secondServer].Boot}
			restarted := func(id kurabe.InstanceID) bool { return f.w.Members[id].Boot > before[id] }
			f.resize(c.class, c.workers)
			f.lags = true
			f.read()
			f.decide(t)
			if !restarted(c.first) || restarted(c.second) {
				t.Fatalf("at first: %v and %v", f.w.Members[firstServer], f.w.Members[secondServer])
			}
			f.calm(t)
			if restarted(c.second) != c.lags {
				t.Errorf("while the standby applies nothing: %v", f.w.Members[c.second])
			}
			f.lags = false
			f.calm(t)
			f.calm(t)
			for _, s := range f.servers {
				if a := f.w.Members[s.id]; a.Settings["max_worker_processes"] != c.workers || s.boot != a.Boot || a.Boot == before[s.id] {
					t.Errorf("in the end: %+v, %+v", a, s)
				}
			}
		})
	}
}

// joining is a group whose standby commits wait for already, and which is not in the sync set yet.
func joining(t *testing.T) (f *groupFleet, primary, standby *server) {
	f = newGroupFleet(kurabe.Postgres, false)
	f.calm(t)
	primary, standby = f.servers[firstServer], f.servers[secondServer]
	g := *f.w.Group
	g.SyncSet = nil
	f.w.Group = &g
	if !slices.Equal(f.w.Members[firstServer].Role.WaitFor, []kurabe.InstanceID{secondServer}) {
		t.Fatalf("%+v", f.w.Members[firstServer].Role)
	}
	return f, primary, standby
}

// A standby joins the sync set by what the database does and what it was told to do last: what it
// does may end in a moment, by an order that is under way.
func TestJoinsByTheNewestOrder(t *testing.T) {
	f, primary, standby := joining(t)
	f.cut = true
	f.report(standby)
	f.deliver(standby)
	f.report(primary)
	primary.outbox.Role.CaughtUp, primary.outbox.Role.SilentFollowers = nil, nil
	f.deliver(primary)
	f.read()
	f.decide(t)
	if got := f.w.Members[firstServer].Role.WaitFor; got != nil {
		t.Fatalf("it is to wait for %v", got)
	}
	// The primary has heard of that and not done it, and the standby has everything.
	f.cut = false
	f.hear(primary)
	f.report(primary)
	f.deliver(primary)
	r := f.w.Reports[firstServer]
	if r.Generation != f.w.Members[firstServer].Generation || !slices.Equal(r.Role.CaughtUp, []kurabe.InstanceID{secondServer}) {
		t.Fatalf("%+v, %+v", r, r.Role)
	}
	f.read()
	f.decide(t)
	if f.w.Group.SyncSet != nil {
		t.Errorf("%v joins, and the writer is about to wait for nobody", f.w.Group.SyncSet)
	}
	f.calm(t)
	if len(f.w.Group.SyncSet) != 1 {
		t.Errorf("in the end: %+v", f.w.Group)
	}
}

// One that was made anew and is in the sync set has no order any more to throw its data away, also
// when its own note of having obeyed is lost.
func TestNoRebuildInSync(t *testing.T) {
	f, primary, standby := joining(t)
	primary.slotless = with(primary.slotless, secondServer)
	f.report(primary)
	f.deliver(primary)
	f.read()
	f.decide(t)
	if seq := f.w.Members[secondServer].Role.RebuildSeq; seq != 1 || f.w.Group.SyncSet != nil {
		t.Fatalf("order %d, sync %v", seq, f.w.Group.SyncSet)
	}
	f.calm(t)
	a := f.w.Members[secondServer]
	if len(f.w.Group.SyncSet) != 1 || standby.rebuilt == 0 || a.Role.RebuildSeq != 0 {
		t.Fatalf("%+v, %d, %+v", f.w.Group, standby.rebuilt, a.Role)
	}
	// Whatever its primary says of it then.
	f.report(primary)
	primary.outbox.Role.NeedRebuild = []kurabe.InstanceID{secondServer}
	f.deliver(primary)
	f.read()
	f.decide(t)
	if a := f.w.Members[secondServer]; a.Role.RebuildSeq != 0 {
		t.Errorf("%+v", a.Role)
	}
	// Out of the sync set it can be ordered once more, by a number that it has not obeyed yet.
	f.cut = true
	f.report(primary)
	f.deliver(primary)
	f.read()
	f.decide(t)
	primary.slotless = with(primary.slotless, secondServer)
	f.hear(primary)
	f.obey(primary)
	f.report(primary)
	f.deliver(primary)
	f.hear(standby)
	f.report(standby)
	f.deliver(standby)
	f.read()
	f.decide(t)
	if a := f.w.Members[secondServer]; a.Role.RebuildSeq != standby.rebuilt+1 {
		t.Errorf("%+v, %+v", a.Role, f.w.Group)
	}
}
