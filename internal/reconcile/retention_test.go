package reconcile

import (
	"fmt"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/plan/backup"
	"kurabe/internal/store"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func hour(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Hour))) }

func offset(n int64) kurabe.LogPosition { return kurabe.LogPosition{File: "000001", Offset: n} }

// madeBackup is an automated snapshot of db-1, taken at an hour and a place in the log.
type madeBackup struct {
	id       string
	taken    float64
	at       int64
	change   func(*kurabe.SnapshotSpec, *kurabe.SnapshotStatus)
	untaken  bool
	retained int // days of its instance at the time, 7 when 0
}

func (b madeBackup) put(c *store.Change) {
	spec := snapshotOf(kurabe.SnapshotID(b.id), "db-1")
	spec.Kind, spec.CreatedAt = kurabe.SnapshotAutomated, hour(b.taken)
	spec.Source.Settings.RetentionDays = 7
	if b.retained > 0 {
		spec.Source.Settings.RetentionDays = b.retained
	}
	status := kurabe.SnapshotStatus{ID: spec.ID, State: kurabe.SnapshotAvailable}
	if !b.untaken {
		status.Facts = kurabe.SnapshotFacts{TakenAt: hour(b.taken), UsableAt: hour(b.taken + 0.1), Position: offset(b.at)}
	}
	if b.change != nil {
		b.change(&spec, &status)
	}
	c.CreateSnapshot(spec).PutSnapshotStatus(status, 0)
}

func damagedBackup(_ *kurabe.SnapshotSpec, s *kurabe.SnapshotStatus) {
	s.Verified = &kurabe.Verification{At: noon, Problems: []string{"a page is damaged"}}
}

func lostBackup(_ *kurabe.SnapshotSpec, s *kurabe.SnapshotStatus) { s.State = kurabe.SnapshotFailed }

func runAt(n float64, at int64) kurabe.LogRun {
	return kurabe.LogRun{Began: hour(n), First: kurabe.LogMark{At: hour(n), Position: offset(at)}, Last: kurabe.LogMark{At: hour(n + 1), Position: offset(at + 150)}}
}

// living is the instance, kept for a day; gone ones have no record.
func living(c *store.Change) {
	c.CreateInstance(kurabe.InstanceSpec{ID: "db-1", Name: "orders"}).
		PutStatus(kurabe.InstanceStatus{ID: "db-1", Applied: kurabe.InstanceSettings{Class: "db.t3.micro", RetentionDays: 1}}, 0)
}

