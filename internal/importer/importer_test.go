package importer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/snapshot"
)

// shelf is a repository of records, each of which takes its time. It breaks off
// before those in breaks, once each.
type shelf struct {
	ids    []kurabe.SnapshotID
	delay  time.Duration
	breaks map[kurabe.SnapshotID]error
	read   []kurabe.SnapshotID
}

func (s *shelf) Each(ctx context.Context, skip func(kurabe.SnapshotID) bool, found func(snapshot.Archived) error) error {
	for _, id := range s.ids {
		if skip(id) {
			continue
		}
		if err := s.breaks[id]; err != nil {
			delete(s.breaks, id)
			return err
		}
		select {
		case <-time.After(s.delay):
		case <-ctx.Done():
			return ctx.Err()
		}
		s.read = append(s.read, id)
		if err := found(snapshot.Archived{ID: id, Record: testRecord(id)}); err != nil {
			return err
		}
	}
	return nil
}

func testRecord(id kurabe.SnapshotID) snapshot.Record {
	return snapshot.Record{Format: 1, Snapshot: id, Name: "of-" + string(id), Engine: kurabe.Postgres, Source: kurabe.SnapshotSource{Name: "shop", Engine: kurabe.Postgres}}
}

// book is what is on record.
type book struct {
	mu  sync.Mutex // guards the rest
	ids map[kurabe.SnapshotID]bool
}

func (b *book) KnownSnapshot(id kurabe.SnapshotID) (control.ImportResult, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return control.ImportResult{Outcome: control.ImportKnown, ID: id}, b.ids[id]
}

func (b *book) ImportSnapshot(_ context.Context, f control.ImportedSnapshot) (control.ImportResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := control.ImportResult{Outcome: control.ImportDone, ID: f.ID, Name: f.Name, Instance: f.Source.Name}
	if f.Err != nil {
		r.Outcome, r.Reason = control.ImportRefused, f.Err.Error()
		return r, nil
	}
	b.ids[f.ID] = true
	return r, nil
}

func ids(n int) []kurabe.SnapshotID {
	var list []kurabe.SnapshotID
	for k := range n {
		list = append(list, kurabe.SnapshotID(fmt.Sprintf("snap-%05d", k)))
	}
	return list
}

