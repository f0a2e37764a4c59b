package store

import (
	"maps"
	"slices"
	"testing"

	"kurabe"
)

func snapshotSpec(id, name string, of kurabe.InstanceID) kurabe.SnapshotSpec {
	return kurabe.SnapshotSpec{ID: kurabe.SnapshotID(id), Name: name, Source: kurabe.SnapshotSource{Instance: of}}
}

func TestViewFollowsASnapshot(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateSnapshot(snapshotSpec("snap-1", "b", "db-1"))))
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateSnapshot(snapshotSpec("snap-2", "rds:a", "db-1"))))
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateSnapshot(snapshotSpec("snap-3", "a", "db-2"))))
	var got []string
	for _, s := range v.Snapshots() {
		got = append(got, s.Name())
	}
	if !slices.Equal(got, []string{"a", "b", "rds:a"}) {
		t.Errorf("snapshots %q", got)
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().
		PutSnapshotStatus(kurabe.SnapshotStatus{ID: "snap-1", State: kurabe.SnapshotAvailable}, 0).
		PutAssignment(kurabe.SnapshotAssignment{Host: "h", Snapshot: "snap-1", Generation: 1}, 0).
		PutReport(kurabe.SnapshotReport{Host: "h", Snapshot: "snap-1", Generation: 1, Done: true})))
	s, ok := v.SnapshotByName("b")
	if !ok || s.ID != "snap-1" || s.Status.State != kurabe.SnapshotAvailable {
		t.Fatalf("snapshot %+v", s)
	}
	if a, ok := s.Assignment("h"); !ok || a.Value.Generation != 1 || a.ModRevision == 0 {
		t.Errorf("assignment %+v", a)
	}
	if r, ok := s.Report("h"); !ok || !r.Done {
		t.Errorf("report %+v", r)
	}
	if list := v.Snapshots(); list[1] != s {
		t.Error("the list does not hold the newest value")
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().DeleteSnapshot(s)))
	if _, ok := v.Snapshot("snap-1"); ok {
		t.Error("a deleted snapshot is there")
	}
	if left := v.SnapshotLeftovers(); len(left) != 1 || left[0].ID != "snap-1" || len(left[0].Reports) != 1 {
		t.Errorf("leftovers %+v; want the report", left)
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().DropReport("h", kurabe.SnapshotID("snap-1").Ref()).CreateSnapshot(snapshotSpec("snap-4", "b", "db-1"))))
	if _, ok := v.AnySnapshot("snap-1"); ok {
		t.Error("something is left")
	}
}

// A snapshot and an instance may have one name, and what hangs together is dirty
// together.
func TestSnapshotsAndInstancesAreLinked(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	copied := snapshotSpec("snap-copy", "copy", "db-1")
	copied.CopyOf = "snap-1"
	restored := spec("db-restored", "restored")
	restored.Origin = &kurabe.Origin{Snapshot: "snap-1"}
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateInstance(spec("db-1", "same")).CreateInstance(spec("db-else", "else")).CreateInstance(restored).
		CreateSnapshot(snapshotSpec("snap-1", "same", "db-1")).CreateSnapshot(copied).CreateSnapshot(snapshotSpec("snap-else", "else", "db-else"))))
	if list := v.SnapshotsOf("db-1"); len(list) != 2 || list[0].ID != "snap-1" || list[1].ID != "snap-copy" {
		t.Errorf("snapshots of it: %+v", list)
	}
	if list := v.CopiesOf("snap-1"); len(list) != 1 || list[0].ID != "snap-copy" {
		t.Errorf("copies of it: %+v", list)
	}
	if list := v.RestoredFrom("snap-1"); len(list) != 1 || list[0].ID != "db-restored" {
		t.Errorf("restored from it: %+v", list)
	}
	v.TakeDirty()
	s, _ := v.Snapshot("snap-1")
	for _, c := range []struct {
		name      string
		change    *Change
		instances []kurabe.InstanceID
		snapshots []kurabe.SnapshotID
	}{
		{"a snapshot's report", NewChange().PutReport(kurabe.SnapshotReport{Host: "h", Snapshot: "snap-1"}),
			[]kurabe.InstanceID{"db-1", "db-restored"}, []kurabe.SnapshotID{"snap-1", "snap-copy"}},
		{"a copy's status", NewChange().PutSnapshotStatus(kurabe.SnapshotStatus{ID: "snap-copy"}, 0),
			[]kurabe.InstanceID{"db-1"}, []kurabe.SnapshotID{"snap-1", "snap-copy"}},
		{"the source's assignment", NewChange().PutAssignment(kurabe.Assignment{Host: "h", Instance: "db-1"}, 0),
			[]kurabe.InstanceID{"db-1"}, []kurabe.SnapshotID{"snap-1", "snap-copy"}},
		{"a restored instance's status", NewChange().PutStatus(kurabe.InstanceStatus{ID: "db-restored"}, 0),
			[]kurabe.InstanceID{"db-restored"}, []kurabe.SnapshotID{"snap-1"}},
		{"the end of a restored instance", NewChange().Delete(instanceSpecKey("db-restored")),
			[]kurabe.InstanceID{"db-restored"}, []kurabe.SnapshotID{"snap-1"}},
		{"the end of a snapshot", NewChange().DeleteSnapshot(s),
			[]kurabe.InstanceID{"db-1"}, []kurabe.SnapshotID{"snap-1", "snap-copy"}},
		{"a record that cannot be read", NewChange().Put(snapshotSpecKey("snap-else"), []byte("{")),
			nil, []kurabe.SnapshotID{"snap-else"}},
	} {
		mustSee(t, v, mustCommit(t, kv, c.change))
		d := v.TakeDirty()
		instances, snapshots := slices.Sorted(maps.Keys(d.Instances)), slices.Sorted(maps.Keys(d.Snapshots))
		if d.All || !slices.Equal(instances, c.instances) || !slices.Equal(snapshots, c.snapshots) {
			t.Errorf("%s makes dirty %v %v; want %v %v", c.name, instances, snapshots, c.instances, c.snapshots)
		}
	}
	if list := v.RestoredFrom("snap-1"); len(list) != 0 {
		t.Errorf("restored from it: %+v", list)
	}
	if s, ok := v.Snapshot("snap-else"); !ok || s.Name() != "else" {
		t.Error("an unreadable spec looks like a deleted snapshot")
	}
}