func TestRetentionKnowsWhatIsNewer(t *testing.T) {
	deleted := func(s *kurabe.SnapshotSpec, _ *kurabe.SnapshotStatus) { s.Deleting = &kurabe.Deletion{At: noon} }
	copied := func(s *kurabe.SnapshotSpec, _ *kurabe.SnapshotStatus) { s.CopyOf = "snap-other" }
	for _, c := range []struct {
		name   string
		list   []madeBackup
		runs   []kurabe.LogRun
		newest string
		newer  map[string]float64 // the hour from which on it is not needed; absent: needed
	}{
		{"one after the other", []madeBackup{{id: "snap-a", at: 1}, {id: "snap-b", taken: 1, at: 100}, {id: "snap-c", taken: 24, at: 200}},
			[]kurabe.LogRun{runAt(-1, 0)}, "snap-c", map[string]float64{"snap-a": 1.1, "snap-b": 24.1}},
		{"the clock went back", []madeBackup{{id: "snap-a", at: 500}, {id: "snap-b", taken: -0.9, at: 700}, {id: "snap-c", taken: 15, at: 900}},
			[]kurabe.LogRun{runAt(-2, 400), runAt(-1, 650)}, "snap-c", map[string]float64{"snap-a": -0.8, "snap-b": 15.1}},
		{"the clock went back, and the log is not known", []madeBackup{{id: "snap-a", at: 500}, {id: "snap-b", taken: -0.9, at: 700}, {id: "snap-c", taken: 15, at: 900}},
			nil, "snap-c", map[string]float64{"snap-a": 15.1, "snap-b": 15.1}},
		{"the log went back", []madeBackup{{id: "snap-a", at: 500}, {id: "snap-b", taken: 20, at: 310}, {id: "snap-c", taken: 44, at: 330}},
			[]kurabe.LogRun{runAt(-2, 400), runAt(19, 300)}, "snap-c", map[string]float64{"snap-a": 20.1, "snap-b": 44.1}},
		{"the log went back, and is not known", []madeBackup{{id: "snap-a", at: 500}, {id: "snap-b", taken: 20, at: 310}, {id: "snap-c", taken: 44, at: 330}},
			nil, "snap-a", map[string]float64{"snap-b": 44.1}},
		{"a damaged one is no base", []madeBackup{{id: "snap-a", at: 1}, {id: "snap-b", taken: 24, at: 100, change: damagedBackup}, {id: "snap-c", taken: 49, at: 200}},
			[]kurabe.LogRun{runAt(-1, 0)}, "snap-c", map[string]float64{"snap-a": 49.1, "snap-b": 49.1}},
		{"nor one that is lost, or being deleted, or a copy", []madeBackup{{id: "snap-a", at: 1}, {id: "snap-b", taken: 1, at: 100, change: lostBackup}, {id: "snap-c", taken: 2, at: 200, change: deleted}, {id: "snap-d", taken: 3, at: 300, change: copied}},
			[]kurabe.LogRun{runAt(-1, 0)}, "snap-a", nil},
		{"the newest is damaged", []madeBackup{{id: "snap-a", at: 1}, {id: "snap-b", taken: 24, at: 100, change: damagedBackup}},
			[]kurabe.LogRun{runAt(-1, 0)}, "snap-b", nil},
		{"one without a place in the log", []madeBackup{{id: "snap-a", at: 1}, {id: "snap-b", taken: 1, change: func(_ *kurabe.SnapshotSpec, s *kurabe.SnapshotStatus) { s.Facts.Position = kurabe.LogPosition{} }}},
			[]kurabe.LogRun{runAt(-1, 0)}, "snap-a", nil},
		{"one that failed", []madeBackup{{id: "snap-a", untaken: true, change: lostBackup}, {id: "snap-b", taken: 1, at: 100}},
			[]kurabe.LogRun{runAt(-1, 0)}, "snap-b", map[string]float64{"snap-a": 1.1}},
		{"one that failed when the clock had gone back", []madeBackup{{id: "snap-a", untaken: true, change: lostBackup}, {id: "snap-b", taken: 100, at: 100}},
			[]kurabe.LogRun{runAt(-1, 0)}, "snap-b", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			change := store.NewChange().PutLogs(kurabe.LogReport{Host: "h1", Logs: []kurabe.InstanceLog{{Instance: "db-1", Runs: c.runs}}})
			living(change)
			for _, b := range c.list {
				b.put(change)
			}
			view := viewOf(t, change)
			for _, b := range c.list {
				s, _ := view.Snapshot(kurabe.SnapshotID(b.id))
				w := snapshotWorld(view, s, hour(60))
				if w.Retention == nil {
					if s.Spec.CopyOf == "" {
						t.Errorf("%s has no retention", b.id)
					}
					continue
				}
				want, is := c.newer[b.id]
				if is == w.Retention.Newer.IsZero() || is && !w.Retention.Newer.Equal(hour(want)) {
					t.Errorf("%s is succeeded at %s, want %v at hour %g", b.id, w.Retention.Newer, is, want)
				}
				if v := verification(view, s, time.Hour, hour(60)); v.Newest != (b.id == c.newest) {
					t.Errorf("%s is the newest: %v", b.id, v.Newest)
				}
			}
		})
	}
}

