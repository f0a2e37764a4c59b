package hostlinktest

import (
	"maps"
	"testing"

	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/store"
)

func snapshot(id string, generation int) kurabe.SnapshotAssignment {
	return kurabe.SnapshotAssignment{Host: host, Snapshot: kurabe.SnapshotID(id), Generation: kurabe.Generation(generation)}
}

func testSnapshots(t *testing.T, kv *store.Memory, link hostlink.Link) {
	first := mustCommit(t, kv, store.NewChange().PutAssignment(assignment("db-1", 1), 0).PutAssignment(snapshot("snap-1", 1), 0).
		PutAssignment(kurabe.SnapshotAssignment{Host: "h2", Snapshot: "snap-9", Generation: 1}, 0))
	f := &follower{in: link.Assignments(testContext(t), host)}
	f.until(t, map[string]kurabe.Generation{"db-1": 1, "snap-1": 1})
	second := mustCommit(t, kv, store.NewChange().PutAssignment(snapshot("snap-1", 2), first).PutAssignment(snapshot("snap-2", 1), 0))
	f.until(t, map[string]kurabe.Generation{"db-1": 1, "snap-1": 2, "snap-2": 1})
	mustCommit(t, kv, store.NewChange().DeleteAssignment(host, kurabe.SnapshotID("snap-2").Ref(), second).PutAssignment(assignment("db-1", 2), first))
	f.until(t, map[string]kurabe.Generation{"db-1": 2, "snap-1": 2})
}

// testOutlived: an agent that was away when the records went hears of it by the
// reports that it left.
func testOutlived(t *testing.T, kv *store.Memory, link hostlink.Link) {
	mustCommit(t, kv, store.NewChange().PutAssignment(assignment("db-1", 1), 0).PutAssignment(snapshot("snap-1", 1), 0))
	for _, id := range []kurabe.InstanceID{"db-1", "db-2"} {
		mustCommit(t, kv, store.NewChange().PutReport(kurabe.InstanceReport{Host: host, Instance: id}))
	}
	for _, id := range []kurabe.SnapshotID{"snap-1", "snap-2"} {
		mustCommit(t, kv, store.NewChange().PutReport(kurabe.SnapshotReport{Host: host, Snapshot: id}))
	}
	ctx := testContext(t)
	select {
	case u := <-link.Assignments(ctx, host):
		withdrawn := map[kurabe.Ref]bool{}
		for _, ref := range u.Withdrawn {
			withdrawn[ref] = true
		}
		want := map[kurabe.Ref]bool{kurabe.InstanceID("db-2").Ref(): true, kurabe.SnapshotID("snap-2").Ref(): true}
		if !u.Full || len(u.Orders) != 2 || !maps.Equal(withdrawn, want) {
			t.Errorf("first update %+v", u)
		}
	case <-ctx.Done():
		t.Fatal("no update")
	}
}

func testSnapshotReports(t *testing.T, kv *store.Memory, link hostlink.Link) {
	ctx := testContext(t)
	view := store.NewView(kv)
	go view.Run(ctx) // ends with the test's context
	mustCommit(t, kv, store.NewChange().PutAssignment(kurabe.SnapshotAssignment{Host: host, Snapshot: "snap-1"}, 0))
	report := kurabe.SnapshotReport{Host: host, Snapshot: "snap-1", Generation: 3, Done: true, Facts: kurabe.SnapshotFacts{Percent: 100}}
	eventually(t, func() error { return link.PutReport(ctx, report) })
	see(t, kv, view)
	if s, ok := view.AnySnapshot("snap-1"); !ok || len(s.Reports) != 1 || s.Reports[0].Value != report {
		t.Errorf("report: %+v", s)
	}
	eventually(t, func() error { return link.DropReport(ctx, host, kurabe.SnapshotID("snap-1").Ref()) })
	see(t, kv, view)
	if s, ok := view.AnySnapshot("snap-1"); !ok || len(s.Reports) != 0 {
		t.Errorf("after the drop: %+v", s)
	}
}
