//go:build integration

package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe"
	"kurabe/internal/harness"
)

// TestClusterSnapshot takes a snapshot of a cluster, where files can be cloned: it is of a reader,
// while clients read from both, and has what was acknowledged when it was asked for.
func TestClusterSnapshot(t *testing.T) {
	onceIsEnough(t)
	s, _ := poolService(t, outerDisk(t, 4*poolGiB))
	s.Start(t, "--pool", "loop")
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := newClusterBed(t, s, engine)
		writer := b.writer(t)
		b.pulse.WaitMore(t, 50)
		end := b.readOn(t)
		name := "ring-" + engine
		asked := b.snapshot(t, name)
		end()
		f := b.recorded(t, name)
		if string(f.TakenFrom) == writer.ID || string(f.TakenFrom.Owner()) != b.id || f.StandbySkipped != "" {
			t.Errorf("it is of %s, and %s writes: %s", f.TakenFrom, writer.ID, f.StandbySkipped)
		}
		b.restores(t, name, asked)
		b.pulse.WaitMore(t, 50)
		b.pulse.Stop()
		b.delete(t)
	})
}

// snapshot takes one, and says when it was asked for.
func (b *clusterBed) snapshot(t *testing.T, name string) (asked time.Time) {
	t.Helper()
	asked = time.Now()
	_, err := b.s.CreateDBClusterSnapshot(t.Context(), &rds.CreateDBClusterSnapshotInput{DBClusterIdentifier: aws.String("ring"), DBClusterSnapshotIdentifier: aws.String(name)})
	must(t, err)
	harness.Wait(t, time.Minute, "the snapshot is available", func() string {
		out, err := b.s.DescribeDBClusterSnapshots(t.Context(), &rds.DescribeDBClusterSnapshotsInput{DBClusterSnapshotIdentifier: aws.String(name)})
		must(t, err)
		if status := aws.ToString(out.DBClusterSnapshots[0].Status); status != "available" {
			return "it is " + status
		}
		return ""
	})
	return asked
}

// restores demands that an instance made of a snapshot has what was acknowledged before.
func (b *clusterBed) restores(t *testing.T, name string, asked time.Time) {
	t.Helper()
	out, err := b.s.RestoreDBInstanceFromDBSnapshot(t.Context(), &rds.RestoreDBInstanceFromDBSnapshotInput{
		DBInstanceIdentifier: aws.String("back-" + b.login.Engine), DBClusterSnapshotIdentifier: aws.String(name), DBInstanceClass: aws.String(harness.Class("micro")),
	})
	must(t, err)
	back := &harness.Instance{Service: b.s, Name: "back-" + b.login.Engine, ID: aws.ToString(out.DBInstance.DbiResourceId), Engine: b.login.Engine, User: b.login.User, Password: b.login.Password, Database: b.login.Database}
	back.WaitStatus(t, "available")
	hasBy(t, b.pulse, back, asked)
	back.Delete(t)
}

// readOn has clients read from the readers until it is ended.
func (b *clusterBed) readOn(t *testing.T) (end func()) {
	t.Helper()
	done := make(chan struct{})
	var clients sync.WaitGroup
	for range 4 {
		session, err := harness.Open(t.Context(), b.read)
		must(t, err)
		clients.Go(func() {
			defer session.Close()
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := session.Exec(t.Context(), "SELECT COUNT(*) FROM information_schema.tables"); err != nil {
					t.Errorf("a client that reads: %v", err)
					return
				}
			}
		})
	}
	return func() { close(done); clients.Wait() }
}

// recorded is what the folder of a snapshot says of it.
func (b *clusterBed) recorded(t *testing.T, name string) kurabe.SnapshotFacts {
	t.Helper()
	f, there := recordedIn(t, b.s.Data, name)
	if !there {
		t.Fatalf("there is no snapshot %s", name)
	}
	return f
}

// recordedIn is that of one host, if it has the snapshot.
func recordedIn(t *testing.T, data, name string) (f kurabe.SnapshotFacts, there bool) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(data, "snapshots", "*", "snapshot.json"))
	must(t, err)
	for _, path := range all {
		raw, err := os.ReadFile(path)
		must(t, err)
		var r struct {
			Name  string
			Facts kurabe.SnapshotFacts
		}
		must(t, json.Unmarshal(raw, &r))
		if r.Name == name {
			return r.Facts, true
		}
	}
	return f, false
}
