package logstream

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"kurabe"
	"kurabe/internal/blob/blobtest"
	"kurabe/internal/volume"
)

// The names of pieces in a repository of others say how long they are, and a few KB can unpack
// to that. What would fill the disk is refused before any of it is written.
func TestAttackLongLog(t *testing.T) {
	end := kurabe.LogPosition{File: "0002"}
	part := func(ends ...int64) *plan {
		p := &plan{id: "db-1", end: end}
		at := int64(0)
		for _, to := range ends {
			p.pieces = append(p.pieces, piece{head: head{span: span{File: "0001", Start: at, End: to}}})
			at = to
		}
		return p
	}
	for name, c := range map[string]struct {
		parts []*plan
		ok    bool
	}{
		"an honest log":              {[]*plan{part(1000, 2000)}, true},
		"one piece":                  {[]*plan{part(1 << 62)}, false},
		"many pieces":                {[]*plan{part(1<<40, 1<<50, 1<<55)}, false},
		"a sum that runs over":       {[]*plan{part(1 << 62), part(1 << 62), part(1<<62, 1<<62+1000)}, false},
		"a small one and a long one": {[]*plan{part(1000), part(1 << 61)}, false},
	} {
		dir := filepath.Join(t.TempDir(), "replay")
		if err := room(c.parts, dir); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("%s: %v is there, %v", name, entries, err)
		}
	}
}

// Whoever fetches a log asks for room first.
func TestAttackLogOfAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, filepath.Join(quickDir(t), "spool"), blobtest.NewMemory())
		b.start()
		defer b.stopAll()
		snaps := b.twoRuns()
		last := snaps[len(snaps)-1]
		b.want(last.at, last.from, last.at)
		freeBytes = func(string) (int64, error) { return 100, nil }
		defer func() { freeBytes = volume.FreeBytes }()
		dir := filepath.Join(quickDir(t), "fetched")
		if _, err := b.store.Fetch(t.Context(), db, last.from, last.at, last.at, dir); err == nil {
			t.Error("a disk was filled")
		}
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("%d files were written", len(entries))
		}
	})
}
