package reconcile

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/store"
)

// twoServers is the record of db-1, which has two servers on one host; the second writes.
func twoServers() kurabe.Group {
	return kurabe.Group{Instance: "db-1", Epoch: 2, Primary: "db-1~2", LastNumber: 2, Members: []kurabe.Member{
		{ID: "db-1", Host: "h1", Zone: "a", ListensAt: "127.66.0.3"}, {ID: "db-1~2", Host: "h1", Zone: "b", ListensAt: "127.66.0.2"},
	}}
}

const verifier = "what nobody may see"

// serverAt is what a host was told of a server; generations tell servers apart.
func serverAt(host kurabe.HostID, id kurabe.InstanceID, generation kurabe.Generation, address, listensAt string) kurabe.Assignment {
	return kurabe.Assignment{Host: host, Instance: id, Generation: generation, Address: address, ListensAt: listensAt, Goal: kurabe.GoalRunning,
		Password: kurabe.Password{Seq: 1, Verifier: verifier}}
}

func classed(id, class string, change func(*kurabe.InstanceSpec)) kurabe.InstanceSpec {
	s := kurabe.InstanceSpec{ID: kurabe.InstanceID(id), Name: "name-" + id, Now: kurabe.InstanceSettings{Class: class}}
	if change != nil {
		change(&s)
	}
	return s
}

func memoryOf(t *testing.T, class string) int64 {
	t.Helper()
	c, ok := kurabe.FindClass(class)
	if !ok {
		t.Fatalf("no class %s", class)
	}
	return c.MemoryBytes
}

// groupOfTwo is the record, both servers and what is seen of them, and db-2 beside them.
func groupOfTwo() *store.Change {
	report := func(host kurabe.HostID, id kurabe.InstanceID, pid int) kurabe.InstanceReport {
		return kurabe.InstanceReport{Host: host, Instance: id, PID: pid}
	}
	bigger := func(s *kurabe.InstanceSpec) {
		s.Next = &kurabe.InstanceSettings{Class: "db.t3.medium"}
	}
	return store.NewChange().CreateInstance(classed("db-1", "db.t3.micro", bigger)).CreateInstance(classed("db-2", "db.t3.small", nil)).
		PutGroup(twoServers(), 0).
		PutAssignment(serverAt("h1", "db-1", 11, "127.66.0.1", "127.66.0.3"), 0).
		PutAssignment(serverAt("h1", "db-1~2", 12, "127.66.0.1", "127.66.0.2"), 0).
		PutAssignment(serverAt("h2", "db-2", 20, "127.66.0.9", ""), 0).
		PutReport(report("h1", "db-1", 1)).PutReport(report("h1", "db-1~2", 2)).PutReport(report("h9", "db-1~2", 9))
}

// Each server of an instance holds the memory of its class where it is, and both its
// addresses.
func TestFleetHoldsEveryServer(t *testing.T) {
	micro, small, medium := memoryOf(t, "db.t3.micro"), memoryOf(t, "db.t3.small"), memoryOf(t, "db.t3.medium")
	change := groupOfTwo().CreateInstance(classed("db-3", "db.t3.micro", nil)).
		CreateInstance(classed("db-4", "db.t3.micro", func(s *kurabe.InstanceSpec) { s.Now.MultiAZ = true })).
		PutAssignment(serverAt("h2", "db-4", 40, "127.66.0.20", ""), 0).
		CreateInstance(classed("db-5", "db.t3.micro", func(s *kurabe.InstanceSpec) {
			s.Next = &kurabe.InstanceSettings{Class: "db.t3.micro", MultiAZ: true}
		})).
		PutAssignment(serverAt("h3", "db-5", 50, "127.66.0.30", ""), 0)
	ofOne := []string{"127.66.0.1", "127.66.0.2", "127.66.0.3"}
	view := viewOf(t, change)
	for _, c := range []struct {
		name      string
		id        kurabe.InstanceID
		addresses []string
		reserved  map[kurabe.HostID]int64
	}{
		{"one that is to be placed", "db-3", append(slices.Clone(ofOne), "127.66.0.20", "127.66.0.30", "127.66.0.9"),
			map[kurabe.HostID]int64{"h1": 2 * medium, "h2": small + micro, "h3": micro}},
		{"a group", "db-1", []string{"127.66.0.20", "127.66.0.30", "127.66.0.9"}, map[kurabe.HostID]int64{"h2": small + micro, "h3": micro}},
		{"one that is to have a standby", "db-4", append(slices.Clone(ofOne), "127.66.0.30", "127.66.0.9"),
			map[kurabe.HostID]int64{"h1": 2 * medium, "h2": small, "h3": micro}},
		{"one that is to have a standby later", "db-5", append(slices.Clone(ofOne), "127.66.0.20", "127.66.0.9"),
			map[kurabe.HostID]int64{"h1": 2 * medium, "h2": small + micro}},
		{"one server that is placed", "db-2", nil, map[kurabe.HostID]int64{}},
	} {
		i, _ := view.Instance(c.id)
		w := newFleet(view).world(i, noon)
		slices.Sort(c.addresses)
		if got := slices.Sorted(maps.Keys(w.Addresses)); !slices.Equal(got, c.addresses) {
			t.Errorf("%s: the others have %v; want %v", c.name, got, c.addresses)
		}
		if !maps.Equal(w.Reserved, c.reserved) {
			t.Errorf("%s: reserved are %v; want %v", c.name, w.Reserved, c.reserved)
		}
	}
}

