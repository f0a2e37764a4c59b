package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
	"kurabe/internal/volume"
)

// What was lost is told from what is only out of reach: the one ends a restore, the
// other is tried again.
func TestDamageIsToldFromHindrance(t *testing.T) {
	s, r := sealedSnapshot(t)
	key, other := blobtest.Key(t), blobtest.Key(t)
	pack := objectOf(r.Snapshot, packName(1))
	flip := func(object string) func(op, name string) blobtest.Fault {
		return func(op, name string) blobtest.Fault {
			if op == "get" && name == object {
				return blobtest.Fault{Flip: 300}
			}
			return blobtest.Fault{}
		}
	}
	for _, c := range []struct {
		name    string
		damaged bool
		remove  string
		faults  func(op, name string) blobtest.Fault
		key     *blob.Key
		away    error
		words   string
	}{
		{name: "a flipped bit of a pack", damaged: true, faults: flip(pack), words: "pack-00002.tar"},
		{name: "a flipped bit of the record", damaged: true, faults: flip(objectOf(r.Snapshot, recordName)), words: "record"},
		{name: "a missing pack", damaged: true, remove: pack, words: "no such object"},
		{name: "a missing list", damaged: true, remove: objectOf(r.Snapshot, listName(r.ListSum)), words: "no such object"},
		{name: "a missing layout", damaged: true, remove: objectOf(r.Snapshot, layoutName), words: "no such object"},
		{name: "a line that breaks", faults: func(op, name string) blobtest.Fault {
			if op == "get" && name == pack {
				return blobtest.Fault{Truncate: 1000}
			}
			return blobtest.Fault{}
		}},
		{name: "a store that does not answer", faults: func(op, _ string) blobtest.Fault { return blobtest.Fault{Err: errors.New("busy")} }},
		{name: "another key", key: other, words: "key"},
		{name: "a repository that is not mounted", away: errors.New("is its disk mounted?"), words: "mounted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			memory := blobtest.NewMemory()
			if err := archiveIn(s, blob.NewSealed(memory, key)).Push(t.Context(), r.Snapshot, nil); err != nil {
				t.Fatal(err)
			}
			if c.remove != "" {
				if err := memory.Delete(t.Context(), c.remove); err != nil {
					t.Fatal(err)
				}
			}
			memory.Faults = c.faults
			with := key
			if c.key != nil {
				with = c.key
			}
			a := NewArchive(Store{Dir: t.TempDir()}, func() (blob.Store, error) { return blob.NewSealed(memory, with), c.away })
			_, err := fetch(t, a, r.Snapshot, volume.TransferOptions{})
			if err == nil || isDamage(err) != c.damaged || !strings.Contains(err.Error(), c.words) {
				t.Errorf("damaged %v: %v", isDamage(err), err)
			}
		})
	}
}

func TestEndedContextIsNoDamage(t *testing.T) {
	s, r := sealedSnapshot(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := archiveIn(s, blobtest.NewMemory())
	if err := a.Push(t.Context(), r.Snapshot, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Fetch(ctx, r.Snapshot, filepath.Join(t.TempDir(), "dst"), volume.TransferOptions{}); err == nil || isDamage(err) {
		t.Error(err)
	}
}

// A record that cannot be read says nothing of the repository: the others are still
// known at once.
func TestDamagedRecordIsNoFailureOfTheRepository(t *testing.T) {
	s, r := sealedSnapshot(t)
	memory := blobtest.NewMemory()
	sealed := blob.NewSealed(memory, nil)
	if err := archiveIn(s, sealed).Push(t.Context(), r.Snapshot, nil); err != nil {
		t.Fatal(err)
	}
	memory.Faults = func(op, name string) blobtest.Fault {
		if op == "get" && name == objectOf("snap-torn", recordName) {
			return blobtest.Fault{Flip: 10}
		}
		return blobtest.Fault{}
	}
	if err := sealed.Put(t.Context(), objectOf("snap-torn", recordName), strings.NewReader("{}")); err != nil {
		t.Fatal(err)
	}
	a := archiveIn(s, sealed)
	if _, ok, err := a.Known("snap-torn"); ok || !isDamage(err) {
		t.Errorf("%v, %v", ok, err)
	}
	if _, ok, err := a.Known(r.Snapshot); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

// In the folder of this host too.
func TestLocalDamage(t *testing.T) {
	s, r := sealedSnapshot(t)
	for name, spoil := range map[string]func() error{
		"a missing file": func() error { return os.Remove(filepath.Join(s.Data(r.Snapshot), "PG_VERSION")) },
		"a missing list": func() error { return os.Remove(filepath.Join(s.Path(r.Snapshot), listName(r.ListSum))) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Transfer(t.Context(), r, filepath.Join(t.TempDir(), "dst"), volume.TransferOptions{}); !isDamage(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
