package store

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"kurabe"
)

// twoServers is the record of db-1, which has two servers; the first writes.
func twoServers() kurabe.Group {
	return kurabe.Group{Instance: "db-1", Epoch: 1, Primary: "db-1", SyncSet: []kurabe.InstanceID{"db-1~2"}, LastNumber: 2, Members: []kurabe.Member{
		{ID: "db-1", Host: "h1", Zone: "a"}, {ID: "db-1~2", Host: "h1", Zone: "b", ListensAt: "127.66.0.2"},
	}}
}

func assigned(host kurabe.HostID, member kurabe.InstanceID, generation kurabe.Generation) kurabe.Assignment {
	return kurabe.Assignment{Host: host, Instance: member, Generation: generation}
}

func TestViewFollowsAGroup(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateInstance(spec("db-1", "a")).CreateInstance(spec("db-10", "b"))))
	v.TakeDirty()
	mod := mustCommit(t, kv, NewChange().PutGroup(twoServers(), 0).
		PutAssignment(assigned("h2", "db-1~10", 4), 0).PutAssignment(assigned("h1", "db-1~2", 2), 0).PutAssignment(assigned("h1", "db-1", 1), 0).
		PutAssignment(assigned("h2", "db-1~9", 3), 0).
		PutReport(kurabe.InstanceReport{Host: "h1", Instance: "db-1~2", PID: 2}).PutReport(kurabe.InstanceReport{Host: "h1", Instance: "db-1", PID: 1}))
	mustSee(t, v, mod)
	if d := v.TakeDirty(); d.All || len(d.Instances) != 1 {
		t.Errorf("dirty %v; want the instance, not its servers", slices.Collect(maps.Keys(d.Instances)))
	}
	i, ok := v.Instance("db-1")
	if !ok || i.Group == nil || i.GroupMod != mod || i.Group.Epoch != 1 || i.Group.Members[1].ListensAt != "127.66.0.2" {
		t.Fatalf("group %+v", i)
	}
	var order []kurabe.InstanceID
	for _, a := range i.Assignments {
		order = append(order, a.Value.Instance)
	}
	if want := []kurabe.InstanceID{"db-1", "db-1~2", "db-1~9", "db-1~10"}; !slices.Equal(order, want) {
		t.Errorf("assignments of %v; want %v", order, want)
	}
	for member, pid := range map[kurabe.InstanceID]int{"db-1": 1, "db-1~2": 2} {
		a, ok := i.AssignmentOf(member)
		r, reported := i.ReportOf(member)
		if !ok || a.Value.Instance != member || a.ModRevision != mod || !reported || r.PID != pid {
			t.Errorf("%s: %+v, %+v", member, a, r)
		}
	}
	if other, _ := v.Any("db-10"); len(other.Assignments) != 0 || other.Group != nil {
		t.Errorf("of another instance: %+v", other)
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().DeleteAssignment("h1", kurabe.InstanceID("db-1~2").Ref(), mod).DropReport("h1", kurabe.InstanceID("db-1~2").Ref())))
	i, _ = v.Instance("db-1")
	if _, there := i.AssignmentOf("db-1~2"); there || len(i.Assignments) != 3 || len(i.Reports) != 1 || i.Reports[0].Value.Instance != "db-1" {
		t.Errorf("one server less: %+v", i)
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().DeleteInstance(i)))
	if i, _ := v.Any("db-1"); i.Group != nil || i.GroupMod != 0 || len(i.Assignments) != 0 || len(i.Reports) != 1 {
		t.Errorf("after its deletion: %+v; want the report", i)
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().DropReport("h1", kurabe.InstanceID("db-1").Ref())))
	if _, ok := v.Any("db-1"); ok {
		t.Error("something is left")
	}
}

// A report of a host that the server is not assigned to is none of it; without any
// assignment it is all there is.
func TestReportOfAServer(t *testing.T) {
	report := func(host kurabe.HostID, member kurabe.InstanceID) Record[kurabe.InstanceReport] {
		return Record[kurabe.InstanceReport]{Value: kurabe.InstanceReport{Host: host, Instance: member}}
	}
	i := &Instance{ID: "db-1", Reports: []Record[kurabe.InstanceReport]{report("h1", "db-1"), report("h2", "db-1~2")}}
	for _, c := range []struct {
		name        string
		member      kurabe.InstanceID
		assignments []Record[kurabe.Assignment]
		want        kurabe.HostID
	}{
		{"assigned to nobody", "db-1", nil, "h1"},
		{"assigned to another host", "db-1", []Record[kurabe.Assignment]{{Value: assigned("h9", "db-1", 1)}}, ""},
		{"assigned to its host", "db-1", []Record[kurabe.Assignment]{{Value: assigned("h1", "db-1", 1)}}, "h1"},
		{"the other is assigned", "db-1~2", []Record[kurabe.Assignment]{{Value: assigned("h1", "db-1", 1)}}, "h2"},
		{"no such server", "db-1~3", nil, ""},
	} {
		i.Assignments = c.assignments
		if r, ok := i.ReportOf(c.member); r.Host != c.want || ok != (c.want != "") {
			t.Errorf("%s: %+v, %v", c.name, r, ok)
		}
	}
}

