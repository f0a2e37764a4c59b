//go:build fault

package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe"
	"kurabe/internal/harness"
)

func dead(t *testing.T, h *apartHost, point string) {
	t.Helper()
	harness.Wait(t, holdTime, "the agent dies "+point, func() string {
		if h.Running() {
			return "it does not"
		}
		return ""
	})
}

func (p *farSnapshots) ask(t *testing.T, name string) {
	t.Helper()
	p.pulse.WaitMore(t, pairBeats)
	p.asked[name] = time.Now()
	_, err := p.bed.service.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(p.Name), DBSnapshotIdentifier: aws.String(name)})
	if err != nil {
		t.Fatal(err)
	}
}

// state is a snapshot's status, or why there is none.
func (p *farSnapshots) state(t *testing.T, name string) string {
	out, err := p.bed.service.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{DBSnapshotIdentifier: aws.String(name)})
	if err != nil {
		return err.Error()
	}
	return aws.ToString(out.DBSnapshots[0].Status)
}

func (p *farSnapshots) available(t *testing.T, name string) {
	t.Helper()
	harness.Wait(t, farSnapshotTime, name+" is available", func() string {
		if state := p.state(t, name); state != "available" {
			return "it is " + state
		}
		return ""
	})
}

// settled waits until nothing is left of what was called off, and one host has the snapshot: one
// that comes back has its own until it is told.
func (p *farSnapshots) settled(t *testing.T, name string) (holder *apartHost, f kurabe.SnapshotFacts) {
	t.Helper()
	harness.Wait(t, farSnapshotTime, "one host has "+name, func() string {
		have := p.holders(t, name)
		if len(have) == 1 {
			holder = have[0]
			return ""
		}
		return fmt.Sprintf("%d have it", len(have))
	})
	p.noParts(t)
	return holder, p.facts(t, name)
}

// holders are the hosts that have a snapshot.
func (p *farSnapshots) holders(t *testing.T, name string) (list []*apartHost) {
	t.Helper()
	for _, h := range p.bed.hosts {
		for _, path := range parts(t, h, "snapshots", "*", "snapshot.json") {
			var r struct{ Name string }
			raw, err := os.ReadFile(path)
			if errors.Is(err, os.ErrNotExist) { // it was removed since
				continue
			}
			if err == nil {
				err = json.Unmarshal(raw, &r)
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.Name == name {
				list = append(list, h)
			}
		}
	}
	return list
}

// facts are what the service says of a snapshot.
func (p *farSnapshots) facts(t *testing.T, name string) kurabe.SnapshotFacts {
	t.Helper()
	var e struct {
		Snapshots []struct {
			Name  string
			Facts kurabe.SnapshotFacts
		}
	}
	out, err := p.bed.command(t, "explain", p.Name, "--json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &e)
	}
	for _, s := range e.Snapshots {
		if s.Name == name {
			return s.Facts
		}
	}
	t.Fatalf("nothing is told of %s: %v", name, err)
	return kurabe.SnapshotFacts{}
}

// noParts waits until each folder on a host is of a snapshot that it is to have.
func (p *farSnapshots) noParts(t *testing.T) {
	t.Helper()
	for _, h := range p.bed.hosts {
		harness.Wait(t, farSnapshotTime, "nothing is left of what was called off in zone "+h.zone, func() string {
			orders, folders := parts(t, h, "snapshot-assignments", "*.json"), parts(t, h, "snapshots", "snap-*")
			if len(orders) != len(folders) {
				return fmt.Sprint(orders, folders)
			}
			return ""
		})
	}
}

// parts are the files of a host that match.
func parts(t *testing.T, h *apartHost, pattern ...string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(append([]string{h.Data}, pattern...)...))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// restores demands that what is made of a snapshot has every row that was acknowledged before.
func (p *farSnapshots) restores(t *testing.T, name string) {
	t.Helper()
	p.bed.waitUsed(t)
	out, err := p.bed.service.RestoreDBInstanceFromDBSnapshot(t.Context(), &rds.RestoreDBInstanceFromDBSnapshotInput{
		DBInstanceIdentifier: aws.String("of-" + name), DBSnapshotIdentifier: aws.String(name), BackupRetentionPeriod: aws.Int32(0), MultiAZ: aws.Bool(false),
	})
	if err != nil {
		t.Fatal(err)
	}
	back := *p.Instance
	back.Name, back.ID = "of-"+name, aws.ToString(out.DBInstance.DbiResourceId)
	back.WaitStatus(t, "available")
	rows, err := p.pulse.RowsAt(t.Context(), back.Login(t))
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, r := range rows {
		have[r] = true
	}
	least := 0
	for _, beat := range p.pulse.Beats() {
		if beat.Acked.IsZero() || beat.Acked.After(p.asked[name]) {
			continue
		}
		if least++; !have[fmt.Sprint(beat.N)] {
			t.Errorf("%s lacks row %d, which was acknowledged before", name, beat.N)
		}
	}
	if least == 0 {
		t.Error("nothing was acknowledged before it")
	}
	back.Delete(t)
}
