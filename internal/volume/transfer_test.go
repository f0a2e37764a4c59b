package volume

import (
	"context"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestTransfer(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	big := strings.Repeat("0123456789abcdef", 3*transferBytes/16+5)
	for name, content := range map[string]string{"a": "one", "empty": "", "sub/big": big, "sub/skipped": "x", "gone/in": "y", "closed/f": "z"} {
		write(t, filepath.Join(src, name), content, 0o640)
	}
	if err := os.Chmod(filepath.Join(src, "closed"), 0o500); err != nil {
		t.Fatal(err)
	}
	var last atomic.Int64
	files, cloned, err := Transfer(context.Background(), src, dst, TransferOptions{
		Skip:     func(rel string) bool { return rel == "gone" || rel == "sub/skipped" },
		Progress: func(done, total int64) { last.Store(max(last.Load(), done*1000/total)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "closed/f", "empty", "sub/big"}; len(files) != len(want) {
		t.Fatalf("%v, want %v", files, want)
	}
	for _, f := range files {
		got := read(t, filepath.Join(dst, f.Path))
		sum, size, err := SumFile(context.Background(), filepath.Join(dst, f.Path), NewPace(0))
		want := crc32.Checksum([]byte(got), castagnoli)
		if err != nil || sum != want || size != f.Size || f.Size != int64(len(got)) || f.Summed && f.Sum != want {
			t.Errorf("%+v: %d bytes, sum %x, %v", f, size, sum, err)
		}
		if f.Summed == (cloned && f.Size > 0) {
			t.Errorf("%+v of a transfer that cloned: %v", f, cloned)
		}
	}
	if read(t, filepath.Join(dst, "sub/big")) != big {
		t.Error("the content is another one")
	}
	if info, err := os.Stat(filepath.Join(dst, "closed")); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("mode of a folder: %v, %v", info, err)
	}
	if last.Load() != 1000 {
		t.Errorf("progress ended at %d of 1000", last.Load())
	}
	if _, _, err := Transfer(context.Background(), src, dst, TransferOptions{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over something else: %v", err)
	}
}

func TestTransferRefusesLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "src/a"), "one", 0o600)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "src/b")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Transfer(context.Background(), filepath.Join(dir, "src"), filepath.Join(dir, "dst"), TransferOptions{}); err == nil {
		t.Error("a link was copied")
	}
}

func TestTransferKeepsHoles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "src/f")
	write(t, path, "begin", 0o600)
	const size = 64 << 20
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	files, _, err := Transfer(context.Background(), filepath.Join(dir, "src"), filepath.Join(dir, "dst"), TransferOptions{})
	if err != nil || files[0].Size != size {
		t.Fatalf("%v, %v", files, err)
	}
	if used, err := UsedBytes(filepath.Join(dir, "dst/f")); err != nil || used > size/4 {
		t.Errorf("it occupies %d bytes, %v", used, err)
	}
	if got := read(t, filepath.Join(dir, "dst/f")); len(got) != size || !strings.HasPrefix(got, "begin\x00") {
		t.Errorf("%d bytes", len(got))
	}
}

func TestPace(t *testing.T) {
	p := NewPace(1 << 20)
	begin := time.Now()
	for range 4 {
		if err := p.Wait(t.Context(), 64<<10); err != nil {
			t.Fatal(err)
		}
	}
	// The first part goes at once; three more take a sixteenth of a second each.
	if took := time.Since(begin); took < 3*time.Second/16 {
		t.Errorf("256 KiB at 1 MiB/s in %v", took)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Wait(ended, 1<<40); !errors.Is(err, context.Canceled) {
		t.Errorf("a cut-off wait: %v", err)
	}
}

// Where blocks can be shared OwnBytes tells which are; elsewhere it is what is
// allocated.
func TestOwnBytes(t *testing.T) {
	dir := t.TempDir()
	const size = 8 << 20
	write(t, filepath.Join(dir, "src/f"), strings.Repeat("x", size), 0o600)
	if err := SyncFS(dir); err != nil {
		t.Fatal(err)
	}
	_, cloned, err := Transfer(context.Background(), filepath.Join(dir, "src"), filepath.Join(dir, "dst"), TransferOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own, err := OwnBytes(filepath.Join(dir, "dst"))
	if err != nil || cloned != (own < size) {
		t.Errorf("cloned %v, %d bytes of its own, %v", cloned, own, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "src")); err != nil {
		t.Fatal(err)
	}
	if err := SyncFS(dir); err != nil {
		t.Fatal(err)
	}
	// XFS frees what was removed in the background.
	for deadline := time.Now().Add(10 * time.Second); ; {
		if own, err = OwnBytes(filepath.Join(dir, "dst")); err != nil {
			t.Fatal(err)
		}
		if own >= size {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("alone it has %d bytes of its own", own)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestClaimRefusesLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "one", 0o600)
	if files, err := Claim(dir); err != nil || len(files) != 1 || files[0] != (File{Path: "a", Size: 3}) {
		t.Errorf("%v, %v", files, err)
	}
	if err := os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(dir); err == nil {
		t.Error("a file with a second name was claimed")
	}
}
