package enginetest

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/proc"
	"kurabe/internal/snapshot"
)

// childEnv tells a test binary to take one snapshot and nothing else.
const childEnv = "KURABE_TEST_TAKE"

// errand is what a child is to do.
type errand struct {
	Root     string
	Of       kurabe.Assignment
	Snapshot kurabe.SnapshotAssignment
}

// TakeInChild is what a test named TestTakeInChild does: as a child, the errand; as itself,
// nothing.
func TakeInChild(t *testing.T, make func(root string) Setup) {
	order := os.Getenv(childEnv)
	if order == "" {
		t.Skip("only as a child of TestSnapshots")
	}
	var e errand
	if err := json.Unmarshal([]byte(order), &e); err != nil {
		t.Fatal(err)
	}
	s := make(e.Root)
	versions, err := s.Driver.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := engine.NewSnapshots(filepath.Join(e.Root, "snapshots"), lifecycle(t, s, versions))
	all.BytesPerSecondMax = 64 << 20 // slow enough to be met in the middle
	fmt.Println("begun")
	_, err = all.Take(t.Context(), e.Snapshot, e.Of, func(int64, int64) { fmt.Println("going on") })
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("done")
}

// survivesKill kills the process that takes a snapshot at the first sign of each
// phase, then at random moments.
func survivesKill(t *testing.T, b *Bed) {
	random := func() time.Duration {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(1500*time.Millisecond)))
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(n.Int64())
	}
	for _, c := range []struct {
		line  string
		after time.Duration
	}{{"begun", 0}, {"going on", 0}, {"begun", random()}, {"begun", random()}, {"begun", random()}} {
		a := b.assignment()
		done := b.killTaking(t, a, c.line, c.after)
		_, state, err := b.Snapshots().Find(a.Snapshot)
		if err == nil && state == snapshot.Complete {
			err = b.Snapshots().Seal(t.Context(), a.Snapshot)
		}
		if err != nil || done && state != snapshot.Complete {
			t.Errorf("killed %v after %q: %s, %v", c.after, c.line, state, err)
		}
		t.Logf("killed %v after %q: %s", c.after.Round(time.Millisecond), c.line, state)
		b.swept(t)
		// The server does all that backup mode would hinder.
		b.MustQuery(t, "CREATE TABLE afterwards (n integer)")
		b.MustQuery(t, "DROP TABLE afterwards")
		if err := b.Snapshots().Remove(t.Context(), a.Snapshot); err != nil {
			t.Error(err)
		}
	}
	id, _ := b.Take(t)
	// A session whose client was killed ends when the server has noticed.
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		got := b.MustQuery(t, b.LeftSQL)
		if got == "0" {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%s are left in the server", got)
			break
		}
	}
	if _, err := os.Stat(b.Home().CopyDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder is left: %v", err)
	}
	n := b.Restore(t, id)
	if got := n.MustQuery(t, "SELECT n FROM ledger"); got != "9" {
		t.Errorf("it has %s", got)
	}
	n.Discard(t)
}

// swept waits until nothing of a snapshot is left in the server: what is tied to a
// session goes when the server has noticed, the rest with the next look.
func (b *Bed) swept(t *testing.T) {
	t.Helper()
	if err := b.Driver.SweepCopy(t.Context(), b.Instance()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(passTime); b.MustQuery(t, b.LeftSQL) != "0"; {
		if time.Now().After(deadline) {
			t.Fatal("the server is still in the middle of a snapshot")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// killTaking says whether the child was done before the kill.
func (b *Bed) killTaking(t *testing.T, a kurabe.SnapshotAssignment, line string, after time.Duration) bool {
	t.Helper()
	order, err := json.Marshal(errand{b.Root, b.Want, a})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(b.Root, string(a.Snapshot)+".log")
	child, err := proc.Start(t.Context(), proc.Spec{
		Name: "take a snapshot", Argv: []string{self, "-test.run=^TestTakeInChild$", "-test.v"}, Dir: here,
		Env:          append(os.Environ(), childEnv+"="+string(order), "TMPDIR="+b.Root), // what it leaves goes with ours
		StdoutStderr: log, LockFile: log + ".lock", RecordFile: log + ".json",
	})
	if err != nil {
		t.Fatal(err)
	}
	said := func(what string) bool {
		text, err := os.ReadFile(log)
		return err == nil && strings.Contains("\n"+string(text), "\n"+what+"\n")
	}
	for deadline := time.Now().Add(passTime); !said(line) && child.Alive(); {
		if time.Now().After(deadline) {
			t.Fatalf("the child never got to %q", line)
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(after)
	if err := child.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	if err := child.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !said("begun") {
		text, _ := os.ReadFile(log)
		t.Fatalf("the child did nothing: %s", text)
	}
	return said("done")
}
