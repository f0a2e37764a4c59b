//go:build integration

package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/proc"
)

// verify asks PostgreSQL's own tool, which also reads the log that the copy needs.
func verify(t *testing.T, b *enginetest.Bed, id kurabe.SnapshotID) (string, bool) {
	t.Helper()
	tool := filepath.Join("/usr/lib/postgresql", b.Version.Major(), "bin", "pg_verifybackup")
	if _, err := os.Stat(tool); err != nil {
		t.Skip(err)
	}
	out, err := exec.Command(tool, "--exit-on-error", filepath.Join(b.Root, "snapshots", string(id), "data")).CombinedOutput()
	return string(out), err == nil
}

// A snapshot is a base backup as PostgreSQL means it: sealed or not, of a running
// server or a stopped one, and when it was cloned.
func TestSnapshotIsABaseBackup(t *testing.T) {
	for _, c := range []struct {
		name   string
		root   func(*testing.T) string
		method kurabe.SnapshotMethod
	}{
		{"as the disk of the tests has it", enginetest.Reachable, ""},
		{"cloned", func(t *testing.T) string { return enginetest.LoopXFS(t, enginetest.Reachable(t)) }, kurabe.SnapshotCloned},
	} {
		t.Run(c.name, func(t *testing.T) { isABaseBackup(t, enginetest.Serving(t, setup(t, c.root(t))), c.method) })
	}
}

