package blob_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
)

// TestFolderIsGone: an unmounted disk leaves an empty folder, or none.
func TestFolderIsGone(t *testing.T) {
	f := newFolder(t)
	blobtest.Put(t, f, "a/b", []byte("x"))
	away := f.String() + ".away"
	if err := os.Rename(f.String(), away); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"absent", "empty"} {
		if state == "empty" {
			if err := os.Mkdir(f.String(), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		_, getErr := f.Get(t.Context(), "a/b")
		_, statErr := f.Stat(t.Context(), "a/b")
		_, cleanErr := f.Clean(t.Context(), 0)
		_, openErr := blob.Open(t.Context(), f.String(), blob.Options{})
		var listErr error
		for _, err := range f.List(t.Context(), "") {
			listErr = err
		}
		for call, err := range map[string]error{"put": f.Put(t.Context(), "new", strings.NewReader("x")), "delete": f.Delete(t.Context(), "a/b"),
			"get": getErr, "stat": statErr, "clean": cleanErr, "open": openErr, "list": listErr} {
			if !errors.Is(err, blob.ErrNoRepository) || errors.Is(err, blob.ErrNotFound) || !blob.Retryable(err) || !strings.Contains(err.Error(), "mounted") {
				t.Errorf("%s: %s = %v", state, call, err)
			}
		}
	}
	if entries, err := os.ReadDir(f.String()); len(entries) != 0 || err != nil {
		t.Errorf("the empty folder holds %v, %v", entries, err)
	}
	if err := errors.Join(os.Remove(f.String()), os.Rename(away, f.String())); err != nil {
		t.Fatal(err)
	}
	blobtest.Want(t, f, "a/b", []byte("x")) // it is back without a new start
}

func TestFolderListsInBatches(t *testing.T) {
	f := newFolder(t)
	var want []string
	for i := range 300 {
		name := fmt.Sprintf("x/%03d", (i*7)%300)
		if i%3 == 0 {
			name += "/y"
		}
		want = append(want, name)
		file := filepath.Join(f.String(), name) // by hand, as 300 syncs take a while
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	defer blob.SetListBatch(7)()
	if got := blobtest.List(t, f, "x/"); !slices.Equal(got, want) {
		t.Errorf("got %d names %q", len(got), got)
	}
}

// TestFolderHoldsForeignFiles: they are neither listed nor in the way.
func TestFolderHoldsForeignFiles(t *testing.T) {
	f := newFolder(t)
	blobtest.Put(t, f, "a/b", []byte("x"))
	for _, name := range []string{".DS_Store", "a/.nfs001", "a/with space", "a/b~"} {
		if err := os.WriteFile(filepath.Join(f.String(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(f.String(), "lost+found"), 0o700), os.Symlink("/etc/passwd", filepath.Join(f.String(), "link")),
		os.Symlink("b", filepath.Join(f.String(), "a/c")), unix.Mkfifo(filepath.Join(f.String(), "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := blobtest.List(t, f, ""); !slices.Equal(got, []string{"a/b"}) {
		t.Errorf("list = %q", got)
	}
	if _, err := f.Get(t.Context(), "link"); err == nil {
		t.Error("a link led out of the folder")
	}
	if _, err := f.Get(t.Context(), "pipe"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("pipe: %v", err)
	}
}

func TestFolderNameBelowAnObject(t *testing.T) {
	f := newFolder(t)
	blobtest.Put(t, f, "a", []byte("x"))
	blobtest.Put(t, f, "b/c", []byte("x"))
	for _, name := range []string{"a/b", "b"} {
		if err := f.Put(t.Context(), name, strings.NewReader("x")); !errors.Is(err, blob.ErrName) {
			t.Errorf("put %s: %v", name, err)
		}
	}
	blobtest.WantAbsent(t, f, "a/b")
}

func TestFolderCleansLeftovers(t *testing.T) {
	f := newFolder(t)
	incomplete := filepath.Join(f.String(), ".incomplete")
	old, held, young := filepath.Join(incomplete, "OLD"), filepath.Join(incomplete, "HELD"), filepath.Join(incomplete, "YOUNG")
	for _, path := range []string{old, held, young} {
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-48 * time.Hour)
	if err := errors.Join(os.Chtimes(old, long, long), os.Chtimes(held, long, long)); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(held)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil { // as a slow Put has it
		t.Fatal(err)
	}
	if got := blobtest.List(t, f, ""); len(got) != 0 {
		t.Errorf("listed: %q", got)
	}
	if n, err := f.Clean(t.Context(), 24*time.Hour); n != 1 || err != nil {
		t.Errorf("cleaned %d, %v", n, err)
	}
	for path, stays := range map[string]bool{old: false, held: true, young: true} {
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestFolderModes(t *testing.T) {
	f := newFolder(t)
	blobtest.Put(t, f, "a/b", []byte("secret"))
	for path, want := range map[string]os.FileMode{"": 0o700, "a": 0o700, "a/b": 0o600} {
		if info, err := os.Stat(filepath.Join(f.String(), path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestInitRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "letters.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := blob.Init(t.Context(), dir, blob.Options{}); !errors.Is(err, blob.ErrOtherRepository) || !strings.Contains(err.Error(), "letters.txt") {
		t.Errorf("a folder with files: %v", err)
	}
	if _, err := blob.Init(t.Context(), filepath.Join(dir, "a/b"), blob.Options{}); !errors.Is(err, blob.ErrNoRepository) {
		t.Errorf("a folder without parent: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left: %v", entries)
	}
}

// TestFolderClone runs where TMPDIR is on XFS or btrfs; elsewhere it must say so.
func TestFolderClone(t *testing.T) {
	f := newFolder(t)
	src := filepath.Join(t.TempDir(), "src")
	data := blobtest.Bytes(1, 1<<20)
	if err := os.WriteFile(src, data, 0o600); err != nil {
		t.Fatal(err)
	}
	err := f.Clone(t.Context(), "c/1", src)
	if errors.Is(err, blob.ErrUnsupported) {
		blobtest.WantAbsent(t, f, "c/1")
		if entries, err := os.ReadDir(filepath.Join(f.String(), ".incomplete")); len(entries) != 0 || err != nil {
			t.Errorf("left: %v, %v", entries, err)
		}
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	blobtest.Want(t, f, "c/1", data)
	if err := f.Clone(t.Context(), "c/1", src); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := os.WriteFile(src, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Clone(t.Context(), "c/1", src); !errors.Is(err, blob.ErrExists) {
		t.Errorf("other content: %v", err)
	}
	blobtest.Want(t, f, "c/1", data)
	if err := f.Put(t.Context(), "c/1", bytes.NewReader(data)); err != nil {
		t.Errorf("put of what was cloned: %v", err)
	}
}

// TestFolderTellsOnce: a Put that is tried again and again fails with the same words,
// although what it writes has another name each time.
func TestFolderTellsOnce(t *testing.T) {
	f := newFolder(t)
	incomplete := filepath.Join(f.String(), ".incomplete")
	if err := errors.Join(os.RemoveAll(incomplete), os.WriteFile(incomplete, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	first := f.Put(t.Context(), "name", strings.NewReader("x"))
	again := f.Put(t.Context(), "name", strings.NewReader("x"))
	if first == nil || again == nil || first.Error() != again.Error() {
		t.Errorf("first %v, then %v", first, again)
	}
}
