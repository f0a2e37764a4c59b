package series

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if IsRehearsal() {
		RehearsalMain()
	}
	os.Exit(m.Run())
}

// written copies a store that is in use, as the disk has it when its process dies.
func written(t *testing.T, d time.Duration) (dir string, now time.Time) {
	b := newBed(t, t.TempDir(), midday)
	b.run(d, second)
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(b.Dir)); err != nil {
		t.Fatal(err)
	}
	return dir, b.now
}

// rehearsed has the rehearsal of a store run by a shell, after a command of it.
func rehearsed(s *Store, command string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		c := exec.CommandContext(ctx, "sh", append([]string{"-c", command + ` exec "$0" "$@"`, os.Args[0]}, RehearsalArgs(s.Config)...)...)
		out, err := c.Output()
		return strings.Fields(string(out)), err
	}
}

// A disk that takes nothing while the log is read ends the rehearsal; this process goes on, says
// so, and opens the store when the disk is back.
func TestDiskTakesNothing(t *testing.T) {
	dir, now := written(t, 30*time.Minute)
	b := newBed(t, t.TempDir(), now)
	b.close()
	b.Dir = dir
	b.Rehearse = rehearsed(b.Store, "ulimit -f 0;")
	if b.reopen(); b.usable() == nil {
		t.Fatal("the store is open")
	}
	b.reopen()
	if told := strings.Join(b.told, "\n"); !strings.Contains(told, "ended by that") {
		t.Errorf("told %q", told)
	}
	if err := b.Append(b.now, []Sample{{cpu, 1}}); err == nil {
		t.Error("a sample was taken")
	}
	b.Rehearse = rehearsed(b.Store, "")
	b.reopen()
	b.tick()
	if got := b.buckets(minutesOf(b)); len(got) < 29 || got[3].Count != 60 {
		t.Errorf("%d minutes", len(got))
	}
}

// A disk that does not give a page of a block faults the memory that maps it: the question fails,
// the block is set aside, and the rest is there.
func TestDiskGivesNothing(t *testing.T) {
	dir := t.TempDir()
	b := newBed(t, dir, filled(t, dir).now)
	blocks, err := filepath.Glob(filepath.Join(dir, "seconds", "*", "chunks", "000001"))
	if err != nil || len(blocks) == 0 {
		t.Fatal(blocks, err)
	}
	for _, path := range blocks {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	q := Query{From: midday, To: b.now, Period: time.Second}
	if _, err := b.Query(t.Context(), []Query{q}); err == nil {
		t.Fatal("it has read what is not there")
	}
	b.survive(true)
	if told := strings.Join(b.told, "\n"); !strings.Contains(told, "gave up") {
		t.Errorf("told %q", told)
	}
}
