//go:build integration

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// cloneTime is how long a clone may take at cloneRate on a busy machine.
const (
	cloneTime = 2 * time.Minute
	// cloneRate, in MiB/s, makes the snapshot of an empty instance last for seconds, so
	// that a kill meets it in the making.
	cloneRate = "32"
	// cloneTries are clones that may be over before they are killed.
	cloneTries = 5
)

// temporary is the snapshot of a clone that is under way: its name and status.
func temporary(t *testing.T, s *harness.Service) (name, status string) {
	t.Helper()
	for _, line := range snapshotNames(t, s) {
		if strings.HasPrefix(line, "kurabe-clone-") {
			name, status, _ = strings.Cut(line, " ")
		}
	}
	return name, status
}

// killedClone kills the command once a condition holds, and says if it was in time.
func killedClone(t *testing.T, of *harness.Instance, to string, missing func() string) bool {
	t.Helper()
	c := clientCommand(of.Service, harness.Binary(t), "clone", of.Name, to)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	t.Cleanup(func() { c.Process.Kill() }) // if the condition never holds
	harness.Wait(t, cloneTime, "the clone gets on", missing)
	c.Process.Kill() // an error means that it is over
	return <-done != nil
}

// cloneOf is the instance that a clone made, as far as the API knows it.
func cloneOf(t *testing.T, of *harness.Instance, name string) (*harness.Instance, string) {
	t.Helper()
	i := *of
	i.Name = name
	out, err := i.Service.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(name)})
	if err != nil {
		if strings.Contains(err.Error(), "DBInstanceNotFound") {
			return &i, ""
		}
		t.Fatal(err)
	}
	i.ID = aws.ToString(out.DBInstances[0].DbiResourceId)
	return &i, aws.ToString(out.DBInstances[0].DBInstanceStatus)
}

// A clone leaves an instance and nothing else: no snapshot, over the API or on the
// disk. One that is killed leaves a snapshot at most, which the next one removes.
func TestCloneLeavesNoSnapshot(t *testing.T) {
	s := harness.Start(t, harness.Options{Args: []string{"--copy-rate", cloneRate}})
	s.EachEngine(t, func(t *testing.T, engine string) {
		of := s.MustCreate(t, harness.Request("cloned-"+engine, engine))
		fill(t, of)
		content := of.Query(t, contentSQL)
		if _, err := s.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(of.Name), DBSnapshotIdentifier: aws.String("own-" + engine)}); err != nil {
			t.Fatal(err)
		}
		waitSnapshot(t, s, "own-"+engine, "available") // a user's, which stays
		before := keptBy(t, s)

		clone := func(to string) string {
			t.Helper()
			out, err := kurabeCommand(s, harness.Binary(t), "clone", of.Name, to)
			if err != nil {
				t.Fatalf("clone: %v\n%s", err, out)
			}
			made, _ := cloneOf(t, of, to)
			wantClone(t, made, content)
			return out
		}
		clone("whole-" + engine)
		wantKept(t, s, before)

		inTheSnapshot(t, of, before)
		if out := clone("next-" + engine); !strings.Contains(out, "left by an earlier clone") {
			t.Errorf("what the killed command left is not told of:\n%s", out)
		}
		wantKept(t, s, before)

		inTheRestore(t, of, content)
		wantKept(t, s, before)
		of.Delete(t)
	})
}

// wantClone demands that it serves with the rows of its source, and has no snapshot of
// its own to wait for.
func wantClone(t *testing.T, i *harness.Instance, content string) {
	t.Helper()
	i.WaitStatus(t, "available")
	if got := i.Query(t, contentSQL); got != content {
		t.Errorf("%s has %s, its source %s", i.Name, got, content)
	}
	i.AskDelete(t)
}

// inTheSnapshot kills a clone while its snapshot is taken. The service completes it,
// nobody asks for an instance, and the snapshot stays.
func inTheSnapshot(t *testing.T, of *harness.Instance, before kept) {
	t.Helper()
	s, to := of.Service, "early-"+of.Engine
	if !killedClone(t, of, to, func() string {
		if name, status := temporary(t, s); status != "creating" {
			return fmt.Sprintf("its snapshot %q is %q", name, status)
		}
		return ""
	}) {
		t.Fatal("a clone was over while its snapshot was being taken")
	}
	name, _ := temporary(t, s)
	waitSnapshot(t, s, name, "available")
	if _, status := cloneOf(t, of, to); status != "" {
		t.Errorf("the instance of the killed clone is %s", status)
	}
	if have := keptBy(t, s); len(have.api) != len(before.api)+1 {
		t.Errorf("snapshots %q, before %q", have.api, before.api)
	}
	// It is a snapshot like any other until then: whole, and known by its tag.
	if purpose := tagOf(t, s, name, "kurabe:clone"); !strings.Contains(purpose, of.Name+" "+to) {
		t.Errorf("the snapshot %s is for %q", name, purpose)
	}
}

// inTheRestore kills a clone once the wish for the instance is stored and the snapshot
// is told to go. The service completes the instance, and nothing is left.
func inTheRestore(t *testing.T, of *harness.Instance, content string) {
	t.Helper()
	for n := range cloneTries {
		to := fmt.Sprintf("late-%d-%s", n, of.Engine)
		killed := killedClone(t, of, to, func() string {
			_, status := cloneOf(t, of, to)
			if name, left := temporary(t, of.Service); status == "" || left != "" && left != "deleting" {
				return fmt.Sprintf("the instance is %q, its snapshot %q %q", status, name, left)
			}
			return ""
		})
		made, _ := cloneOf(t, of, to)
		wantClone(t, made, content)
		if killed {
			return
		}
	}
	t.Errorf("%d clones were over before they were killed", cloneTries)
}
