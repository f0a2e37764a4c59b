package reconcile

import (
	"testing"

	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/plan/backup"
	"kurabe/internal/store"
)

// TestHostThatIsGone: in its place a person has said that nothing is left of what is to be
// removed there. Of what is not, its last words stand.
func TestHostThatIsGone(t *testing.T) {
	stays, goes := serverAt("h2", "db-1", 3, "10.0.0.1", ""), serverAt("h2", "db-2", 4, "10.0.0.2", "")
	stays.Goal, goes.Goal = kurabe.GoalRunning, kurabe.GoalAbsent
	change := store.NewChange().PutHost(kurabe.HostReport{Host: "h2"}).PutJoinedHost(kurabe.JoinedHost{ID: "h2", Gone: true}, 0).
		CreateInstance(classed("db-1", "db.t3.micro", nil)).PutAssignment(stays, 0).PutReport(kurabe.InstanceReport{Host: "h2", Instance: "db-1", Generation: 3, Running: true}).
		CreateInstance(classed("db-2", "db.t3.micro", nil)).PutAssignment(goes, 0).PutReport(kurabe.InstanceReport{Host: "h2", Instance: "db-2", Generation: 3, Running: true})
	v := viewOf(t, change)
	f := newFleet(v)
	world := func(id kurabe.InstanceID) plan.World {
		i, _ := v.Instance(id)
		return f.world(i, noon)
	}
	if w := world("db-1"); !w.RemovedHosts["h2"] || w.Closed["h2"] == "" || w.Report == nil || !w.Report.Running || w.Report.Absent {
		t.Errorf("of one that stays: %+v, closed %q", w.Report, w.Closed["h2"])
	}
	if w := world("db-2"); w.Report == nil || !w.Report.Absent || w.Report.Generation != 4 || w.Report.Running {
		t.Errorf("of one that goes: %+v", w.Report)
	}
	a := kurabe.SnapshotAssignment{Host: "h2", Snapshot: "snap-1", Generation: 5, Goal: kurabe.SnapshotPresent}
	if r := goneSnapshot(v, a); r == nil || r.Failure == nil || r.Failure.Attempts < backup.Tries || r.Done || r.Generation != 5 {
		t.Errorf("of a snapshot: %+v", r)
	}
	a.Goal = kurabe.SnapshotAbsent
	if r := goneSnapshot(v, a); r == nil || !r.Absent || r.Generation != 5 {
		t.Errorf("of a snapshot that goes: %+v", r)
	}
	a.Host = "h1"
	if r := goneSnapshot(v, a); r != nil {
		t.Errorf("of another host: %+v", r)
	}
}