// Of one pass, a later plan sees the servers that an earlier one has placed.
func TestFleetFollowsPlannedServers(t *testing.T) {
	view := viewOf(t, store.NewChange().CreateInstance(classed("db-1", "db.t3.small", nil)).CreateInstance(classed("db-2", "db.t3.micro", nil)))
	f := newFleet(view)
	first, _ := view.Instance("db-1")
	writer := serverAt("h1", "db-1", 1, "127.66.0.1", "")
	f.planned(first, plan.Result{Assignment: &writer, Members: []kurabe.Assignment{serverAt("h2", "db-1~2", 1, "127.66.0.1", "127.66.0.2")}})
	second, _ := view.Instance("db-2")
	w := f.world(second, noon)
	small := memoryOf(t, "db.t3.small")
	if !w.Addresses["127.66.0.1"] || !w.Addresses["127.66.0.2"] || w.Reserved["h1"] != small || w.Reserved["h2"] != small {
		t.Errorf("addresses %v, reserved %v", w.Addresses, w.Reserved)
	}
}

func TestWorldOfAGroup(t *testing.T) {
	view := viewOf(t, groupOfTwo().CreateSnapshot(snapshotOf("snap-1", "db-1")))
	i, _ := view.Instance("db-1")
	w := newFleet(view).world(i, noon)
	if w.Group == nil || w.Group.Primary != "db-1~2" || w.Assignment == nil || w.Assignment.Generation != 12 || w.Report == nil || w.Report.PID != 2 {
		t.Errorf("the writer: %+v, %+v, %+v", w.Group, w.Assignment, w.Report)
	}
	if len(w.Members) != 2 || w.Members["db-1"].Generation != 11 || w.Members["db-1~2"].Generation != 12 {
		t.Errorf("servers %v", w.Members)
	}
	if len(w.Reports) != 2 || w.Reports["db-1"].PID != 1 || w.Reports["db-1~2"].PID != 2 {
		t.Errorf("reports %v", w.Reports)
	}
	s, _ := view.Snapshot("snap-1")
	if sw := snapshotWorld(view, s, noon); sw.Instance == nil || sw.Instance.Instance != "db-1~2" {
		t.Errorf("a snapshot is taken of %+v; want the writer", sw.Instance)
	}
	single, _ := view.Instance("db-2")
	w = newFleet(view).world(single, noon)
	if w.Group != nil || w.Assignment == nil || w.Assignment.Generation != 20 || w.Report != nil || len(w.Members) != 1 {
		t.Errorf("one server: %+v", w)
	}
}