// inImport runs a test with an importer whose time is virtual.
func inImport(t *testing.T, s *shelf, test func(t *testing.T, i *Importer, b *book)) {
	t.Helper()
	local := snapshot.Store{Dir: filepath.Join(t.TempDir(), "snapshots")}
	synctest.Test(t, func(t *testing.T) {
		b := &book{ids: map[kurabe.SnapshotID]bool{}}
		i := &Importer{archive: s, local: local, records: b, log: slog.New(slog.DiscardHandler), wake: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		test(t, i, b)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (i *Importer) view(from int) Progress {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.viewLocked(from)
}

// An import that takes hours goes on without anybody who waits for it, once at a
// time, and tells how far it is.
func TestImportGoesOnInTheService(t *testing.T) {
	all := ids(2500)
	s := &shelf{ids: all, delay: 4 * time.Second}
	inImport(t, s, func(t *testing.T, i *Importer, b *book) {
		b.ids[all[0]] = true
		first := i.Begin()
		time.Sleep(time.Hour) // virtual
		v := i.Begin()        // joins
		if v.Job != first.Job || !v.Running || v.Imported < 890 || v.Imported > 910 || v.Known != 1 {
			t.Errorf("after an hour: %+v", v)
		}
		time.Sleep(2 * time.Hour)
		v = i.view(0)
		if v.Running || v.Failed != "" || v.Imported != 2499 || v.Told != 2499 || len(v.Results) != resultsAtOnce {
			t.Errorf("at the end: %d results, %+v", len(v.Results), v.Imported)
		}
		if rest := i.view(2000).Results; len(rest) != 499 || rest[498].ID != all[2499] {
			t.Errorf("%d results from 2000 on", len(rest))
		}
		if slices.Contains(s.read, all[0]) {
			t.Error("what is on record was read")
		}
		s.read = nil
		again := i.Begin()
		time.Sleep(time.Second)
		if v := i.view(0); v.Job != again.Job || again.Job == first.Job || v.Running || v.Known != 2500 || v.Imported != 0 || len(s.read) > 0 {
			t.Errorf("repeated: %+v, read %d", v, len(s.read))
		}
	})
}

// One that was cut off with its service goes on where it was.
func TestImportIsTakenUp(t *testing.T) {
	s := &shelf{ids: ids(100), delay: time.Second}
	var had map[kurabe.SnapshotID]bool
	inImport(t, s, func(t *testing.T, i *Importer, b *book) {
		i.Begin()
		time.Sleep(50*time.Second + time.Second/2)
		had = b.ids
	})
	s.read = nil
	inImport(t, s, func(t *testing.T, i *Importer, b *book) {
		b.ids = had
		i.Begin()
		time.Sleep(time.Minute)
		if v := i.view(0); v.Running || v.Known != 50 || v.Imported != 50 || len(s.read) != 50 {
			t.Errorf("%+v, read %d", v, len(s.read))
		}
	})
}

// A store that breaks off now and then is asked again; one that stays away ends it.
func TestImportOfAStoreThatBreaks(t *testing.T) {
	all := ids(40)
	s := &shelf{ids: all, breaks: map[kurabe.SnapshotID]error{}}
	for n := 0; n < 40; n += 4 {
		s.breaks[all[n]] = errors.New("the line was cut")
	}
	inImport(t, s, func(t *testing.T, i *Importer, _ *book) {
		i.Begin()
		synctest.Wait()
		if v := i.view(0); !v.Running || v.Waiting != "the line was cut" {
			t.Errorf("%+v", v)
		}
		time.Sleep(time.Minute)
		if v := i.view(0); v.Running || v.Failed != "" || v.Waiting != "" || v.Imported != 40 || v.Known != 0 {
			t.Errorf("%+v", v)
		}
	})
	gone := &goneShelf{}
	inImport(t, &shelf{}, func(t *testing.T, i *Importer, _ *book) {
		i.archive = gone
		i.Begin()
		time.Sleep(time.Hour)
		if v := i.view(0); v.Running || v.Failed != "nobody answers" || gone.asked != importTries {
			t.Errorf("%+v, asked %d times", v, gone.asked)
		}
	})
}

type goneShelf struct{ asked int }

func (g *goneShelf) Each(context.Context, func(kurabe.SnapshotID) bool, func(snapshot.Archived) error) error {
	g.asked++
	return errors.New("nobody answers")
}

// Where one of two records cannot be read, the other counts.
func TestImportFromFolderAndRepository(t *testing.T) {
	s := &shelf{ids: []kurabe.SnapshotID{"snap-both", "snap-torn"}}
	inImport(t, s, func(t *testing.T, i *Importer, _ *book) {
		for _, id := range []kurabe.SnapshotID{"snap-torn", "snap-tornonly"} {
			dir := filepath.Join(i.local.Dir, string(id))
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "snapshot.json"), []byte("{"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		i.Begin()
		time.Sleep(time.Second)
		v := i.view(0)
		if v.Running || v.Imported != 2 || v.Refused != 1 || v.Results[2].ID != "snap-tornonly" || v.Results[2].Reason == "" {
			t.Errorf("%+v", v)
		}
	})
}

func TestImportable(t *testing.T) {
	r := testRecord("snap-a")
	r.Kind, r.Tags = kurabe.SnapshotManual, []kurabe.Tag{{Key: "a", Value: "b"}}
	if f := importable(snapshot.Archived{ID: "snap-a", Record: r}); f.Err != nil || f.Kind != r.Kind || !slices.Equal(f.Tags, r.Tags) || f.Name != r.Name {
		t.Errorf("%+v", f)
	}
	r.Engine = kurabe.MariaDB
	if f := importable(snapshot.Archived{ID: "snap-a", Record: r}); f.Err == nil {
		t.Error("files of another engine")
	}
}
