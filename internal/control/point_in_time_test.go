package control

import (
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// The newest automated snapshot is what a restore to a moment begins with, unless
// damage was found in it and an older sound one reaches the moment too.
func TestFindBaseAvoidsDamage(t *testing.T) {
	position := func(n int64) kurabe.LogPosition {
		return kurabe.LogPosition{File: "000000010000000000000001", Offset: n}
	}
	hour := func(n int) time.Time { return scopetest.Now.Add(time.Duration(n) * time.Hour) }
	damage := &kurabe.Verification{At: scopetest.Now, Problems: []string{"a pack is missing"}}
	sound := &kurabe.Verification{At: scopetest.Now, OK: true}
	for _, c := range []struct {
		name     string
		verified map[string]*kurabe.Verification
		at       time.Time
		want     string
	}{
		{"none was verified", nil, hour(5), "rds:orders-3"},
		{"the newest is damaged", map[string]*kurabe.Verification{"rds:orders-3": damage, "rds:orders-2": sound}, hour(5), "rds:orders-2"},
		{"the two newest are", map[string]*kurabe.Verification{"rds:orders-3": damage, "rds:orders-2": damage}, hour(5), "rds:orders-1"},
		{"an older one is", map[string]*kurabe.Verification{"rds:orders-1": damage}, hour(5), "rds:orders-3"},
		{"all are: the newest may still do", map[string]*kurabe.Verification{"rds:orders-1": damage, "rds:orders-2": damage, "rds:orders-3": damage}, hour(5), "rds:orders-3"},
		{"the only one that reaches the moment is", map[string]*kurabe.Verification{"rds:orders-1": damage}, hour(1).Add(time.Minute), "rds:orders-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			for n, name := range []string{"rds:orders-1", "rds:orders-2", "rds:orders-3"} {
				at := hour(n + 1)
				addSnapshotOf(t, w, name, kurabe.SnapshotAutomated, at)
				s, _ := w.View.SnapshotByName(name)
				scopetest.Commit(t, w.Scope, store.NewChange().PutSnapshotStatus(kurabe.SnapshotStatus{
					ID: s.ID, SpecRevision: 1, State: kurabe.SnapshotAvailable, Verified: c.verified[name],
					Facts: kurabe.SnapshotFacts{TakenAt: at, UsableAt: at.Add(time.Second), Position: position(int64(n+1) * 100)},
				}, s.StatusMod))
			}
			scopetest.Commit(t, w.Scope, store.NewChange().PutLogs(kurabe.LogReport{Host: "h1", At: scopetest.Now, Logs: []kurabe.InstanceLog{{
				Instance: "db-ORDERS", Runs: []kurabe.LogRun{{Began: hour(0), First: kurabe.LogMark{At: hour(0), Position: position(1)}, Last: kurabe.LogMark{At: hour(6), Position: position(1000)}}},
			}}}))
			b, err := w.AutomatedBackup("db-ORDERS")
			if err != nil {
				t.Fatal(err)
			}
			from, at, err := w.findBase(b, c.at)
			if err != nil || from.Spec.Name != c.want || !at.Equal(c.at) {
				t.Errorf("%+v, %v, %v", from, at, err)
			}
		})
	}
}

// Where a clock went back, moments have been twice: the newer ones are meant, and what
// was before counts no more once a snapshot follows.
func TestClockWentBack(t *testing.T) {
	w := newTestWorld(t)
	position := func(n int64) kurabe.LogPosition {
		return kurabe.LogPosition{File: "000000010000000000000001", Offset: n}
	}
	hour := func(n float64) time.Time { return scopetest.Now.Add(time.Duration(n * float64(time.Hour))) }
	runs := []kurabe.LogRun{
		{Began: hour(0), First: kurabe.LogMark{At: hour(0), Position: position(1)}, Last: kurabe.LogMark{At: hour(6), Position: position(600)}, Ended: "the clock went back"},
		{Began: hour(6), First: kurabe.LogMark{At: hour(5), Position: position(610)}, Last: kurabe.LogMark{At: hour(5.5), Position: position(900)}},
	}
	add := func(name string, taken float64, at int64) {
		addSnapshotOf(t, w, name, kurabe.SnapshotAutomated, hour(taken))
		s, _ := w.View.SnapshotByName(name)
		scopetest.Commit(t, w.Scope, store.NewChange().PutSnapshotStatus(kurabe.SnapshotStatus{
			ID: s.ID, SpecRevision: 1, State: kurabe.SnapshotAvailable,
			Facts: kurabe.SnapshotFacts{TakenAt: hour(taken), UsableAt: hour(taken), Position: position(at)},
		}, s.StatusMod))
	}
	scopetest.Commit(t, w.Scope, store.NewChange().PutLogs(kurabe.LogReport{Host: "h1", At: scopetest.Now, Logs: []kurabe.InstanceLog{{Instance: "db-ORDERS", Runs: runs}}}))
	// It was taken in the first pass of the hour, at a moment that the second has too.
	add("rds:orders-1", 5.2, 500)
	b, err := w.AutomatedBackup("db-ORDERS")
	if err != nil || !b.Window.Latest.Equal(hour(6)) {
		t.Fatalf("it stands still until a snapshot follows: %+v, %v", b.Window, err)
	}
	add("rds:orders-2", 5.1, 700)
	if b, err = w.AutomatedBackup("db-ORDERS"); err != nil || !b.Window.Latest.Equal(hour(5.5)) {
		t.Fatalf("%+v, %v", b.Window, err)
	}
	for _, c := range []struct {
		at   float64
		want string
	}{{5.3, "rds:orders-2"}, {5.8, "rds:orders-1"}, {6.5, ""}, {1, ""}} {
		from, _, err := w.findBase(b, hour(c.at))
		if (c.want == "") != (err != nil) || err == nil && from.Spec.Name != c.want {
			t.Errorf("hour %g: %+v, %v instead of %q", c.at, from, err, c.want)
		}
	}
}
