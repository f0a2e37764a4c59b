package volume

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What is changed below a folder is written out long before the kernel would do so by itself,
// which is after half a minute.
func TestWriteBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pg_wal", "000000010000000000000001")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() { WriteBehind(ctx, dir) })
	defer writing.Wait()
	defer stop()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const size = 8 << 20
	for begun := time.Now(); ; time.Sleep(behindEvery) {
		if _, err := file.WriteAt(bytes.Repeat([]byte{byte(time.Now().UnixNano())}, size), 0); err != nil {
			t.Fatal(err)
		}
		if clean(t, file, size, 2*time.Second) {
			return
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatal("what was changed is not written out")
		}
	}
}

// clean says whether nothing of a file is left to write within a time.
func clean(t *testing.T, file *os.File, size uint64, within time.Duration) bool {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < within; time.Sleep(10 * time.Millisecond) {
		var s unix.Cachestat_t
		err := unix.Cachestat(uint(file.Fd()), &unix.CachestatRange{Len: size}, &s, 0)
		switch {
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
			t.Skipf("the kernel does not tell what is left to write: %v", err)
		case err != nil:
			t.Fatal(err)
		case s.Dirty+s.Writeback == 0:
			return true
		}
	}
	return false
}

// A folder that is not there, or goes meanwhile, is of no consequence.
func TestWriteBehindOfNothing(t *testing.T) {
	WriteBehind(t.Context(), filepath.Join(t.TempDir(), "none"))
	dir := t.TempDir()
	ctx, stop := context.WithTimeout(t.Context(), 3*behindEvery)
	defer stop()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	WriteBehind(ctx, dir)
}
