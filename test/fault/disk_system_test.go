//go:build fault

package fault

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fileSystem mounts a file system of a kind and size of its own on a folder. It goes with the
// test.
func fileSystem(t *testing.T, dir, kind string, size int64) {
	t.Helper()
	tool, err := exec.LookPath("mkfs." + kind)
	if err != nil {
		t.Skipf("there is no mkfs.%s", kind)
	}
	// In memory: a file system in a file on a disk syncs twice for each sync.
	memory, err := os.MkdirTemp("/dev/shm", "kb-")
	if err != nil {
		t.Skipf("no place for a file system: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(memory) })
	image := filepath.Join(memory, "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, size); err != nil { // sparse: what is only taken costs no memory
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "-q", image).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", "loop,discard", image, dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount here: %s", out)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) }) // the loop device goes with it
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

// freeBytes are those that whoever is not root can still take of a file system.
func freeBytes(t *testing.T, dir string) int64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Bavail) * st.Frsize
}

// leave takes so much of a file system's free space that no more than some bytes are left, and
// returns what gives it back.
func leave(t *testing.T, dir string, bytes int64) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, freeBytes(t, dir)-bytes); err != nil {
		t.Fatal(err)
	}
	return func() { os.Remove(path) }
}

// hogEvery is how soon whatever becomes free is taken by a neighbour that wants all.
const hogEvery = 20 * time.Millisecond

// hog is a neighbour that takes all of a file system, to the last byte, again and again, until
// it gives it back.
func hog(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var work sync.WaitGroup
	size := int64(0)
	work.Go(func() {
		defer f.Close()
		tick := time.NewTicker(hogEvery)
		defer tick.Stop()
		for {
			for piece := int64(256 << 20); piece >= 4<<10; {
				if unix.Fallocate(int(f.Fd()), 0, size, piece) != nil {
					piece /= 2
				} else {
					size += piece
				}
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	})
	var once sync.Once
	free = func() {
		once.Do(func() {
			close(stop)
			work.Wait()
			os.Remove(path)
		})
	}
	t.Cleanup(free)
	return free
}
