package enginetest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
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
	random := func() time.Duration { return time.Duration(rand.Int64N(int64(1500 * time.Millisecond))) }
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
		// The server does all that backup mode would hinder.
		b.MustQuery(t, "CREATE TABLE afterwards (n integer)")
		b.MustQuery(t, "DROP TABLE afterwards")
		if err := b.Snapshots().Remove(t.Context(), a.Snapshot); err != nil {
			t.Error(err)
		}
	}
	id, _ := b.Take(t)
	if got := b.MustQuery(t, b.LeftSQL); got != "0" {
		t.Errorf("%s are left in the server", got)
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

// killTaking says whether the child was done before the kill.
func (b *Bed) killTaking(t *testing.T, a kurabe.SnapshotAssignment, line string, after time.Duration) bool {
	t.Helper()
	order, err := json.Marshal(errand{b.Root, b.Want, a})
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestTakeInChild$", "-test.v")
	child.Env = append(os.Environ(), childEnv+"="+string(order), "TMPDIR="+b.Root) // what it leaves goes with ours
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said, seen := []string{}, false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text := strings.TrimSpace(lines.Text())
		said = append(said, text)
		if text == line && !seen {
			seen = true
			time.AfterFunc(after, func() { _ = child.Process.Kill() })
		}
	}
	_ = child.Wait()
	if !seen && !strings.Contains(strings.Join(said, "\n"), "done") {
		t.Fatalf("the child never got to %q: %v", line, said)
	}
	return strings.Contains(strings.Join(said, "\n"), "done")
}
