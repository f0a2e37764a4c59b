//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/blob/blobtest"
	"kurabe/internal/harness"
)

// waitSnapshot waits until the API says so of a snapshot.
func waitSnapshot(t *testing.T, s *harness.Service, name, status string) types.DBSnapshot {
	t.Helper()
	var have types.DBSnapshot
	harness.Wait(t, time.Minute, "snapshot "+name+" is "+status, func() string {
		out, err := s.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{DBSnapshotIdentifier: aws.String(name)})
		if err != nil {
			return err.Error()
		}
		have = out.DBSnapshots[0]
		if got := aws.ToString(have.Status); got != status {
			return "it is " + got
		}
		return ""
	})
	return have
}

// archived lists the snapshots that are complete in a repository that is a folder.
func archived(repository string) []string {
	found, _ := filepath.Glob(filepath.Join(repository, "snapshots", "*", "snapshot.json"))
	return found
}

// kurabeImport runs the command against a service.
func kurabeImport(s *harness.Service, binary string, args ...string) (string, error) {
	return kurabeCommand(s, binary, append([]string{"import"}, args...)...)
}

// kurabeCommand runs a command of the client, which finds its credentials in the
// service's folder.
func kurabeCommand(s *harness.Service, binary string, args ...string) (string, error) {
	out, err := clientCommand(s, binary, args...).CombinedOutput()
	return string(out), err
}

func clientCommand(s *harness.Service, binary string, args ...string) *exec.Cmd {
	c := exec.Command(binary, append(args, "--data", s.Data, "--endpoint", s.URL())...)
	c.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "AWS_") })
	return c
}

// contentSQL sums up what fill wrote, in either engine.
const contentSQL = "SELECT concat(count(*), ' ', sum(id), ' ', max(v)) FROM kept"

func fill(t *testing.T, i *harness.Instance) {
	t.Helper()
	session := i.Open(t)
	for _, statement := range []string{
		"CREATE TABLE kept (id int PRIMARY KEY, v varchar(40))",
		"INSERT INTO kept WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 500) SELECT n, md5(cast(n AS char(10))) FROM s",
	} {
		if err := session.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %s: %v", i.Name, statement, err)
		}
	}
}

func restored(t *testing.T, s *harness.Service, snapshot string, of *harness.Instance) *harness.Instance {
	t.Helper()
	i := *of
	i.Service, i.Name = s, "back-"+of.Engine
	out, err := s.RestoreDBInstanceFromDBSnapshot(t.Context(), &rds.RestoreDBInstanceFromDBSnapshotInput{
		DBInstanceIdentifier: aws.String(i.Name), DBSnapshotIdentifier: aws.String(snapshot), DBInstanceClass: aws.String(harness.Class("micro")),
	})
	if err != nil {
		t.Fatal(err)
	}
	i.ID = aws.ToString(out.DBInstance.DbiResourceId)
	return &i
}

