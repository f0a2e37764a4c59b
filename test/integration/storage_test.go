//go:build integration

package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"golang.org/x/sys/unix"

	"kurabe"
	"kurabe/internal/harness"
	"kurabe/internal/volume"
)

// smallDisk is a file system of its own, and no larger than it says, in a sparse
// file: what is preallocated on it costs no disk.
func smallDisk(t *testing.T, bytes int64) string {
	t.Helper()
	dir := harness.Folder(t, false)
	image, at := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, bytes); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{"mkfs.ext4", "-q", "-F", "-m", "0", image}, {"mount", "-o", "loop", image, at}} {
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no small disk here: %s: %v: %s", argv[0], err, out)
		}
	}
	t.Cleanup(func() { unix.Unmount(at, 0) })
	return at
}

// ballast is a file that takes space without a byte being written.
func ballast(t *testing.T, path string, bytes int64) (remove func()) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, bytes); err != nil {
		t.Fatalf("preallocate %s: %v", path, err)
	}
	return func() { os.Remove(path) }
}

// bigBytes is what one statement for the big table adds at least.
const bigBytes = 2000 * 8000

// bigTable makes a table whose rows are not compressed, and returns what adds to it.
func bigTable(t *testing.T, s harness.Session, engine string) (insert string) {
	t.Helper()
	series := "seq_1_to_2000"
	create := []string{"CREATE TABLE IF NOT EXISTS big (x longtext)"}
	if engine == "postgres" {
		series = "generate_series(1, 2000)"
		create = []string{"CREATE TABLE IF NOT EXISTS big (x text)", "ALTER TABLE big ALTER x SET STORAGE EXTERNAL"}
	}
	for _, statement := range create {
		if err := s.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return "INSERT INTO big SELECT repeat('x', 8000) FROM " + series
}

// fastWriter writes 16 MB a statement, until one fails.
func fastWriter(t *testing.T, i *harness.Instance) (wait func()) {
	t.Helper()
	s := i.Open(t)
	insert := bigTable(t, s, i.Engine)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s.Exec(ctx, insert) == nil {
		}
	}()
	wait = func() { cancel(); <-done }
	t.Cleanup(wait)
	return wait
}

// cleanEnd is what an engine's log says of a shutdown that left nothing to recover.
var cleanEnd = map[string]string{"postgres": "database system is shut down", "mariadb": "Shutdown complete"}

// uncleanStart is what it says when there was something.
var uncleanStart = map[string]string{"postgres": "was not properly shut down", "mariadb": "Starting crash recovery"}

func engineLog(t *testing.T, i *harness.Instance) string {
	t.Helper()
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(i.Home(), "log", "*")) // the pattern is well formed
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

// The cap of the test's instances, and how much the fast writer may go beyond it: a
// second at the speed of a fast disk.
const (
	testCapGiB   = 5
	overshootMax = 1 << 30
	// undershootMax is what a shutdown may free.
	undershootMax = 64 << 20
)

// TestStorageNeverEndsInTears: a fast writer is stopped at its cap, and at the end of
// the host's disk, by a clean shutdown, and is brought back by growth or room alone,
// with everything that was acknowledged.
func TestStorageNeverEndsInTears(t *testing.T) {
	needRoot(t)
	disk := smallDisk(t, 9<<30)
	s := harness.Start(t, harness.Options{Data: filepath.Join(disk, "data")})
	reserve := filepath.Join(s.Data, "reserve")
	s.EachEngine(t, func(t *testing.T, engine string) {
		in := harness.Request("full-"+engine, engine)
		in.AllocatedStorage = aws.Int32(testCapGiB)
		i := s.MustCreate(t, in)
		ledger := harness.NewLedger(t, i)
		ledger.Start(t)
		fullAtItsCap(t, i)
		i.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.AllocatedStorage = aws.Int32(testCapGiB + 1) })
		i.WaitStatus(t, "available")
		t.Logf("grown, it takes rows %v later", ledger.WaitMore(t, 10))
		cleanly(t, i)
		if info, err := os.Stat(reserve); err != nil || info.Size() == 0 {
			t.Errorf("the reserve: %v", err)
		}
		roomAgain := diskRunsOut(t, i, disk)
		roomAgain()
		i.WaitStatus(t, "available")
		t.Logf("with room again it takes rows %v later", ledger.WaitMore(t, 10))
		cleanly(t, i)
		ledger.Stop()
		ledger.Verify(t)
		_, err := i.Service.ModifyDBInstance(t.Context(), &rds.ModifyDBInstanceInput{DBInstanceIdentifier: aws.String(i.Name), AllocatedStorage: aws.Int32(100)})
		if err == nil || !strings.Contains(err.Error(), "InsufficientDBInstanceCapacity") {
			t.Errorf("more than the disk has: %v", err)
		}
		i.Delete(t)
	})
}

// fullAtItsCap writes until the cap is reached.
func fullAtItsCap(t *testing.T, i *harness.Instance) {
	t.Helper()
	remove := ballast(t, filepath.Join(i.Home(), "ballast"), testCapGiB<<30*91/100)
	t.Log(i.WaitEvent(t, "The free storage capacity for DB instance"))
	wait := fastWriter(t, i)
	t.Logf("full after %v", i.WaitStatus(t, "storage-full"))
	wait()
	used, err := volume.UsedBytes(i.Home())
	over := used - testCapGiB<<30
	t.Logf("stopped %s beyond its cap: %v", kurabe.FormatBytes(over), err)
	// A shutdown removes what was temporary.
	if err != nil || over < -undershootMax || over > overshootMax {
		t.Errorf("%d bytes beyond the cap, %v", over, err)
	}
	i.WaitEvent(t, "Allocated storage has been exhausted")
	if pids := i.Service.Processes(i.ID); len(pids) > 0 || !strings.Contains(engineLog(t, i), cleanEnd[i.Engine]) {
		t.Errorf("processes %v, log:\n%s", pids, engineLog(t, i))
	}
	t.Cleanup(remove)
}

// diskRunsOut has the host's disk nearly full while the instance writes, and returns how
// to make room.
func diskRunsOut(t *testing.T, i *harness.Instance, disk string) (room func()) {
	t.Helper()
	if err := os.Remove(filepath.Join(i.Home(), "ballast")); err != nil {
		t.Fatal(err)
	}
	free, err := volume.FreeBytes(disk)
	if err != nil {
		t.Fatal(err)
	}
	room = ballast(t, filepath.Join(disk, "filler-"+i.Engine), free-900<<20)
	wait := fastWriter(t, i)
	t.Log(i.WaitEvent(t, "nearly full"))
	i.WaitStatus(t, "storage-full")
	wait()
	if free, err := volume.FreeBytes(disk); err != nil || free == 0 {
		t.Errorf("%d bytes were left, %v", free, err)
	} else {
		t.Logf("stopped with %s of the disk left", kurabe.FormatBytes(free))
	}
	return room
}

// cleanly demands that nothing had to be recovered.
func cleanly(t *testing.T, i *harness.Instance) {
	t.Helper()
	if log := engineLog(t, i); strings.Contains(log, uncleanStart[i.Engine]) {
		t.Errorf("it was not shut down cleanly:\n%s", log)
	}
	for _, message := range i.Events(t) {
		if strings.Contains(message, "unexpectedly") {
			t.Errorf("a clean stop counts as a crash: %s", message)
		}
	}
}
