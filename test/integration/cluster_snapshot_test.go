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
		asked := time.Now()
		_, err := s.CreateDBClusterSnapshot(t.Context(), &rds.CreateDBClusterSnapshotInput{DBClusterIdentifier: aws.String("ring"), DBClusterSnapshotIdentifier: aws.String(name)})
		must(t, err)
		harness.Wait(t, time.Minute, "the snapshot is available", func() string {
			out, err := s.DescribeDBClusterSnapshots(t.Context(), &rds.DescribeDBClusterSnapshotsInput{DBClusterSnapshotIdentifier: aws.String(name)})
			must(t, err)
			if status := aws.ToString(out.DBClusterSnapshots[0].Status); status != "available" {
				return "it is " + status
			}
			return ""
		})
		end()
		f := b.recorded(t, name)
		if string(f.TakenFrom) == writer.ID || string(f.TakenFrom.Owner()) != b.id || f.Instead != "" {
			t.Errorf("it is of %s, and %s writes: %s", f.TakenFrom, writer.ID, f.Instead)
		}
		out, err := s.RestoreDBInstanceFromDBSnapshot(t.Context(), &rds.RestoreDBInstanceFromDBSnapshotInput{
			DBInstanceIdentifier: aws.String("back-" + engine), DBClusterSnapshotIdentifier: aws.String(name), DBInstanceClass: aws.String(harness.Class("micro")),
		})
		must(t, err)
		back := &harness.Instance{Service: s, Name: "back-" + engine, ID: aws.ToString(out.DBInstance.DbiResourceId), Engine: engine, User: b.login.User, Password: b.login.Password, Database: b.login.Database}
		back.WaitStatus(t, "available")
		hasBy(t, b.pulse, back, asked)
		back.Delete(t)
		b.pulse.WaitMore(t, 50)
		b.pulse.Stop()
		b.delete(t)
	})
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
	all, err := filepath.Glob(filepath.Join(b.s.Data, "snapshots", "*", "snapshot.json"))
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
			return r.Facts
		}
	}
	t.Fatalf("no snapshot %s in %v", name, all)
	return kurabe.SnapshotFacts{}
}
