//go:build integration

package mariadb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/replica"
)

// takeStandby takes a snapshot of the follower, as one that commits wait for.
func (p pair) takeStandby(t *testing.T) (kurabe.SnapshotID, kurabe.SnapshotFacts, error) {
	t.Helper()
	a := kurabe.SnapshotAssignment{
		Generation: 1, Snapshot: kurabe.NewSnapshotID(), Name: "spared", Goal: kurabe.SnapshotPresent, Of: p.writer.Want.Instance,
		Source: kurabe.SnapshotSource{Instance: p.writer.Want.Instance, Engine: p.writer.Engine, MasterUsername: p.writer.Want.MasterUsername, Password: p.writer.Want.Password},
	}
	facts, err := p.writer.Snapshots().TakeStandby(t.Context(), a, p.writer.Want, p.follower.Want, nil)
	return a.Snapshot, facts, err
}

// Snapshots of a follower in a row, under all kinds of load: each is whole, has what was
// acknowledged when it was asked for, and the log of the writer goes on from where it says.
func TestSnapshotOfAStandby(t *testing.T) {
	s := setup(t, enginetest.LoopXFS(t, enginetest.Reachable(t)))
	p := joinPair(t, pair{enginetest.NewBed(t, s), enginetest.NewBed(t, s)})
	p.waitForFollower(t)
	single := *p.writer
	single.Want.Role = nil // what is restored is no member of a group
	cloneInARow(t, &single, func(t *testing.T) (kurabe.SnapshotID, kurabe.SnapshotFacts) {
		t.Helper()
		id, facts, err := p.takeStandby(t)
		if err != nil {
			t.Fatal(err)
		}
		if facts.TakenFrom != p.follower.Want.Instance || facts.Position.Server != p.writer.Want.Instance {
			t.Errorf("%+v", facts)
		}
		entries, err := os.ReadDir(filepath.Join(p.writer.Root, "snapshots", string(id), "data"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name := e.Name(); name == replica.FollowFile || binlog.FileNumber(name) > 0 || strings.HasPrefix(name, binlog.RelayLogName) || strings.HasSuffix(name, "master.info") || name == "relay-log.info" {
				t.Errorf("%s is in the copy", name)
			}
		}
		return id, facts
	})
	p.awaitFollowing(t)
	p.checkLogs(t)
}

// A follower that does not apply is not copied: the copy would lack what was acknowledged.
func TestNoSnapshotOfAStandbyThatLacksCommits(t *testing.T) {
	enginetest.OnceIsEnough(t)
	s := setup(t, enginetest.LoopXFS(t, enginetest.Reachable(t)))
	p := joinPair(t, pair{enginetest.NewBed(t, s), enginetest.NewBed(t, s)})
	p.waitForFollower(t)
	inside(t, p.follower, "STOP SLAVE SQL_THREAD")
	p.writer.MustQuery(t, "INSERT INTO t VALUES (2, 'received, and not applied')")
	if _, _, err := p.takeStandby(t); err == nil || !strings.Contains(err.Error(), "has not applied transaction") {
		t.Errorf("%v", err)
	}
}

// Whoever clones a follower is killed while that stands still: it goes on at once, applies, and
// holds nothing.
func TestFollowersCloneIsKilled(t *testing.T) {
	s := setup(t, enginetest.LoopXFS(t, enginetest.Reachable(t)))
	p := joinPair(t, pair{enginetest.NewBed(t, s), enginetest.NewBed(t, s)})
	p.waitForFollower(t)
	pid := p.follower.Process(t).PID
	for n := range 5 {
		cmd := startCloner(t, p.follower, p.writer.Home().Dir)
		meetFrozen(t, pid)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		p.writer.MustQuery(t, fmt.Sprintf("INSERT INTO t VALUES (%d, 'after the kill')", 10+n))
		awaitRow(t, p.follower, 10+n)
		if by := tracedBy(t, pid); by != "0" {
			t.Errorf("traced by %s", by)
		}
	}
	if p.follower.Process(t).PID != pid {
		t.Error("the follower is another one")
	}
	p.awaitFollowing(t)
}
