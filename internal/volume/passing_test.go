package volume

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pagesCached counts the pages of a file that are in the page cache.
func pagesCached(t *testing.T, f *os.File) (cached int) {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mapped) }()
	state := make([]byte, (len(mapped)+os.Getpagesize()-1)/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(len(mapped)), uintptr(unsafe.Pointer(&state[0])))
	if errno != 0 {
		t.Fatal(errno)
	}
	for _, s := range state {
		cached += int(s & 1)
	}
	return cached
}

func pattern(n int) []byte { return bytes.Repeat([]byte("0123456789abcde\n"), n/16+1)[:n] }

func TestPassingReadsAndWritesAsUsual(t *testing.T) {
	for _, refused := range []bool{false, true} {
		var p passing
		p.refused.Store(refused)
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		want := pattern(3<<20 + 17)
		for at := 0; at < len(want); at += transferBytes {
			part := want[at:min(at+transferBytes, len(want))]
			if n, err := p.WriteAt(f, part, int64(at)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		got := make([]byte, len(want)+5)
		n, err := p.ReadAt(f, got, 0)
		if n != len(want) || !errors.Is(err, io.EOF) || !bytes.Equal(got[:n], want) {
			t.Errorf("refused %v: %d bytes of %d, %v", refused, n, len(want), err)
		}
		if n, err := p.ReadAt(f, got[:10], 100); n != 10 || err != nil || !bytes.Equal(got[:10], want[100:110]) {
			t.Errorf("refused %v: in the middle: %d, %v", refused, n, err)
		}
	}
}

// A pipe has no place to read at, which no way of reading changes.
func TestPassingTellsErrors(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var p passing
	if _, err := p.ReadAt(r, make([]byte, 1), 0); err == nil {
		t.Error("a pipe was read at a place")
	}
	if _, err := p.WriteAt(w, make([]byte, 1), 0); err == nil {
		t.Error("a pipe was written at a place")
	}
}

// What a read brings in leaves again, and what was there before stays.
func TestPassingLeavesTheCacheAsItIs(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 8 << 20
	if _, err := f.Write(pattern(size)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	// The first half goes, the second stays.
	if err := unix.Fadvise(int(f.Fd()), 0, size/2, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	before := pagesCached(t, f)
	var p passing
	buf := make([]byte, size)
	if _, err := p.ReadAt(f, buf, 0); err != nil {
		t.Fatal(err)
	}
	if p.refused.Load() {
		t.Skip("the kernel or the file system does not know RWF_DONTCACHE")
	}
	after := pagesCached(t, f)
	// Read-ahead may leave a little at the edge.
	const edge = 64
	if after > before+edge || after < before/2 {
		t.Errorf("%d pages were in the cache before, %d are after", before, after)
	}
	if !bytes.Equal(buf, pattern(size)) {
		t.Error("what was read is not what was written")
	}
}
