package blob_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
)

// childVar makes the test binary write into the repository it names until killed.
const childVar = "KURABE_TEST_BLOB_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVar); dir != "" {
		writeUntilKilled(dir, os.Args[len(os.Args)-1])
	}
	os.Exit(m.Run())
}

// writeUntilKilled says the name of each object that Put has acknowledged.
func writeUntilKilled(dir, round string) {
	f, err := blob.NewFolder(dir)
	for i := 0; err == nil; i++ {
		name := fmt.Sprintf("round-%s/%d/%d", round, i%5, i)
		if err = f.Put(context.Background(), name, bytes.NewReader(crashContent(name))); err == nil {
			fmt.Println(name)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}

func crashContent(name string) []byte {
	return append([]byte(name), bytes.Repeat([]byte(name), len(name)*997%(64<<10))...)
}

// TestFolderKilled: a writer killed at any moment leaves whole objects only, and
// all that it had been told are kept.
func TestFolderKilled(t *testing.T) {
	f := newFolder(t)
	acknowledged := map[string]bool{}
	const rounds = 12
	for round := range rounds {
		child := exec.Command(os.Args[0], fmt.Sprint(round))
		child.Env = append(os.Environ(), childVar+"="+f.String())
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		// Killed some time after its first few objects, another time each round.
		for range round%4 + 1 {
			lines.Scan()
			acknowledged[lines.Text()] = true
		}
		timer := time.AfterFunc(time.Duration(round)*700*time.Microsecond, func() { _ = child.Process.Kill() })
		for lines.Scan() {
			if strings.Count(lines.Text(), "/") == 2 { // not a torn last line
				acknowledged[lines.Text()] = true
			}
		}
		timer.Stop()
		if err := child.Wait(); err == nil || child.ProcessState.ExitCode() != -1 {
			t.Fatalf("the child ended by itself: %v", err)
		}
	}
	seen := map[string]bool{}
	for info, err := range f.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		seen[info.Name] = true
		blobtest.Want(t, f, info.Name, crashContent(info.Name))
	}
	for name := range acknowledged {
		if !seen[name] {
			t.Errorf("%s was acknowledged and is gone", name)
		}
	}
	leftovers, err := os.ReadDir(f.String() + "/.incomplete")
	if err != nil {
		t.Fatal(err)
	}
	n, err := f.Clean(t.Context(), -time.Minute)
	if err != nil || n != len(leftovers) {
		t.Errorf("cleaned %d of %d, %v", n, len(leftovers), err)
	}
	t.Logf("%d kills: %d objects, %d acknowledged, %d leftovers", rounds, len(seen), len(acknowledged), n)
}

// TestFolderFull needs root: a tiny file system runs full.
func TestFolderFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err) // nothing may be open between calls
		}
	})
	if _, err := blob.Init(t.Context(), dir, blob.Options{}); err != nil {
		t.Fatal(err)
	}
	f, err := blob.NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	blobtest.Put(t, f, "a", make([]byte, 1<<20))
	err = f.Put(t.Context(), "b", io.LimitReader(zeros{}, 8<<20))
	if !errors.Is(err, blob.ErrFull) || !blob.Retryable(err) || !strings.Contains(err.Error(), "free space") {
		t.Errorf("full: %v", err)
	}
	blobtest.WantAbsent(t, f, "b")
	blobtest.Put(t, f, "b", make([]byte, 1<<19)) // the half-written one is gone

	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	err = f.Put(t.Context(), "c", strings.NewReader("x"))
	if !errors.Is(err, blob.ErrDenied) || blob.Retryable(err) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("read-only: %v", err)
	}
	if err := f.Delete(t.Context(), "a"); !errors.Is(err, blob.ErrDenied) {
		t.Errorf("read-only: %v", err)
	}
	blobtest.Want(t, f, "b", make([]byte, 1<<19))
	if _, err := blob.Open(t.Context(), dir, blob.Options{}); err != nil {
		t.Errorf("a read-only repository can be opened to restore from it: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
