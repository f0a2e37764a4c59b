//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// TestStateIsRestored goes back to the records of before: an agent that has seen later
// orders obeys the restored ones, and clients see nothing.
func TestStateIsRestored(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	i := s.MustCreate(t, harness.Request("kept", "postgres"))
	pulse := i.Pulse(t)
	pulse.WaitMore(t, beatsBefore)
	from := time.Now()
	backup := filepath.Join(harness.Folder(t, false), "state.db")
	command := func(says string, args ...string) {
		t.Helper()
		args = append([]string{"state"}, args...)
		if args[1] == "backup" {
			args = append(args, "--endpoint", s.URL())
		}
		c := clientCommand(s, harness.Binary(t))
		c.Args = append(append(c.Args[:1], args...), "--data", s.Data)
		out, _ := c.CombinedOutput()
		if !strings.Contains(string(out), says) {
			t.Errorf("kurabe %v: it wants %q:\n%s", args, says, out)
		}
	}
	command("", "backup", backup)
	if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	command("already exists", "backup", backup)
	command("uses this data folder", "restore", backup, "--yes")
	// Later orders, and records that the backup does not have.
	i.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.AllocatedStorage = aws.Int32(25) })
	i.WaitStatus(t, "available")
	tags := []types.Tag{{Key: aws.String("later"), Value: aws.String("yes")}}
	if _, err := s.AddTagsToResource(t.Context(), &rds.AddTagsToResourceInput{ResourceName: i.Describe(t).DBInstanceArn, Tags: tags}); err != nil {
		t.Fatal(err)
	}
	s.Terminate(t)
	command("nothing was changed", "restore", backup)
	command("no whole backup", "restore", filepath.Join(s.Data, "host.json"), "--yes")
	command("records are restored", "restore", backup, "--yes")
	s.Start(t)
	i.WaitStatus(t, "available")
	if d := i.Describe(t); aws.ToInt32(d.AllocatedStorage) != 20 || len(d.TagList) != 0 {
		t.Errorf("%d GiB, tags %v", aws.ToInt32(d.AllocatedStorage), d.TagList)
	}
	pulse.WaitMore(t, beatsAfter)
	if n, err := pulse.Errors(from); n > 0 {
		t.Errorf("the client has met %d errors, the last was %v", n, err)
	}
	// What is ordered from here on is obeyed.
	i.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.AllocatedStorage = aws.Int32(30) })
	harness.Wait(t, hostTime, "the order is obeyed", func() string {
		if d := i.Describe(t); aws.ToInt32(d.AllocatedStorage) != 30 || aws.ToString(d.DBInstanceStatus) != "available" {
			return aws.ToString(d.DBInstanceStatus)
		}
		return ""
	})
	pulse.Verify(t)
	if kept, err := filepath.Glob(filepath.Join(s.Data, "etcd.before-*")); err != nil || len(kept) != 1 {
		t.Errorf("what was there is in %v (%v)", kept, err)
	}
}

// TestServersComeBackToARestoredState: of two servers one is lost, which is a majority. The
// other one goes back to a backup, alone; the first comes back to that, with its databases.
func TestServersComeBackToARestoredState(t *testing.T) {
	needRoot(t)
	b := newServersBed(t, 2)
	first, second := b.servers[0], b.servers[1]
	i := b.create(t, "kept", 0, 1)
	pulse := i.Pulse(t)
	pulse.WaitMore(t, beatsBefore)
	from := time.Now()
	run := func(s *harness.Service, args ...string) {
		t.Helper()
		if out, err := kurabeCommand(s, harness.Binary(t), args...); err != nil {
			t.Fatalf("kurabe %v: %v: %s", args, err, out)
		}
	}
	backup := filepath.Join(harness.Folder(t, false), "state.db")
	run(second, "state", "backup", backup)
	first.Kill(t)
	second.Kill(t)
	restore := clientCommand(second, harness.Binary(t))
	restore.Args = append(restore.Args[:1], "state", "restore", backup, "--data", second.Data, "--yes")
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	second.Start(t)
	b.waitServer(t, 0, 1, "lost")
	if err := os.Rename(filepath.Join(first.Data, "etcd"), filepath.Join(first.Data, "etcd.old")); err != nil {
		t.Fatal(err)
	}
	first.Start(t)
	b.waitServer(t, 0, 1, "ready")
	b.waitServer(t, 1, 0, "ready")
	i.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.AllocatedStorage = aws.Int32(30) })
	harness.Wait(t, hostTime, "an order is obeyed", func() string {
		if d := i.Describe(t); aws.ToInt32(d.AllocatedStorage) != 30 || aws.ToString(d.DBInstanceStatus) != "available" {
			return aws.ToString(d.DBInstanceStatus)
		}
		return ""
	})
	pulse.WaitMore(t, beatsAfter)
	if n, err := pulse.Errors(from); n > 0 {
		t.Errorf("the client has met %d errors, the last was %v", n, err)
	}
	pulse.Verify(t)
}
