package control

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/store"
)

// foundSnapshot is one as a repository holds it.
func foundSnapshot(id, name string) ImportedSnapshot {
	spec := newTestSpec("shop")
	return ImportedSnapshot{
		ID: kurabe.SnapshotID(id), Name: name, Facts: kurabe.SnapshotFacts{TakenAt: testNow.Add(-100 * 24 * 60 * 60 * 1e9)},
		Source: kurabe.SnapshotSource{
			Instance: "db-LOST", Name: "shop", Engine: kurabe.Postgres, MasterUsername: "master", Password: kurabe.Password{},
			OptionGroup: spec.OptionGroup, Settings: spec.Now, Locale: "C",
		},
	}
}

func TestImportSnapshots(t *testing.T) {
	c := newTestWorld(t)
	taken := foundSnapshot("snap-mine", "nightly")
	mustCommit(t, c, store.NewChange().CreateSnapshot(kurabe.SnapshotSpec{ID: "snap-mine", Name: "nightly", Kind: kurabe.SnapshotManual, Source: taken.Source}))
	long := strings.Repeat("n", maxSnapshotName)
	broken := func(do func(*ImportedSnapshot)) ImportedSnapshot {
		f := foundSnapshot("snap-bad", "bad")
		do(&f)
		return f
	}
	found := []ImportedSnapshot{
		taken, foundSnapshot("snap-a", "nightly"), foundSnapshot("snap-b", "nightly"), foundSnapshot("snap-c", "rds:shop-2026-11-20-05-00"),
		foundSnapshot("snap-d", long), foundSnapshot("snap-e", long),
		broken(func(f *ImportedSnapshot) { f.Err = errors.New("torn record") }),
		broken(func(f *ImportedSnapshot) { f.Source.Engine = "oracle" }),
		broken(func(f *ImportedSnapshot) { f.Source.MasterUsername = "" }),
		broken(func(f *ImportedSnapshot) { f.Facts = kurabe.SnapshotFacts{} }),
		broken(func(f *ImportedSnapshot) { f.Name = "no name" }),
		broken(func(f *ImportedSnapshot) { f.Name = "rds:" }),
	}
	out, err := c.ImportSnapshots(t.Context(), found)
	if err != nil || len(out.Imported) != 5 || len(out.Known) != 1 || len(out.Refused) != 6 {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, r := range out.Refused {
		if r.Reason == "" || r.ID != "snap-bad" {
			t.Errorf("%+v", r)
		}
	}
	names := map[kurabe.SnapshotID]string{
		"snap-mine": "nightly", "snap-a": "nightly-imported-1", "snap-b": "nightly-imported-2", "snap-c": "rds:shop-2026-11-20-05-00",
		"snap-d": long, "snap-e": long[:maxSnapshotName-len("-imported-1")] + "-imported-1",
	}
	for id, name := range names {
		s, ok := c.View.Snapshot(id)
		if !ok || s.Name() != name {
			t.Errorf("%s: %+v", id, s)
			continue
		}
		kind := kurabe.SnapshotManual
		if id == "snap-c" {
			kind = kurabe.SnapshotAutomated
		}
		if s.Spec.Kind != kind || s.Spec.Imported != (id != "snap-mine") || s.Spec.Source.Name != "shop" || id != "snap-mine" && !s.Spec.CreatedAt.Equal(taken.Facts.TakenAt) {
			t.Errorf("%s: %+v", id, s.Spec)
		}
	}
	// Repeated, nothing is new.
	again, err := c.ImportSnapshots(t.Context(), found)
	if err != nil || len(again.Imported) != 0 || len(again.Known) != 6 || len(again.Refused) != 6 {
		t.Errorf("%+v, %v", again, err)
	}
	if !slices.ContainsFunc(again.Known, func(r ImportResult) bool { return r.ID == "snap-a" && r.Name == "nightly-imported-1" }) {
		t.Errorf("%+v", again.Known)
	}
	// It can be restored once a host has found it.
	mustCommit(t, c, store.NewChange().PutSnapshotStatus(kurabe.SnapshotStatus{ID: "snap-a", State: kurabe.SnapshotAvailable, Host: "h1"}, 0))
	i, err := c.RestoreSnapshot(t.Context(), "nightly-imported-1", NewInstance{Name: "back"})
	if err != nil || i.Spec.Origin == nil || i.Spec.Origin.Snapshot != "snap-a" {
		t.Errorf("%+v, %v", i.Spec, err)
	}
}