// What was verified before the clock went back does not put off what follows.
func TestLastVerification(t *testing.T) {
	verified := func(at float64) func(*kurabe.SnapshotSpec, *kurabe.SnapshotStatus) {
		return func(_ *kurabe.SnapshotSpec, s *kurabe.SnapshotStatus) {
			s.Verified = &kurabe.Verification{At: hour(at), OK: true}
		}
	}
	change := store.NewChange()
	madeBackup{id: "snap-a", at: 1, change: verified(1)}.put(change)
	madeBackup{id: "snap-b", taken: 1, at: 2, change: verified(900)}.put(change)
	view := viewOf(t, change)
	s, _ := view.Snapshot("snap-b")
	if v := verification(view, s, time.Hour, hour(2)); !v.Last.Equal(hour(1)) {
		t.Errorf("last verified at %s", v.Last)
	}
}

func TestRetentionOfGoneInstance(t *testing.T) {
	list := []madeBackup{{id: "snap-a", at: 1, retained: 1}, {id: "snap-b", taken: 24, at: 100, retained: 35}}
	for _, c := range []struct {
		name  string
		runs  []kurabe.LogRun
		until float64
	}{
		{"the log goes on behind it", []kurabe.LogRun{runAt(-1, 0), runAt(30, 150)}, 31},
		{"it ends before it", []kurabe.LogRun{runAt(-1, 0)}, 24},
		{"no host has told of it", nil, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			change := store.NewChange()
			if c.runs != nil {
				change.PutLogs(kurabe.LogReport{Host: "h1", Logs: []kurabe.InstanceLog{{Instance: "db-1", Runs: c.runs}}})
			}
			for _, b := range list {
				b.put(change)
			}
			view := viewOf(t, change)
			for _, id := range []kurabe.SnapshotID{"snap-a", "snap-b"} {
				s, _ := view.Snapshot(id)
				r := snapshotWorld(view, s, hour(60)).Retention
				if r.Days != 35 || !r.Gone || r.Newer.IsZero() != (id == "snap-b") || id == "snap-b" && !r.Until.Equal(hour(c.until)) {
					t.Errorf("%s: %+v", id, r)
				}
			}
		})
	}
}

// TestDeletionTakesImportedBackups: an instance whose backups were imported again goes
// like any other, and meanwhile is not held up by what a host looks for.
func TestDeletionTakesImportedBackups(t *testing.T) {
	imported := func(s *kurabe.SnapshotSpec, st *kurabe.SnapshotStatus) {
		s.Imported = true
		st.Host = "h1"
	}
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("its instance is gone: %v", gone), func(t *testing.T) {
			change := store.NewChange().
				PutAssignment(kurabe.SnapshotAssignment{Host: "h1", Snapshot: "snap-a", Generation: 1, Goal: kurabe.SnapshotPresent}, 0)
			madeBackup{id: "snap-a", at: 1, change: imported}.put(change)
			if !gone {
				change.CreateInstance(kurabe.InstanceSpec{ID: "db-1", Name: "orders", Deleting: &kurabe.Deletion{At: noon}}).
					PutStatus(kurabe.InstanceStatus{ID: "db-1", Applied: kurabe.InstanceSettings{Class: "db.t3.micro", RetentionDays: 1}}, 0).
					PutAssignment(kurabe.Assignment{Host: "h1", Instance: "db-1", Goal: kurabe.GoalAbsent}, 0)
			}
			view := viewOf(t, change)
			s, _ := view.Snapshot("snap-a")
			r := backup.Next(snapshotWorld(view, s, hour(1)))
			if goes := r.Assignment != nil && r.Assignment.Goal == kurabe.SnapshotAbsent; goes == gone {
				t.Errorf("it goes: %v, %v", goes, r.Reasons)
			}
		})
	}
	looking := snapshotOf("snap-2", "db-1")
	looking.Imported = true
	change := store.NewChange().CreateSnapshot(looking).PutSnapshotStatus(kurabe.SnapshotStatus{ID: "snap-2", State: kurabe.SnapshotCreating}, 0)
	living(change)
	view := viewOf(t, change)
	i, _ := view.Instance("db-1")
	var w plan.World
	newFleet(view).addSnapshots(i, &w)
	if w.BackingUp {
		t.Error("an instance is backing up while a host looks for a snapshot")
	}
}