// A plan is written only over what it was made from, and everything of it at once.
func TestChangeOfAGroup(t *testing.T) {
	status := &kurabe.InstanceStatus{ID: "db-1"}
	next := twoServers()
	next.Epoch, next.Primary = 3, "db-1"
	writer := serverAt("h1", "db-1", 21, "127.66.0.1", "127.66.0.3")
	failover := plan.Result{Status: status, Group: &next, Assignment: &writer, Members: []kurabe.Assignment{serverAt("h1", "db-1~2", 22, "127.66.0.1", "127.66.0.2")}}
	single := store.NewChange().CreateInstance(classed("db-1", "db.t3.micro", func(s *kurabe.InstanceSpec) { s.Now.MultiAZ = true })).
		PutAssignment(serverAt("h1", "db-1", 11, "127.66.0.1", ""), 0)
	rewritten := func(i *store.Instance) *store.Change { return store.NewChange().PutGroup(twoServers(), i.GroupMod) }
	for _, c := range []struct {
		name   string
		before *store.Change
		first  func(*store.Instance) *store.Change // what somebody else writes meanwhile
		result plan.Result
		want   error
	}{
		{"failover", groupOfTwo(), nil, failover, nil},
		{"failover from an old record", groupOfTwo(), rewritten, failover, store.ErrConflict},
		{"a status from an old record", groupOfTwo(), rewritten, plan.Result{Status: status}, store.ErrConflict},
		{"an order from an old record", groupOfTwo(), rewritten, plan.Result{Members: failover.Members}, store.ErrConflict},
		{"an end from an old record", groupOfTwo(), rewritten, plan.Result{GroupGone: true}, store.ErrConflict},
		{"a deletion from an old record", groupOfTwo(), rewritten, plan.Result{Gone: true}, store.ErrConflict},
		{"an order over one that was not read", groupOfTwo(), func(i *store.Instance) *store.Change {
			a, _ := i.AssignmentOf("db-1~2")
			return store.NewChange().PutAssignment(a.Value, a.ModRevision)
		}, failover, store.ErrConflict},
		{"a status made without a record", single, rewritten, plan.Result{Status: status}, store.ErrConflict},
		{"the first record", single, nil, plan.Result{Group: failover.Group, Members: failover.Members}, nil},
		{"the first record, made twice", single, rewritten, plan.Result{Group: failover.Group}, store.ErrConflict},
		{"one server less", groupOfTwo(), nil, plan.Result{Assignment: &writer, GroupGone: true, MembersGone: []kurabe.InstanceID{"db-1~2"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			kv, view := storeOf(t, c.before)
			i, _ := view.Instance("db-1")
			w := newFleet(view).world(i, noon)
			if c.first != nil {
				if _, err := c.first(i).Commit(t.Context(), kv); err != nil {
					t.Fatal(err)
				}
			}
			revision, err := New(Config{}).change(i, w, c.result).Commit(t.Context(), kv)
			if !errors.Is(err, c.want) {
				t.Fatalf("%v; want %v", err, c.want)
			}
			if err != nil {
				return
			}
			if err := view.WaitRevision(t.Context(), revision); err != nil {
				t.Fatal(err)
			}
			checkWritten(t, view, c.result)
		})
	}
}

// checkWritten compares what is stored of db-1 with what a plan said.
func checkWritten(t *testing.T, view *store.View, r plan.Result) {
	t.Helper()
	i, _ := view.Instance("db-1")
	if r.GroupGone != (i.Group == nil) || r.Group != nil && (i.Group.Epoch != r.Group.Epoch || i.Writer() != r.Group.Primary) {
		t.Errorf("group %+v", i.Group)
	}
	orders := slices.Clone(r.Members)
	if r.Assignment != nil {
		orders = append(orders, *r.Assignment)
	}
	for _, a := range orders {
		if have, ok := i.AssignmentOf(a.Instance); !ok || have.Value.Generation != a.Generation {
			t.Errorf("%s was told %+v; want %+v", a.Instance, have.Value, a)
		}
	}
	for _, id := range r.MembersGone {
		if have, ok := i.AssignmentOf(id); ok {
			t.Errorf("%s still has %+v", id, have.Value)
		}
	}
	if (i.Status != nil) != (r.Status != nil) {
		t.Errorf("status %+v", i.Status)
	}
}

// Backups go with the instance once its writer was told to leave nothing.
func TestBackupsAreDroppedWithTheWriter(t *testing.T) {
	for _, c := range []struct {
		gone kurabe.InstanceID
		want bool
	}{{"db-1~2", true}, {"db-1", false}} {
		change := store.NewChange().PutGroup(twoServers(), 0).
			CreateInstance(classed("db-1", "db.t3.micro", func(s *kurabe.InstanceSpec) { s.Deleting = &kurabe.Deletion{At: noon} })).
			PutStatus(kurabe.InstanceStatus{ID: "db-1", Applied: kurabe.InstanceSettings{Class: "db.t3.micro", RetentionDays: 1}}, 0)
		for _, id := range []kurabe.InstanceID{"db-1", "db-1~2"} {
			a := serverAt("h1", id, 1, "127.66.0.1", "")
			if id == c.gone {
				a.Goal = kurabe.GoalAbsent
			}
			change.PutAssignment(a, 0)
		}
		madeBackup{id: "snap-a", at: 1}.put(change)
		view := viewOf(t, change)
		s, _ := view.Snapshot("snap-a")
		if r := retention(view, s, noon.Add(time.Hour)); r.Dropped != c.want {
			t.Errorf("%s goes: dropped %v; want %v", c.gone, r.Dropped, c.want)
		}
	}
}
