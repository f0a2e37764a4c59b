//go:build integration

package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
)

// commitsOn writes numbers into the ledger of the writer until it is stopped, and returns the
// newest one that was acknowledged.
func (g *group) commitsOn(t *testing.T) (acknowledged *atomic.Int64, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	acknowledged = &atomic.Int64{}
	done.Go(func() {
		for n := int64(1); ctx.Err() == nil; n++ {
			if _, err := g.client(ctx, 0, fmt.Sprintf("INSERT INTO ledger VALUES (%d, repeat('x', 500))", n)); err != nil {
				if ctx.Err() == nil {
					t.Errorf("commit %d: %v", n, err)
				}
				return
			}
			acknowledged.Store(n)
		}
	})
	return acknowledged, func() { cancel(); done.Wait() }
}

// takeStandby takes a snapshot of the second member, as one that commits wait for.
func (g *group) takeStandby(t *testing.T, all *engine.Snapshots, progress func(int64, int64)) (kurabe.SnapshotID, kurabe.SnapshotFacts, error) {
	t.Helper()
	a := kurabe.SnapshotAssignment{
		Generation: 1, Snapshot: kurabe.NewSnapshotID(), Name: "spared", Goal: kurabe.SnapshotPresent, Of: g.bed.Want.Instance,
		Source: kurabe.SnapshotSource{Instance: g.bed.Want.Instance, Engine: g.bed.Engine, MasterUsername: g.bed.Want.MasterUsername, Password: g.bed.Want.Password},
	}
	facts, err := all.TakeStandby(t.Context(), a, g.m[0].Assignment, g.m[1].Assignment, progress)
	return a.Snapshot, facts, err
}

func (g *group) waitsForSecond(t *testing.T) {
	t.Helper()
	g.write(t, 0, g.m[1].Instance)
	if err := g.d.Waits(t.Context(), g.m[0]); err != nil {
		t.Fatal(err)
	}
}

// A snapshot of a standby has all that was acknowledged when it was asked for, and the writer
// makes no checkpoint for it, begins no segment, and is not in backup mode.
func TestSnapshotOfAStandby(t *testing.T) {
	for _, c := range []struct {
		name   string
		root   func(*testing.T) string
		rate   int64
		method kurabe.SnapshotMethod
	}{
		{"cloned", func(t *testing.T) string { return enginetest.LoopXFS(t, enginetest.Reachable(t)) }, 0, kurabe.SnapshotCloned},
		{"copied", enginetest.Reachable, 24 << 20, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := groupOf(t, enginetest.Serving(t, setup(t, c.root(t))))
			g.waitsForSecond(t)
			acknowledged, stop := g.commitsOn(t)
			defer stop()
			until(t, "commits", func() bool { return acknowledged.Load() > 20 })
			const state = "SELECT checkpoint_lsn::text || ' ' || (SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE 'kurabe_backup%') FROM pg_control_checkpoint()"
			before := g.asked(t, 0, state)
			all := g.bed.Snapshots()
			all.BytesPerSecondMax = c.rate
			least := acknowledged.Load()
			var during atomic.Value
			var once sync.Once
			var much sync.WaitGroup
			id, facts, err := g.takeStandby(t, all, func(int64, int64) {
				during.CompareAndSwap(nil, g.asked(t, 0, state))
				once.Do(func() { // more log than one segment has, while the files are copied
					much.Go(func() {
						g.bed.MustQuery(t, "CREATE TABLE much AS SELECT repeat('y', 900) AS y FROM generate_series(1, 60000)")
					})
				})
			})
			much.Wait()
			if err != nil {
				t.Fatal(err)
			}
			if after := g.asked(t, 0, state); after != before || during.Load() != before {
				t.Errorf("the writer had %s before, %s meanwhile, %s afterwards", before, during.Load(), after)
			}
			if c.method != "" && facts.Method != c.method || facts.TakenFrom != g.m[1].Instance || facts.Position.Server != "" && facts.Position.Server != g.m[0].Instance {
				t.Errorf("%+v", facts)
			}
			g.follows(t, 1)
			if left := g.asked(t, 1, "SELECT count(*)::text FROM pg_replication_slots WHERE slot_name LIKE 'kurabe_backup%'"); left != "0" {
				t.Errorf("%s slots are left in the standby", left)
			}
			stop()
			if said, ok := verify(t, g.bed, id); !ok {
				t.Error(said)
			}
			for _, name := range []string{"standby.signal", "recovery.signal", "postmaster.pid"} {
				if _, err := os.Lstat(filepath.Join(g.bed.Root, "snapshots", string(id), "data", name)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is in it: %v", name, err)
				}
			}
			if err := g.bed.Snapshots().Seal(t.Context(), id); err != nil {
				t.Error(err)
			}
			g.restoredHas(t, g.bed.Restore(t, id), least)
		})
	}
}

