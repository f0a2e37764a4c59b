package hostlink_test

import (
	"errors"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/store"
)

// TestHostSpeaksOfWhatItHas: what is not assigned to a host is not reported by it, and the log
// says so once.
func TestHostSpeaksOfWhatItHas(t *testing.T) {
	f := fresh(t)
	ctx := t.Context()
	snapshot := kurabe.SnapshotSpec{ID: "snap-1", Name: "kept", Source: kurabe.SnapshotSource{Instance: "db-gone"}}
	revision, err := store.NewChange().CreateSnapshot(snapshot).
		PutAssignment(kurabe.Assignment{Host: "h1", Instance: "db-1"}, 0).PutAssignment(kurabe.Assignment{Host: "h1", Instance: "db-2~2"}, 0).
		PutAssignment(kurabe.Assignment{Host: "h2", Instance: "db-2"}, 0).PutAssignment(kurabe.Assignment{Host: "h2", Instance: "db-3"}, 0).
		PutAssignment(kurabe.SnapshotAssignment{Host: "h1", Snapshot: "snap-1"}, 0).
		PutAssignment(kurabe.SnapshotAssignment{Host: "h2", Snapshot: "snap-2"}, 0).Commit(ctx, f.kv)
	if err == nil {
		err = f.view.WaitRevision(ctx, revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	h1 := spokesman{f.agent(t, "h1"), f}
	for id, ok := range map[kurabe.InstanceID]bool{"db-1": true, "db-2~2": true, "db-2": false, "db-3": false, "db-9": false, "": false, "x/y": false} {
		for range 2 {
			err := h1.PutReport(ctx, kurabe.InstanceReport{Host: "h1", Instance: id})
			if (err == nil) != ok || err != nil && !errors.Is(err, hostlink.ErrRefused) {
				t.Errorf("report of %q: %v", id, err)
			}
		}
	}
	for id, ok := range map[kurabe.SnapshotID]bool{"snap-1": true, "snap-2": false, "snap-9": false} {
		err := h1.PutReport(ctx, kurabe.SnapshotReport{Host: "h1", Snapshot: id})
		if (err == nil) != ok || err != nil && !errors.Is(err, hostlink.ErrRefused) {
			t.Errorf("report of %q: %v", id, err)
		}
	}
	h1.logs(t)
	// A word that is merely late is refused too, and nobody need be told of it.
	if err := h1.PutReport(ctx, kurabe.InstanceReport{Host: "h1", Instance: "db-1"}); !errors.Is(err, hostlink.ErrRefused) {
		t.Errorf("what was taken from it: %v", err)
	}
	if strings.Contains(f.log.String(), "of=db-1\n") {
		t.Error("the log tells of a word that was late")
	}
	for _, id := range []string{"db-2", "db-3", "db-9", "snap-2"} {
		if n := strings.Count(f.log.String(), "not assigned to it\" host=h1 of="+id+"\n"); n != 1 {
			t.Errorf("the log tells of %s %d times", id, n)
		}
	}
}

// spokesman is a host that speaks of more than it has.
type spokesman struct {
	*hostlink.Remote
	f *far
}

// logs reports logs, of which those of others are left out.
func (h1 spokesman) logs(t *testing.T) {
	t.Helper()
	// Given so late that the view may not know it.
	if _, err := store.NewChange().PutAssignment(kurabe.Assignment{Host: "h1", Instance: "db-4"}, 0).Commit(t.Context(), h1.f.kv); err != nil {
		t.Fatal(err)
	}
	var logs []kurabe.InstanceLog
	for _, id := range []kurabe.InstanceID{"db-1", "db-2", "db-3", "db-4", "db-gone", "db-9"} {
		logs = append(logs, kurabe.InstanceLog{Instance: id, StoredBytes: 1})
	}
	if err := h1.PutLogs(t.Context(), kurabe.LogReport{Host: "h1", Logs: logs}); err != nil {
		t.Fatal(err)
	}
	// What was its own when it was told of first stays so.
	if _, err := store.NewChange().Delete(store.AssignmentPrefix("h1", kurabe.KindServer)+"db-1").Commit(t.Context(), h1.f.kv); err != nil {
		t.Fatal(err)
	}
	if err := h1.PutLogs(t.Context(), kurabe.LogReport{Host: "h1", Logs: logs}); err != nil {
		t.Fatal(err)
	}
	entries, at, err := h1.f.kv.List(t.Context(), store.ReportPrefix("h1"))
	if err == nil {
		err = h1.f.view.WaitRevision(t.Context(), at)
	}
	if err != nil || len(entries) != 4 { // of two servers, a snapshot, and the logs
		t.Errorf("%d reports are stored (%v)", len(entries), err)
	}
	for id, ok := range map[kurabe.InstanceID]bool{"db-1": true, "db-2": true, "db-3": false, "db-4": true, "db-gone": true, "db-9": false} {
		if log, kept := h1.f.view.LogOf(id); kept != ok {
			t.Errorf("log of %s: %+v", id, log)
		}
	}
}