func TestWriter(t *testing.T) {
	after := twoServers()
	after.Primary = "db-1~2"
	for _, c := range []struct {
		name string
		i    Instance
		want kurabe.InstanceID
	}{
		{"one server", Instance{ID: "db-1"}, "db-1"},
		{"a group", Instance{ID: "db-1", Group: &kurabe.Group{Primary: "db-1"}}, "db-1"},
		{"after a failover", Instance{ID: "db-1", Group: &after}, "db-1~2"},
		{"nothing", Instance{}, ""},
	} {
		if got := c.i.Writer(); got != c.want {
			t.Errorf("%s: %s writes; want %s", c.name, got, c.want)
		}
	}
}

func TestGroupIsCompared(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateInstance(spec("db-1", "a"))))
	single, _ := v.Instance("db-1")
	first := mustCommit(t, kv, NewChange().PutGroup(twoServers(), 0))
	mustSee(t, v, mustCommit(t, kv, NewChange().PutGroup(twoServers(), first)))
	i, _ := v.Instance("db-1")
	status := kurabe.InstanceStatus{ID: "db-1"}
	for _, c := range []struct {
		name   string
		change *Change
		want   error
	}{
		{"a second first one", NewChange().PutGroup(twoServers(), 0), ErrConflict},
		{"over what was not read", NewChange().PutGroup(twoServers(), first), ErrConflict},
		{"its end, not having read it", NewChange().DeleteGroup("db-1", first), ErrConflict},
		{"the end of the instance as it was before", NewChange().DeleteInstance(single), ErrConflict},
		{"a plan made without it", NewChange().RequireGroup("db-1", 0).PutStatus(status, 0), ErrConflict},
		{"a plan made on an old one", NewChange().RequireGroup("db-1", first).PutStatus(status, 0), ErrConflict},
		{"a plan made on it", NewChange().RequireGroup("db-1", i.GroupMod).PutStatus(status, 0), nil},
		{"its end", NewChange().DeleteGroup("db-1", i.GroupMod), nil},
		{"a plan made without it, afterwards", NewChange().RequireGroup("db-1", 0).PutStatus(kurabe.InstanceStatus{ID: "db-2"}, 0), nil},
	} {
		if _, err := c.change.Commit(testContext(t), kv); !errors.Is(err, c.want) {
			t.Errorf("%s: %v; want %v", c.name, err, c.want)
		}
	}
}

func TestGroupThatContradictsItself(t *testing.T) {
	for _, c := range []struct {
		name, words string
		change      func(*kurabe.Group)
	}{
		{"it is of a server", "invalid instance id", func(g *kurabe.Group) { g.Instance = "db-1~2" }},
		{"a stranger writes", "primary", func(g *kurabe.Group) { g.Primary = "db-1~3" }},
		{"nobody writes", "primary", func(g *kurabe.Group) { g.Primary = "" }},
		{"the writer waits for itself", "sync", func(g *kurabe.Group) { g.SyncSet = []kurabe.InstanceID{"db-1"} }},
		{"a stranger in sync", "sync", func(g *kurabe.Group) { g.SyncSet = []kurabe.InstanceID{"db-1~3"} }},
		{"a server of another instance", "db-2", func(g *kurabe.Group) { g.Members[1].ID = "db-2" }},
		{"an id of nobody", "db-1~x", func(g *kurabe.Group) { g.Members[1].ID = "db-1~x" }},
		{"it yields to itself", "take its place", func(g *kurabe.Group) { g.Members, g.SyncSet, g.SwitchoverTo = g.Members[:1], nil, "db-1" }},
		{"it yields and has a standby", "2 servers", func(g *kurabe.Group) { g.SwitchoverTo = "db-2" }},
		{"one server twice", "twice", func(g *kurabe.Group) { g.Members[1].ID = "db-1" }},
		{"a number that is given again", "last number", func(g *kurabe.Group) { g.LastNumber = 1 }},
	} {
		g := twoServers()
		c.change(&g)
		_, err := NewChange().PutGroup(g, 0).Commit(testContext(t), NewMemory())
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v; want an error that says %q", c.name, err, c.words)
		}
	}
}

