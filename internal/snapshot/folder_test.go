package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/volume"
)

// made is a store with one complete snapshot of two files.
func made(t *testing.T) (Store, Record) {
	t.Helper()
	s, id := Store{Dir: filepath.Join(t.TempDir(), "snapshots")}, kurabe.NewSnapshotID()
	if err := s.Begin(id); err != nil {
		t.Fatal(err)
	}
	var files []volume.File
	for name, content := range map[string]string{"a": "one", "sub/b": "two"} {
		path := filepath.Join(s.Data(id), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
		files = append(files, volume.File{Path: name, Size: int64(len(content))})
	}
	if _, state, err := s.Find(id); err != nil || state != Partial {
		t.Fatalf("without a record: %s, %v", state, err)
	}
	if _, err := s.Finish(Record{Snapshot: id, Name: "n", Engine: kurabe.Postgres, Family: "postgres15"}, files); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

func TestLife(t *testing.T) {
	s, r := made(t)
	if r.Sealed || r.Files != 2 || r.Facts.SizeBytes != 6 || r.Facts.OccupiedBytes == 0 || r.Facts.Percent != 100 {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(s.Path(r.Snapshot)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its folder: %v, %v", info.Mode(), err)
	}
	if err := s.Begin(r.Snapshot); err == nil {
		t.Error("a complete snapshot was begun again")
	}
	files, err := s.Check(r)
	if err != nil {
		t.Fatal(err)
	}
	if files, err = s.Sum(context.Background(), r.Snapshot, files, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Seal(r, files); err != nil {
		t.Fatal(err)
	}
	sealed, err := s.Open(r.Snapshot)
	if err != nil || !sealed.Sealed || sealed.ListSum == r.ListSum || sealed.Facts != r.Facts {
		t.Errorf("%+v, %v", sealed, err)
	}
	if lists, _ := filepath.Glob(filepath.Join(s.Path(r.Snapshot), "files-*")); len(lists) != 1 {
		t.Errorf("lists %v", lists)
	}
	copied, _, err := s.Transfer(context.Background(), sealed, filepath.Join(t.TempDir(), "copy"), volume.TransferOptions{})
	if err != nil || len(copied) != 2 || !copied[0].Summed {
		t.Errorf("%v, %v", copied, err)
	}
	if err := s.Remove(r.Snapshot); err != nil {
		t.Fatal(err)
	}
	if _, state, err := s.Find(r.Snapshot); err != nil || state != Absent {
		t.Errorf("%s, %v", state, err)
	}
	if err := s.Remove(r.Snapshot); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestDamage(t *testing.T) {
	for _, c := range []struct {
		name, says string
		seal       bool
		do         func(s Store, r Record) error
	}{
		{"a file is missing", "missing", false, func(s Store, r Record) error { return os.Remove(filepath.Join(s.Data(r.Snapshot), "a")) }},
		{"a file is shorter", "has 2 bytes", false, func(s Store, r Record) error { return os.Truncate(filepath.Join(s.Data(r.Snapshot), "a"), 2) }},
		{"a file is a link", "damaged", false, func(s Store, r Record) error {
			path := filepath.Join(s.Data(r.Snapshot), "a")
			return errors.Join(os.Remove(path), os.Symlink("sub/b", path))
		}},
		{"the list is another", "differs from the one", false, func(s Store, r Record) error {
			return os.WriteFile(filepath.Join(s.Path(r.Snapshot), listName(r.ListSum)), []byte("[]"), 0o600)
		}},
		{"the content is another", "content of file a", true, func(s Store, r Record) error {
			return os.WriteFile(filepath.Join(s.Data(r.Snapshot), "a"), []byte("ine"), 0o600)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, r := made(t)
			if c.seal {
				files, err := s.List(r)
				if err == nil {
					files, err = s.Sum(t.Context(), r.Snapshot, files, 0)
				}
				if err = errors.Join(err, s.Seal(r, files)); err != nil {
					t.Fatal(err)
				}
				if r, err = s.Open(r.Snapshot); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.do(s, r); err != nil {
				t.Fatal(err)
			}
			_, cloned, err := s.Transfer(t.Context(), r, filepath.Join(t.TempDir(), "copy"), volume.TransferOptions{})
			if cloned && c.seal {
				t.Skip("a clone is not read")
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func TestFindRefuses(t *testing.T) {
	s, r := made(t)
	for _, id := range []kurabe.SnapshotID{"", "..", "snap-../x", "snap-a/b", "other"} {
		if _, _, err := s.Find(id); err == nil {
			t.Errorf("%q is taken for an id", id)
		}
		if err := s.Remove(id); err == nil {
			t.Errorf("%q would be removed", id)
		}
	}
	path := filepath.Join(s.Path(r.Snapshot), recordName)
	for name, text := range map[string]string{"torn": `{"format":1,`, "later": `{"format":2}`, "another's": `{"format":1,"snapshot":"snap-b"}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, state, err := s.Find(r.Snapshot); err == nil || state == Complete {
			t.Errorf("%s: %s, %v", name, state, err)
		}
	}
	// A record that cannot be read does not keep the space for ever.
	if err := s.Remove(r.Snapshot); err != nil {
		t.Error(err)
	}
}