func isABaseBackup(t *testing.T, b *enginetest.Bed, method kurabe.SnapshotMethod) {
	t.Helper()
	b.MustQuery(t, "CREATE TABLE kept AS SELECT generate_series(1, 100000) AS n")
	live, facts := b.Take(t)
	b.Want.Goal = kurabe.GoalStopped
	b.Satisfy(t)
	stopped, stoppedFacts := b.Take(t)
	if method != "" && (facts.Method != method || stoppedFacts.Method != method) {
		t.Fatalf("taken by %s and %s, want %s", facts.Method, stoppedFacts.Method, method)
	}
	for what, id := range map[string]kurabe.SnapshotID{"of the running server": live, "of the stopped server": stopped} {
		if said, ok := verify(t, b, id); !ok {
			t.Errorf("%s: %s", what, said)
		}
		if err := b.Snapshots().Seal(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if said, ok := verify(t, b, id); !ok {
			t.Errorf("%s, sealed: %s", what, said)
		}
		path := filepath.Join(b.Root, "snapshots", string(id), "data", "global", "pg_control")
		control, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		control[len(control)-1] ^= 1
		if err := os.WriteFile(path, control, 0o600); err != nil {
			t.Fatal(err)
		}
		if said, ok := verify(t, b, id); ok || !strings.Contains(said, "checksum mismatch") {
			t.Errorf("%s, with a bit turned: %v %s", what, ok, said)
		}
	}
}

// Checkpoints while the files are copied move the server's own start of recovery past
// what the first files hold. Only the label of the backup leads back.
func TestCheckpointsDuringTheCopy(t *testing.T) {
	enginetest.OnceIsEnough(t)
	b := running(t)
	b.MustQuery(t, "CREATE TABLE pairs AS SELECT n, 0 AS a FROM generate_series(1, 20000) AS n")
	b.MustQuery(t, "CREATE INDEX ON pairs (n)")
	b.MustQuery(t, "CHECKPOINT")
	ctx, stop := context.WithCancel(t.Context())
	var rounds atomic.Int64
	var failed error
	var writer sync.WaitGroup
	begun := make(chan struct{})
	writer.Go(func() {
		<-begun
		for n := 1; ctx.Err() == nil && failed == nil; n++ {
			if _, failed = b.Query(ctx, b.Login(), fmt.Sprintf("UPDATE pairs SET a = %d", n)); failed == nil {
				rounds.Store(int64(n))
				_, failed = b.Query(ctx, b.Login(), "CHECKPOINT")
			}
		}
	})
	all := b.Snapshots()
	all.BytesPerSecondMax = 8 << 20
	var once sync.Once
	a := kurabe.SnapshotAssignment{Snapshot: kurabe.NewSnapshotID(), Name: "paced", Of: b.Want.Instance}
	_, err := all.Take(ctx, a, b.Want, func(int64, int64) { once.Do(func() { close(begun) }) })
	least := rounds.Load()
	stop()
	writer.Wait()
	if err != nil || failed != nil && ctx.Err() == nil {
		t.Fatal(err, failed)
	}
	if least < 2 {
		t.Fatalf("only %d rounds during the copy", least)
	}
	n := b.Restore(t, a.Snapshot)
	// A sequential scan and the index agree, on one round that is not too old.
	got := n.MustQuery(t, "SELECT min(a) || ' ' || max(a) || ' ' || count(*) FROM pairs")
	var low, high, rows int64
	if _, err := fmt.Sscan(got, &low, &high, &rows); err != nil || low != high || rows != 20000 || low+1 < least {
		t.Errorf("min, max and rows are %s after %d rounds, %v", got, least, err)
	}
	n.MustQuery(t, "CREATE EXTENSION amcheck")
	n.MustQuery(t, "SELECT bt_index_check('pairs_n_idx', true)")
	t.Logf("%d rounds, restored %s", least, got)
}

// What ALTER SYSTEM and hand-made files said in the source ends with it.
func TestRestoredObeysItsOwnSettings(t *testing.T) {
	b := running(t)
	path := filepath.Join(b.Home().DataDir(), "postgresql.auto.conf")
	if err := os.WriteFile(path, []byte("work_mem = '77MB'\nport = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id, _ := b.Take(t)
	n := b.Restore(t, id)
	if got := n.MustQuery(t, "SHOW work_mem"); got == "77MB" {
		t.Error("a setting of the source rules the restored instance")
	}
	if got := n.MustQuery(t, "SELECT pg_is_in_recovery()"); got != "false" {
		t.Errorf("in recovery: %s", got)
	}
	if _, err := os.Stat(filepath.Join(n.Home().DataDir(), "backup_label")); err == nil {
		t.Error("the server has not recovered from its label")
	}
}

// A server that dies in its first recovery, before it has come to where the copy ended,
// leaves a state that PostgreSQL alone gives up for ever.
func TestDeathInTheFirstRecovery(t *testing.T) {
	b := running(t)
	b.MustQuery(t, "CREATE TABLE kept AS SELECT 1 AS n")
	all := b.Snapshots()
	all.BytesPerSecondMax = 64 << 20 // so that it tells of its progress
	var once sync.Once
	a := kurabe.SnapshotAssignment{Snapshot: kurabe.NewSnapshotID(), Name: "copy", Of: b.Want.Instance}
	_, err := all.Take(t.Context(), a, b.Want, func(int64, int64) {
		// Log of a second or so, between the beginning of the copy and its end.
		once.Do(func() { b.MustQuery(t, "INSERT INTO kept SELECT generate_series(2, 400000)") })
	})
	if err != nil {
		t.Fatal(err)
	}
	n := b.From(t, a.Snapshot)
	diesInItsFirstRecovery(t, n)
	c, err := ownControl(t.Context(), instanceOf(n))
	if err != nil || !c.unended {
		t.Fatalf("the recovery was over before the server died: %+v, %v", c, err)
	}
	n.Satisfy(t)
	if got := n.MustQuery(t, "SELECT count(*) FROM kept"); got != "400000" {
		t.Errorf("%s rows", got)
	}
	before := n.Process(t)
	n.Want.Boot++
	n.Satisfy(t)
	if after := n.Process(t); after.PID == before.PID || n.MustQuery(t, "SELECT count(*) FROM kept") != "400000" {
		t.Error("another start changes what is there")
	}
}

// diesInItsFirstRecovery has a restored server die when its recovery has begun and the label of
// its copy is done with.
func diesInItsFirstRecovery(t *testing.T, n *enginetest.Bed) {
	t.Helper()
	n.SatisfyUntil(t, string(engine.StepStart))
	done := filepath.Join(n.Home().DataDir(), labelDoneFile)
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err := os.Stat(done); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the label is never done with")
		}
		time.Sleep(100 * time.Microsecond)
	}
	n.Crash(t)
	// Its children die of it, or are killed before the next start, as here.
	if err := proc.KillSurvivors(t.Context(), n.Home().DataDir()); err != nil {
		t.Fatal(err)
	}
	// It has failed to start, whoever ended it; an agent tries again.
	var failed *engine.StartError
	if err := n.TrySatisfy(t.Context()); !errors.As(err, &failed) {
		t.Fatalf("what becomes of it: %v", err)
	}
}
