package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
	"kurabe/internal/volume"
)

// Room for a backup is found by what its record says, and its packs of a few KB can unpack to any
// length: a repository of others would fill the disk.
func TestAttackRecordThatLies(t *testing.T) {
	local, r := sealedSnapshot(t)
	for name, lie := range map[string]func(*Record){
		"it says less": func(r *Record) { r.Facts.SizeBytes-- },
		"it says zero": func(r *Record) { r.Facts.SizeBytes = 0 },
		"it says more": func(r *Record) { r.Facts.SizeBytes = 1 << 62 },
	} {
		memory := blobtest.NewMemory()
		a := NewArchive(local, func() (blob.Store, error) { return memory, nil })
		if err := a.Push(t.Context(), r.Snapshot, nil); err != nil {
			t.Fatal(err)
		}
		lied := r
		lie(&lied)
		raw, err := json.Marshal(lied)
		if err != nil {
			t.Fatal(err)
		}
		object := objectOf(r.Snapshot, recordName)
		if err := errors.Join(memory.Delete(t.Context(), object), memory.Put(t.Context(), object, bytes.NewReader(raw))); err != nil {
			t.Fatal(err)
		}
		dst, err := fetch(t, a, r.Snapshot, volume.TransferOptions{})
		if !isDamage(err) {
			t.Errorf("%s: %v", name, err)
		}
		if entries, _ := os.ReadDir(dst); len(entries) > 0 {
			t.Errorf("%s: %d files were written", name, len(entries))
		}
	}
	// A sum of lengths that runs over is not what it seems.
	if err := checkSize([]volume.File{{Size: 1 << 62}, {Size: 1 << 62}, {Size: 1 << 62}, {Size: 1 << 62}, {Size: 5}}, 5); err == nil {
		t.Error("lengths that run over are believed")
	}
}
