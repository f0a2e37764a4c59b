package reconcile

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

// An instance whose group cannot be read, though it is there, is no instance with one
// server, and one whose writer has no assignment is not new: neither it nor its snapshots
// are planned until the records are repaired.
func TestBrokenInstanceIsLeftAlone(t *testing.T) {
	const group = store.Root + "group/db-1"
	for _, c := range []struct {
		name, words string
		broken      *store.Change
	}{
		{"a group that cannot be read", group, store.NewChange().Put(group, []byte("{"))},
		{"a group without a writer", group, store.NewChange().Put(group, []byte(`{"instance":"db-1"}`))},
		{"a writer that no host was told of", "db-1~2 as primary", store.NewChange().PutGroup(twoServers(), 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			kv, view := storeOf(t, c.broken.CreateInstance(classed("db-1", "db.t3.micro", nil)).CreateSnapshot(snapshotOf("snap-1", "db-1")).
				Put(store.PlannerElectionKey, []byte("p")))
			election, err := kv.Get(ctx, store.PlannerElectionKey)
			if err != nil {
				t.Fatal(err)
			}
			term := Term{Fence: store.Fence{Key: election.Key, ModRevision: election.ModRevision}}
			var log bytes.Buffer
			l := New(Config{KV: kv, View: view, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})), Now: time.Now})
			l.again = map[kurabe.Ref]time.Time{}
			look := func() (*store.Instance, *store.Snapshot) {
				l.plan(ctx, term, newFleet(view), "db-1", noon)
				l.planSnapshot(ctx, term, "snap-1", noon)
				i, _ := view.Instance("db-1")
				s, _ := view.Snapshot("snap-1")
				return i, s
			}
			for range 2 {
				if i, s := look(); i.Status != nil || s.Status != nil {
					t.Fatalf("it was planned: %+v, %+v", i.Status, s.Status)
				}
			}
			if told := strings.Count(log.String(), c.words); told != 1 {
				t.Errorf("told %d times:\n%s", told, log.String())
			}
			i, _ := view.Instance("db-1")
			if e := Explain(view, i, noon); !e.Plan.LeftAlone || len(e.Plan.Reasons) != 1 || !strings.Contains(e.Plan.Reasons[0], c.words) || e.Plan.NewStatus {
				t.Errorf("explained as %+v", e.Plan)
			}
			revision, err := store.NewChange().Delete(group).Commit(ctx, kv)
			if err == nil {
				err = view.WaitRevision(ctx, revision)
			}
			if err != nil {
				t.Fatal(err)
			}
			if i, s := look(); i.Status == nil || s.Status == nil {
				t.Errorf("it is still left alone: %+v, %+v", i.Status, s.Status)
			}
		})
	}
}
