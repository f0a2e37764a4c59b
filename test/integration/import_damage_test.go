//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// largestPack is one object of an archived snapshot, whose id the import has told.
func largestPack(t *testing.T, repository, imported, name string) string {
	t.Helper()
	id := regexp.MustCompile(`imported  ` + regexp.QuoteMeta(name) + `  of \S+ \((\S+)\)`).FindStringSubmatch(imported)
	if id == nil {
		t.Fatalf("%s is not in\n%s", name, imported)
	}
	packs, err := filepath.Glob(filepath.Join(repository, "snapshots", id[1], "pack-*.tar"))
	largest, size := "", int64(0)
	for _, p := range packs {
		if info, err := os.Stat(p); err == nil && info.Size() > size {
			largest, size = p, info.Size()
		}
	}
	if largest == "" {
		t.Fatalf("no pack of %s, %v", name, err)
	}
	return largest
}

// spoil flips a bit in the middle of an object, or takes it away, and returns what
// brings it back.
func spoil(t *testing.T, path string, remove bool) (undo func()) {
	t.Helper()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := append([]byte{}, good...)
	bad[len(bad)/2] ^= 1
	if err = os.Remove(path); err == nil && !remove {
		err = os.WriteFile(path, bad, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		os.Remove(path)
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// saidDamaged says whether a snapshot is listed as one that cannot be trusted.
func saidDamaged(t *testing.T, s *harness.Service, snapshot string) bool {
	t.Helper()
	out, err := kurabeCommand(s, harness.Binary(t), "snapshots")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, snapshot+" ") {
			return strings.Contains(line, "available, damaged")
		}
	}
	t.Fatalf("%s is not listed:\n%s", snapshot, out)
	return false
}

// tagOf is the value of a tag of a snapshot, "" without it.
func tagOf(t *testing.T, s *harness.Service, snapshot, key string) string {
	t.Helper()
	out, err := s.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{DBSnapshotIdentifier: aws.String(snapshot)})
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range out.DBSnapshots[0].TagList {
		if aws.ToString(tag.Key) == key {
			return aws.ToString(tag.Value)
		}
	}
	return ""
}

// A restore from the repository that meets damage ends and says so; one whose
// repository is merely away goes on when it is back.
func TestRestoreFromADamagedRepository(t *testing.T) {
	onceIsEnough(t)
	repository := filepath.Join(harness.Folder(t, false), "repository")
	flags := []string{"--backup-repository", repository, "--copy-rate", "0"}
	first := harness.Start(t, harness.Options{Args: flags})
	instances, sums := archiveOne(t, first, repository)
	first.Terminate(t)
	s := harness.Start(t, harness.Options{Args: flags})
	imported, err := kurabeImport(s, harness.Binary(t))
	if err != nil {
		t.Fatalf("import: %v\n%s", err, imported)
	}
	for n, of := range instances {
		name := "kept-" + of.Engine
		waitSnapshot(t, s, name, "available")
		undo := spoil(t, largestPack(t, repository, imported, name), n%2 == 1)
		wantUnrestorable(t, s, name, of, n%2 == 1)
		undo()
		// Somebody brought the object back from a copy.
		if out, err := kurabeCommand(s, harness.Binary(t), "verify", name); err != nil {
			t.Errorf("verify: %v\n%s", err, out)
		}
		if saidDamaged(t, s, name) {
			t.Errorf("%s is still said to be damaged", name)
		}
	}
	if err := os.Rename(repository, repository+".away"); err != nil {
		t.Fatal(err)
	}
	var back []*harness.Instance
	for _, of := range instances {
		i := restored(t, s, "kept-"+of.Engine, of)
		back = append(back, i)
		i.WaitEvent(t, "is tried again")
		if status := aws.ToString(i.Describe(t).DBInstanceStatus); status != "creating" {
			t.Errorf("without its repository %s is %s", i.Name, status)
		}
	}
	if err := os.Rename(repository+".away", repository); err != nil {
		t.Fatal(err)
	}
	for n, i := range back {
		i.WaitStatus(t, "available")
		if got := i.Query(t, contentSQL); got != sums[instances[n].Engine] {
			t.Errorf("%s has %s, had %s", i.Name, got, sums[instances[n].Engine])
		}
	}
}

// wantUnrestorable restores what is damaged.
func wantUnrestorable(t *testing.T, s *harness.Service, name string, of *harness.Instance, missing bool) {
	t.Helper()
	words := "checksum"
	if missing {
		words = "no such object"
	}
	i := restored(t, s, name, of)
	took := i.WaitStatus(t, "incompatible-restore")
	t.Logf("%s was given up after %v", name, took.Round(time.Millisecond))
	if event := i.WaitEvent(t, "cannot be restored"); !strings.Contains(event, "pack-") || !strings.Contains(event, words) {
		t.Errorf("the event says %s", event)
	}
	harness.Wait(t, time.Minute, "the snapshot is said to be damaged", func() string {
		if !saidDamaged(t, s, name) {
			return "no word of it"
		}
		return ""
	})
	if out, err := kurabeCommand(s, harness.Binary(t), "snapshots"); err != nil || !strings.Contains(out, "available, damaged") {
		t.Errorf("snapshots: %v\n%s", err, out)
	}
	if out, err := kurabeCommand(s, harness.Binary(t), "verify", name); err == nil || !strings.Contains(out, words) {
		t.Errorf("verify: %v\n%s", err, out)
	}
	i.Delete(t)
}