// archiveOne makes an instance of each engine, and returns once a snapshot of it is in
// the repository, with what it holds.
func archiveOne(t *testing.T, s *harness.Service, repository string) ([]*harness.Instance, map[string]string) {
	t.Helper()
	instances, sums := one(t, s), map[string]string{}
	for _, i := range instances {
		fill(t, i)
		sums[i.Engine] = i.Query(t, contentSQL)
		if _, err := s.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(i.Name), DBSnapshotIdentifier: aws.String("kept-" + i.Engine)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range instances {
		waitSnapshot(t, s, "kept-"+i.Engine, "available")
	}
	// Others may be made by the service itself.
	harness.Wait(t, 2*time.Minute, "the snapshots are archived", func() string {
		if have := archived(repository); len(have) < len(instances) {
			return fmt.Sprintf("%d are: %q", len(have), have)
		}
		return ""
	})
	return instances, sums
}

// A machine is lost, and a new one gets its databases back from the repository alone.
func TestImportFromTheRepository(t *testing.T) {
	folder := harness.Folder(t, false)
	repository, key := filepath.Join(folder, "repository"), filepath.Join(folder, "key")
	secret := blobtest.KeyText(t)
	if err := os.WriteFile(key, []byte(secret.Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--backup-repository", repository, "--backup-key-file", key, "--copy-rate", "0"}
	first := harness.Start(t, harness.Options{Args: flags})
	instances, sums := archiveOne(t, first, repository)
	first.Terminate(t)
	wantRefusedRepository(t, first, repository, instances)
	if strings.Contains(first.Log.String(), strings.TrimSpace(secret.Reveal()[strings.LastIndex(secret.Reveal(), "AGE-"):])) {
		t.Error("the key stands in the log")
	}

	second := harness.Start(t, harness.Options{Args: flags})
	out, err := kurabeImport(second, harness.Binary(t), "--backup-repository", repository, "--backup-key-file", key)
	if err != nil {
		t.Fatalf("import: %v\n%s", err, out)
	}
	for _, i := range instances {
		if !strings.Contains(out, "kept-"+i.Engine) {
			t.Errorf("import says\n%s", out)
		}
		d := waitSnapshot(t, second, "kept-"+i.Engine, "available")
		if aws.ToString(d.DBInstanceIdentifier) != i.Name || aws.ToString(d.Engine) != i.Engine || d.SnapshotCreateTime == nil {
			t.Errorf("%+v", d)
		}
	}
	if again, err := kurabeImport(second, harness.Binary(t)); err != nil || !strings.Contains(again, "0 imported") {
		t.Errorf("again: %v\n%s", err, again)
	}
	var back []*harness.Instance
	for _, i := range instances {
		back = append(back, restored(t, second, "kept-"+i.Engine, i))
	}
	for _, i := range back {
		i.WaitStatus(t, "available")
		if got := i.Query(t, contentSQL); got != sums[i.Engine] {
			t.Errorf("%s has %s, had %s", i.Name, got, sums[i.Engine])
		}
	}
	// Nothing of it was copied to this host, and what is deleted goes from there.
	name := "kept-" + instances[0].Engine
	there := filepath.Dir(largestPack(t, repository, out, name))
	if _, err := second.DeleteDBSnapshot(t.Context(), &rds.DeleteDBSnapshotInput{DBSnapshotIdentifier: aws.String(name)}); err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, time.Minute, "the snapshot is gone from the repository", func() string {
		if left, err := filepath.Glob(filepath.Join(there, "*")); err != nil || len(left) > 0 {
			return fmt.Sprintf("%q are there, %v", left, err)
		}
		return ""
	})
}

// wantRefusedRepository starts a service whose repository's disk is not mounted: the
// service runs, and nothing is written into the empty folder. Once the disk is back,
// it is used again.
func wantRefusedRepository(t *testing.T, s *harness.Service, repository string, instances []*harness.Instance) {
	t.Helper()
	if err := os.Rename(repository, repository+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(repository, 0o700); err != nil {
		t.Fatal(err)
	}
	mark := s.Log.Mark()
	s.Start(t)
	harness.Wait(t, time.Minute, "the log tells of it", func() string {
		if log := s.Log.Since(mark); !strings.Contains(log, "no repository at this location") || !strings.Contains(log, "is its disk mounted?") {
			return log
		}
		return ""
	})
	for _, i := range instances {
		i.WaitStatus(t, "available")
	}
	if out, err := kurabeImport(s, harness.Binary(t)); err == nil || !strings.Contains(out, "is its disk mounted?") {
		t.Errorf("import: %v\n%s", err, out)
	}
	if entries, err := os.ReadDir(repository); err != nil || len(entries) > 0 {
		t.Errorf("the empty folder holds %v, %v", entries, err)
	}
	if err := os.Remove(repository); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(repository+".away", repository); err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, 2*time.Minute, "the repository is used again", func() string {
		if log := s.Log.Since(mark); !strings.Contains(log, "repository of backups is open") {
			return log
		}
		return ""
	})
	var known map[string]string
	raw, err := os.ReadFile(filepath.Join(s.Data, "repositories.json"))
	if err == nil {
		err = json.Unmarshal(raw, &known)
	}
	if info, statErr := os.Stat(filepath.Join(s.Data, "repositories.json")); err != nil || statErr != nil || info.Mode().Perm() != 0o600 || len(known) != 1 {
		t.Errorf("%s: %v, %v", raw, err, statErr)
	}
	s.Terminate(t)
	if err := s.EndDatabases(t.Context()); err != nil {
		t.Fatal(err)
	}
}
