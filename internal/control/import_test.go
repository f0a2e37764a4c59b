package control

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// foundSnapshot is one as a repository holds it.
func foundSnapshot(id, name string) ImportedSnapshot {
	spec := scopetest.Spec("shop")
	return ImportedSnapshot{
		ID: kurabe.SnapshotID(id), Name: name, Facts: kurabe.SnapshotFacts{TakenAt: scopetest.Now.Add(-100 * 24 * 60 * 60 * 1e9)},
		Source: kurabe.SnapshotSource{
			Instance: "db-LOST", Name: "shop", Engine: kurabe.Postgres, MasterUsername: "master", Password: kurabe.Password{},
			OptionGroup: spec.OptionGroup, Settings: spec.Now, Locale: "C",
		},
	}
}

func TestImportSnapshots(t *testing.T) {
	c := newTestWorld(t)
	taken := foundSnapshot("snap-mine", "nightly")
	scopetest.Commit(t, c.Scope, store.NewChange().CreateSnapshot(kurabe.SnapshotSpec{ID: "snap-mine", Name: "nightly", Kind: kurabe.SnapshotManual, Source: taken.Source}))
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
		broken(func(f *ImportedSnapshot) { f.Kind = kurabe.SnapshotAutomated }),
		broken(func(f *ImportedSnapshot) { f.Name, f.Kind = "rds:shop-1", kurabe.SnapshotManual }),
	}
	wantImported(t, c, found, map[ImportOutcome]int{ImportDone: 5, ImportKnown: 1, ImportRefused: 8})
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
	wantImported(t, c, found, map[ImportOutcome]int{ImportKnown: 6, ImportRefused: 8})
	if r, ok := c.KnownSnapshot("snap-a"); !ok || r.Name != "nightly-imported-1" || r.Instance != "shop" {
		t.Errorf("%+v", r)
	}
	// It can be restored once a host has found it.
	scopetest.Commit(t, c.Scope, store.NewChange().PutSnapshotStatus(kurabe.SnapshotStatus{ID: "snap-a", State: kurabe.SnapshotAvailable, Host: "h1"}, 0))
	i, err := c.RestoreSnapshot(t.Context(), "nightly-imported-1", NewInstance{Name: "back"})
	if err != nil || i.Spec.Origin == nil || i.Spec.Origin.Snapshot != "snap-a" {
		t.Errorf("%+v, %v", i.Spec, err)
	}
}

// wantImported imports snapshots and counts what became of them.
func wantImported(t *testing.T, c *Control, found []ImportedSnapshot, want map[ImportOutcome]int) {
	t.Helper()
	got := map[ImportOutcome]int{}
	for _, f := range found {
		r, err := c.ImportSnapshot(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		got[r.Outcome]++
		if refused := r.Outcome == ImportRefused; refused != (r.Reason != "") || refused != (r.ID == "snap-bad") {
			t.Errorf("%+v", r)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A snapshot comes back as what it was.
func TestImportKeepsKindAndTags(t *testing.T) {
	c := newTestWorld(t)
	tags := []kurabe.Tag{{Key: "team", Value: "billing"}}
	nightly := foundSnapshot("snap-auto", "rds:shop-2026-11-20-05-00")
	nightly.Kind, nightly.Tags = kurabe.SnapshotAutomated, tags
	manual := foundSnapshot("snap-manual", "before-release")
	manual.Kind, manual.Tags = kurabe.SnapshotManual, tags
	older := foundSnapshot("snap-older", "rds:shop-2026-11-19-05-00") // its record says nothing of them
	forged := foundSnapshot("snap-forged", "forged")
	forged.Tags = []kurabe.Tag{{Key: "", Value: "x"}}
	wantImported(t, c, []ImportedSnapshot{nightly, manual, older, forged}, map[ImportOutcome]int{ImportDone: 4})
	for id, want := range map[kurabe.SnapshotID]struct {
		kind kurabe.SnapshotKind
		tags []kurabe.Tag
	}{
		"snap-auto": {kurabe.SnapshotAutomated, tags}, "snap-manual": {kurabe.SnapshotManual, tags},
		"snap-older": {kurabe.SnapshotAutomated, nil}, "snap-forged": {kurabe.SnapshotManual, nil},
	} {
		s, ok := c.View.Snapshot(id)
		if !ok || s.Spec.Kind != want.kind || !slices.Equal(s.Spec.Tags, want.tags) {
			t.Errorf("%s: %+v", id, s)
		}
	}
}
