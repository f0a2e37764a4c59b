//go:build integration

package mariadb

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
)

// TestSnapshotsInstant is all of the suite where running servers are cloned.
func TestSnapshotsInstant(t *testing.T) {
	enginetest.RunSnapshots(t, setup(t, enginetest.LoopXFS(t, enginetest.Reachable(t))))
}

// clonerEnv tells a test binary to clone an instance again and again: its home, the folder for
// clones and, of a follower, its writer's home.
const clonerEnv = "KURABE_TEST_CLONER"

// TestCloneInChild is what the child does until it is killed.
func TestCloneInChild(t *testing.T) {
	words := strings.Split(os.Getenv(clonerEnv), "\n")
	if len(words) < 2 {
		t.Skip("only as a child of TestCloneIsKilled")
	}
	at := func(home string) engine.Instance {
		return engine.Instance{
			Assignment: kurabe.Assignment{Goal: kurabe.GoalRunning}, Home: engine.Home{Dir: home}, SeenDir: home,
			Version: kurabe.EngineVersion{Version: "10.11.19"}, User: enginetest.Account(t, "mysql"),
		}
	}
	i, dir := at(words[0]), words[1]
	for n := 0; ; n++ {
		c := &cloning{i: i}
		if len(words) > 2 {
			writer := at(words[2])
			c.writer = &followed{here: &writer}
		}
		_, _, err := c.of(t.Context(), engine.CopyRequest{Dir: filepath.Join(dir, fmt.Sprint(n))})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("cloned")
	}
}

// tracedBy is who traces the server, "0" for nobody.
func tracedBy(t *testing.T, pid int) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "\nTracerPid:\t")
	by, _, _ := strings.Cut(after, "\n")
	return by
}

// meetFrozen waits for an instant in which the server stands still.
func meetFrozen(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); tracedBy(t, pid) == "0"; {
		if time.Now().After(deadline) {
			t.Fatal("it was never frozen")
		}
	}
}

// startCloner starts a child that clones the instance until it is killed.
func startCloner(t *testing.T, b *enginetest.Bed, writer ...string) *exec.Cmd {
	t.Helper()
	dir, err := os.MkdirTemp(b.Root, "clones-")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestCloneInChild$", "-test.v")
	cmd.Env = append(os.Environ(), clonerEnv+"="+strings.Join(append([]string{b.Home().Dir, dir}, writer...), "\n"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// Whoever takes the clone is killed while the server stands still: it goes on at once,
// in no backup stage, and loses no session.
func TestCloneIsKilled(t *testing.T) {
	b := cloneBed(t, nil)
	c := gather(t, b)
	pid := b.Process(t).PID
	for range 10 {
		cmd := startCloner(t, b)
		meetFrozen(t, pid)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		_ = cmd.Wait()
		c.goesOn(t, killed)
		if by := tracedBy(t, pid); by != "0" {
			t.Errorf("traced by %s", by)
		}
	}
	c.stop()
	if b.Process(t).PID != pid {
		t.Error("the server is another one")
	}
	id, facts := b.Take(t)
	if facts.Method != kurabe.SnapshotCloned {
		t.Errorf("%+v", facts)
	}
	n := b.Restore(t, id)
	c.holds(t, n, facts.TakenAt, time.Now())
	n.Discard(t)
}

// goesOn waits until every client has written and was answered after a moment.
func (c *crowd) goesOn(t *testing.T, after time.Time) {
	t.Helper()
	defined := c.ddl.Load()
	for deadline := after.Add(10 * time.Second); ; {
		on := c.ddl.Load() > defined
		for _, k := range c.counts {
			k.mu.Lock()
			on = on && len(k.acks) > 0 && k.acks[len(k.acks)-1].begun.After(after)
			k.mu.Unlock()
		}
		if on {
			t.Logf("all clients go on after %v", time.Since(after).Round(time.Millisecond))
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the clients do not go on")
		}
		time.Sleep(time.Millisecond)
	}
}

// The server is killed while it stands still: there is no snapshot, nothing of one, and
// what was acknowledged is in the server that comes back.
func TestServerIsKilledWhileCloned(t *testing.T) {
	b := cloneBed(t, nil)
	b.MustQuery(t, "CREATE TABLE ledger (n INT, half INT, r DOUBLE, KEY (n)) ENGINE=InnoDB")
	var books []*book
	for n := range 5 {
		k := keepBook(t, b, 1+n*1_000_000)
		k.until(t, 20, time.Time{})
		p := b.Process(t)
		dir := filepath.Join(b.Root, fmt.Sprint("killed-", n))
		done := make(chan error, 1)
		go func() {
			for {
				_, _, err := cloneRunning(context.Background(), b.Instance(), engine.CopyRequest{Dir: dir})
				if err != nil {
					done <- err
					return
				}
				if err := os.RemoveAll(dir); err != nil {
					done <- err
					return
				}
			}
		}()
		meetFrozen(t, p.PID)
		b.Crash(t)
		t.Logf("in its words: %v", <-done)
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("something is left: %v", err)
		}
		k.stop()
		b.Satisfy(t)
		books = append(books, k)
	}
	verify(t, b, time.Now(), time.Now(), books...)
}
