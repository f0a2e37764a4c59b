package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
)

// each lists everything.
func each(t *testing.T, a *Archive) ([]Archived, error) {
	t.Helper()
	var all []Archived
	err := a.Each(t.Context(), func(kurabe.SnapshotID) bool { return false }, func(f Archived) error {
		all = append(all, f)
		return nil
	})
	return all, err
}

// manyRecords is a store with so many snapshots, of which it has the records alone.
func manyRecords(t *testing.T, n int) (*blobtest.Memory, []kurabe.SnapshotID) {
	t.Helper()
	memory := blobtest.NewMemory()
	var ids []kurabe.SnapshotID
	for k := range n {
		id := kurabe.SnapshotID(fmt.Sprintf("snap-%06d", k))
		raw, err := json.Marshal(Record{Format: 1, Snapshot: id, Name: "n", Engine: kurabe.Postgres, Sealed: true, ListSum: strings.Repeat("a", 64),
			Tags: []kurabe.Tag{{Key: "k", Value: string(id)}}})
		if err == nil {
			err = memory.Put(t.Context(), objectOf(id, recordName), strings.NewReader(string(raw)))
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return memory, ids
}

// slow is a store whose answers take a while. It counts the reads, and those that are
// under way at the same time, and fails those in broken.
type slow struct {
	*blobtest.Memory
	delay  time.Duration
	broken map[string]error

	mu        sync.Mutex // guards the rest
	gets      int
	now, most int
}

func (s *slow) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	s.mu.Lock()
	s.gets++
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(s.delay) // virtual
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	if err := s.broken[name]; err != nil {
		return nil, &blob.Error{Op: "get", Name: name, Where: s.String(), Kind: blob.ErrBusy, Err: err}
	}
	return s.Memory.Get(ctx, name)
}

// Thousands of snapshots in a store that takes a tenth of a second for an answer are
// read in their order, several at a time and never more, and nobody asks again.
func TestEachOfASlowStore(t *testing.T) {
	memory, ids := manyRecords(t, 3000)
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Memory: memory, delay: 100 * time.Millisecond}
		a := NewArchive(Store{}, func() (blob.Store, error) { return s, nil })
		skipped := func(id kurabe.SnapshotID) bool { return id < ids[1000] }
		began := time.Now()
		var got []kurabe.SnapshotID
		err := a.Each(t.Context(), skipped, func(f Archived) error {
			if f.Err != nil || f.Record.Tags[0].Value != string(f.ID) {
				t.Errorf("%s: %+v", f.ID, f)
			}
			got = append(got, f.ID)
			return nil
		})
		if err != nil || !slices.Equal(got, ids[1000:]) {
			t.Fatalf("%d in order, %v", len(got), err)
		}
		if took := time.Since(began); took > 2000*s.delay/readersAtOnce*3/2 {
			t.Errorf("it took %v", took)
		}
		if s.most != readersAtOnce {
			t.Errorf("%d reads at a time, want %d", s.most, readersAtOnce)
		}
		if s.gets != 2000 {
			t.Errorf("%d reads", s.gets)
		}
		// As many units of an agent as were imported ask for them at once.
		for _, id := range ids[1000:] {
			if _, ok, err := a.Known(id); err != nil || !ok {
				t.Fatalf("%s: %v, %v", id, ok, err)
			}
		}
		if s.gets != 2000 {
			t.Errorf("%d more reads of what was just read", s.gets-2000)
		}
	})
}

// A store that breaks off ends it, and whoever listens may.
func TestEachEnds(t *testing.T) {
	memory, ids := manyRecords(t, 200)
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Memory: memory, delay: time.Second, broken: map[string]error{objectOf(ids[100], recordName): errors.New("the line was cut")}}
		a := NewArchive(Store{}, func() (blob.Store, error) { return s, nil })
		none := func(kurabe.SnapshotID) bool { return false }
		count := 0
		err := a.Each(t.Context(), none, func(Archived) error { count++; return nil })
		if err == nil || !strings.Contains(err.Error(), "the line was cut") || count != 100 {
			t.Errorf("%d, %v", count, err)
		}
		enough := errors.New("enough")
		if err := a.Each(t.Context(), none, func(Archived) error { return enough }); !errors.Is(err, enough) {
			t.Error(err)
		}
		synctest.Wait()
	})
}