// Whatever of an instance cannot be read never looks as if it were not there: neither in
// a view that has read it before, nor in one that loads now.
func TestUnreadableRecordsAreNotAbsent(t *testing.T) {
	for _, c := range []struct {
		name, key, value string
		decides          bool
	}{
		{"spec", instanceSpecKey("db-1"), "{", true},
		{"status", instanceStatusKey("db-1"), "{", true},
		{"group", groupKey("db-1"), "{", true},
		{"group without a writer", groupKey("db-1"), `{"instance":"db-1","epoch":3}`, true},
		{"group of another instance", groupKey("db-1"), `{"instance":"db-2","writer":"db-2","last":1,"members":[{"id":"db-2"}]}`, true},
		{"assignment", assignmentKey("h1", kurabe.InstanceID("db-1").Ref()), "{", true},
		{"assignment of a standby", assignmentKey("h1", kurabe.InstanceID("db-1~2").Ref()), "{", true},
		{"assignment of a server that cannot be", assignmentKey("h1", kurabe.InstanceID("db-1~x").Ref()), `{"host":"h1","instance":"db-1~x"}`, true},
		{"assignment of the other server", assignmentKey("h1", kurabe.InstanceID("db-1").Ref()), `{"host":"h1","instance":"db-1~2"}`, true},
		{"report", reportKey("h1", kurabe.InstanceID("db-1~2").Ref()), "{", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			kv := NewMemory()
			v := mustView(t, kv)
			mustSee(t, v, mustCommit(t, kv, NewChange().CreateInstance(spec("db-1", "a")).PutGroup(twoServers(), 0).
				PutStatus(kurabe.InstanceStatus{ID: "db-1"}, 0).PutReport(kurabe.InstanceReport{Host: "h1", Instance: "db-1~2"}).
				PutAssignment(assigned("h1", "db-1", 1), 0).PutAssignment(assigned("h1", "db-1~2", 1), 0)))
			before, _ := v.Any("db-1")
			v.TakeDirty()
			mustSee(t, v, mustCommit(t, kv, NewChange().Put(c.key, []byte(c.value))))
			i, _ := v.Any("db-1")
			if i.Spec == nil || i.Status == nil || i.Group == nil || i.Writer() != "db-1" || len(i.Assignments) != 2 || len(i.Reports) != 1 {
				t.Errorf("what was read last is gone: %+v", i)
			}
			if _, dirty := v.TakeDirty().Instances["db-1"]; !dirty {
				t.Error("nobody looks at the instance")
			}
			var want []string
			if c.decides {
				want = []string{c.key}
			}
			fresh := mustView(t, kv)
			for name, view := range map[string]*View{"the view that followed": v, "a fresh one": fresh} {
				if i, ok := view.Any("db-1"); !ok || !slices.Equal(i.Unreadable, want) {
					t.Errorf("%s: unreadable are %v; want %v", name, i.Unreadable, want)
				}
				if e, ok := errors.AsType[*CorruptError](view.Healthy()); !ok || e.Key != c.key {
					t.Errorf("%s: %v", name, view.Healthy())
				}
			}
			if len(before.Unreadable) != 0 {
				t.Error("a value that somebody holds has changed")
			}
			gone := mustCommit(t, kv, NewChange().Delete(c.key))
			for _, view := range []*View{v, fresh} {
				mustSee(t, view, gone)
				if i, _ := view.Any("db-1"); len(i.Unreadable) != 0 || view.Healthy() != nil {
					t.Errorf("once it is gone: %v, %v", i.Unreadable, view.Healthy())
				}
			}
		})
	}
}

func TestRepairedGroup(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	broken := mustCommit(t, kv, NewChange().Put(groupKey("db-1"), []byte("{")))
	mustSee(t, v, broken)
	if left := v.Leftovers(); len(left) != 1 || len(left[0].Unreadable) != 1 || left[0].Group != nil {
		t.Fatalf("leftovers %+v", left)
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().PutGroup(twoServers(), broken)))
	if i, ok := v.Any("db-1"); !ok || i.Group == nil || len(i.Unreadable) != 0 || v.Healthy() != nil {
		t.Errorf("after the repair: %+v, %v", i, v.Healthy())
	}
}