// asked is one word of a member, also of one that lets no client in.
func (g *group) asked(t *testing.T, n int, question string) (word string) {
	t.Helper()
	conn, err := g.d.adminConn(t.Context(), g.m[n])
	if err != nil {
		t.Error(err)
		return ""
	}
	defer closeConn(t.Context(), conn)
	if err := conn.QueryRow(t.Context(), question).Scan(&word); err != nil {
		t.Error(err)
	}
	return word
}

// restoredHas: it is a server of its own, with the first numbers up to some that is not below.
func (g *group) restoredHas(t *testing.T, n *enginetest.Bed, least int64) {
	t.Helper()
	words := strings.Fields(n.MustQuery(t, "SELECT count(*) || ' ' || max(n) || ' ' || pg_is_in_recovery() FROM ledger"))
	count, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil || words[0] != words[1] || count < least || words[2] != "false" {
		t.Errorf("count, highest and recovery are %v, want %d and more, %v", words, least, err)
	}
	n.MustQuery(t, "INSERT INTO ledger VALUES (-1)")
	t.Logf("%d acknowledged when it was asked for, %d there", least, count)
}

// A server on such a copy that dies in its first recovery begins it again.
func TestDeathInTheFirstRecoveryOfAStandbys(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	g.waitsForSecond(t)
	g.bed.MustQuery(t, // More than the shared buffers, so that pages are written whose log recovery must not fall short of.
		"INSERT INTO ledger SELECT n, repeat('x', 300) FROM generate_series(1, 400000) AS n")
	id, _, err := g.takeStandby(t, g.bed.Snapshots(), nil)
	if err != nil {
		t.Fatal(err)
	}
	n := g.bed.From(t, id)
	diesInItsFirstRecovery(t, n)
	c, err := ownControl(t.Context(), instanceOf(n))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("it died %s, the end of the copy is wanted: %v", c.state, c.unended)
	n.Satisfy(t)
	if got := n.MustQuery(t, "SELECT count(*) FROM ledger"); got != "400000" {
		t.Errorf("%s rows", got)
	}
}

// What is no standby that has every commit is not copied: a snapshot that is taken anew of
// another server is right, one that lacks a commit is not.
func TestNoSnapshotOfAStandbyThatIsNone(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	if _, _, err := g.takeStandby(t, g.bed.Snapshots(), nil); err == nil || !strings.Contains(err.Error(), "no standby that has every commit") {
		t.Errorf("commits do not wait for it: %v", err)
	}
	g.waitsForSecond(t)
	begun := make(chan struct{})
	var once sync.Once
	all := g.bed.Snapshots()
	all.BytesPerSecondMax = 24 << 20
	failed := make(chan error, 1)
	go func() {
		_, _, err := g.takeStandby(t, all, func(int64, int64) { once.Do(func() { close(begun) }) })
		failed <- err
	}()
	<-begun
	g.end(t, 0, 9)
	if err := g.d.Promote(t.Context(), g.m[1]); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("a snapshot of a server that was made the writer meanwhile")
	}
}
