//go:build fault

package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// TestKillAtEverySnapshotStep kills the service before and after every step of the
// life of snapshots, while a ledger writes into the source.
func TestKillAtEverySnapshotStep(t *testing.T) {
	o := harness.Options{Fault: true, Args: []string{"--copy-rate", "0"}}
	onFileSystems(t, o, func(t *testing.T, s *harness.Service, engine string, clones bool) {
		newSnapshotBed(t, s, engine).killEveryStep(t, clones)
	})
}

// onFileSystems runs a test for each engine, on the ordinary file system and on one that
// clones, each time on a service of its own.
func onFileSystems(t *testing.T, o harness.Options, test func(t *testing.T, s *harness.Service, engine string, clones bool)) {
	t.Helper()
	for _, engine := range []string{"postgres", "mariadb"} {
		for _, clones := range []bool{false, true} {
			name := engine + map[bool]string{false: "-copied", true: "-cloned"}[clones]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				o := o
				if clones {
					dir := cloningFolder(t)
					if dir == "" {
						t.Skip("there is no file system that clones")
					}
					o.Data = filepath.Join(dir, "data")
				}
				s := harness.Start(t, o)
				s.NeedEngine(t, engine, s.Engines(t))
				test(t, s, engine, clones)
			})
		}
	}
}

// killEveryStep takes snapshots through their lives. What one step made, the next is
// tried on, so that everything that survived a death is restored once.
func (b *snapshotBed) killEveryStep(t *testing.T, clones bool) {
	began := time.Now()
	b.dies(t, "before:take-snapshot", func() error { return b.take(t, "taken-before") })
	b.settled(t, "taken-before")
	b.dies(t, "after:take-snapshot", func() error { return b.take(t, "taken-after") })
	b.settled(t, "taken-after")
	if clones || b.i.Engine == "mariadb" { // else the sums were made on the way
		b.dies(t, "before:seal-snapshot", func() error { return b.take(t, "sealed-before") })
		b.settled(t, "sealed-before")
		b.dies(t, "after:seal-snapshot", func() error { return b.take(t, "sealed-after") })
		b.settled(t, "sealed-after")
	}
	b.dies(t, "before:copy-snapshot", func() error { return b.copy(t, "taken-before", "copied-before") })
	b.settled(t, "copied-before")
	b.dies(t, "after:copy-snapshot", func() error { return b.copy(t, "taken-after", "copied-after") })
	b.settled(t, "copied-after")
	b.clean(t)

	var r *restored
	b.dies(t, "before:restore-snapshot", func() error { r = b.restore(t, "copied-before", "first"); return nil })
	b.exact(t, r)
	b.dies(t, "after:restore-snapshot", func() error { r = b.restore(t, "taken-after", "second"); return nil })
	b.exact(t, r)

	b.dies(t, "before:remove-snapshot", func() error { return b.remove(t, "copied-before") })
	b.gone(t, "copied-before")
	b.dies(t, "after:remove-snapshot", func() error { return b.remove(t, "taken-after") })
	b.gone(t, "taken-after")
	b.clean(t)
	noOrphans(t, b.s)
	b.end(t)
	t.Logf("%d rows, %v", b.ledger.Acked(), time.Since(began).Round(time.Millisecond))
}

// snapshotBed is an instance into which a ledger writes, and its snapshots.
type snapshotBed struct {
	s      *harness.Service
	i      *harness.Instance
	ledger *harness.Ledger
	least  map[string]int // rows that were acknowledged when a snapshot was asked for
	most   map[string]int // rows at most when it was complete
}

func newSnapshotBed(t *testing.T, s *harness.Service, engine string) *snapshotBed {
	t.Helper()
	in := harness.Request("source", engine)
	in.BackupRetentionPeriod = aws.Int32(0) // the test takes its own
	b := &snapshotBed{s: s, i: s.MustCreate(t, in), least: map[string]int{}, most: map[string]int{}}
	b.ledger = harness.NewLedger(t, b.i)
	b.ledger.Start(t)
	b.ledger.WaitMore(t, 3)
	return b
}

// dies has the service killed at a point of what is asked for, and starts it again.
// The source must not notice.
func (b *snapshotBed) dies(t *testing.T, point string, ask func() error) {
	t.Helper()
	b.s.Arm(t, point)
	asked := ask() // it fails where the service dies before it has answered
	harness.Wait(t, settleTime, "the service dies "+point, func() string {
		if b.s.Running() {
			return fmt.Sprintf("it does not, and answered %v", asked)
		}
		return ""
	})
	b.ledger.WaitMore(t, 3)
	b.s.Start(t)
}

func (b *snapshotBed) take(t *testing.T, name string) error {
	b.least[name] = b.ledger.Acked()
	_, err := b.s.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(b.i.Name), DBSnapshotIdentifier: aws.String(name)})
	return err
}

func (b *snapshotBed) copy(t *testing.T, from, to string) error {
	b.least[to], b.most[to] = b.least[from], b.most[from]
	_, err := b.s.CopyDBSnapshot(t.Context(), &rds.CopyDBSnapshotInput{SourceDBSnapshotIdentifier: aws.String(from), TargetDBSnapshotIdentifier: aws.String(to)})
	return err
}

func (b *snapshotBed) remove(t *testing.T, name string) error {
	_, err := b.s.DeleteDBSnapshot(t.Context(), &rds.DeleteDBSnapshotInput{DBSnapshotIdentifier: aws.String(name)})
	return err
}

// state is a snapshot's status; an unreachable service is one too.
func (b *snapshotBed) state(t *testing.T, name string) string {
	out, err := b.s.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{DBSnapshotIdentifier: aws.String(name)})
	if err != nil {
		return err.Error()
	}
	return aws.ToString(out.DBSnapshots[0].Status)
}

// snapshotTime is what a snapshot may take that is tried five times, with pauses that
// grow to 16 s.
const snapshotTime = 60 * time.Second

// reaches waits until a snapshot is in one of the states, and says in which.
func (b *snapshotBed) reaches(t *testing.T, name string, states ...string) string {
	t.Helper()
	state := ""
	harness.Wait(t, snapshotTime, name+" is "+strings.Join(states, " or "), func() string {
		if state = b.state(t, name); slices.Contains(states, state) {
			return ""
		}
		return "it is " + state
	})
	return state
}

// settled waits until a snapshot is there and the instance is as before.
func (b *snapshotBed) settled(t *testing.T, name string) {
	t.Helper()
	b.reaches(t, name, "available")
	if _, copied := b.most[name]; !copied {
		b.most[name] = b.ledger.Acked() + 1 // one more may be in the table and not acknowledged
	}
	b.i.WaitStatus(t, "available")
}

func (b *snapshotBed) gone(t *testing.T, name string) {
	t.Helper()
	harness.Wait(t, settleTime, name+" is gone", func() string {
		if state := b.state(t, name); !strings.Contains(state, "DBSnapshotNotFound") {
			return "it is " + state
		}
		return ""
	})
}

// restored is an instance made of a snapshot.
type restored struct {
	i        *harness.Instance
	snapshot string
}

func (b *snapshotBed) restore(t *testing.T, snapshot, name string) *restored {
	t.Helper()
	out, err := b.s.RestoreDBInstanceFromDBSnapshot(t.Context(), &rds.RestoreDBInstanceFromDBSnapshotInput{
		DBInstanceIdentifier: aws.String(name), DBSnapshotIdentifier: aws.String(snapshot), BackupRetentionPeriod: aws.Int32(0),
	})
	if err != nil {
		t.Fatalf("restore %s: %v", snapshot, err)
	}
	i := *b.i
	i.Name, i.ID = name, aws.ToString(out.DBInstance.DbiResourceId)
	return &restored{i: &i, snapshot: snapshot}
}

// exact demands that a restored instance has every row that was acknowledged before
// its snapshot was asked for, none from after it, and no gap; then it goes.
func (b *snapshotBed) exact(t *testing.T, r *restored) {
	t.Helper()
	r.i.WaitStatus(t, "available")
	var count, first, last int
	text := r.i.Query(t, "SELECT concat(count(*), ' ', min(n), ' ', max(n)) FROM ledger")
	if _, err := fmt.Sscan(text, &count, &first, &last); err != nil {
		t.Fatalf("the ledger in %s: %q: %v", r.i.Name, text, err)
	}
	if first != 1 || count != last || count < b.least[r.snapshot] || count > b.most[r.snapshot] {
		t.Errorf("%s has rows %d to %d, %d in all; want 1 to n, n from %d to %d", r.snapshot, first, last, count, b.least[r.snapshot], b.most[r.snapshot])
	}
	r.i.Query(t, "INSERT INTO ledger VALUES (1000000)") // it takes writes
	r.i.Delete(t)
}

// clean demands that nothing is left of what was cut off: in the server, in its home
// and beside the snapshots.
func (b *snapshotBed) clean(t *testing.T) {
	t.Helper()
	left := map[string]string{
		"postgres": "SELECT count(*) FROM pg_replication_slots",
		"mariadb":  "SELECT count(*) FROM mysql.global_priv WHERE User LIKE 'rdsbackup%'",
	}[b.i.Engine]
	harness.Wait(t, settleTime, "nothing is left of a snapshot", func() string {
		if n := b.i.Query(t, left); n != "0" {
			return n + " slots or accounts"
		}
		if _, err := os.Lstat(filepath.Join(b.i.Home(), "copy")); err == nil {
			return "the folder of a copy in the home"
		}
		out, err := b.s.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{})
		if err != nil {
			return err.Error()
		}
		if list := b.folders(); len(list) != len(out.DBSnapshots) {
			return fmt.Sprintf("folders %v of %d snapshots", list, len(out.DBSnapshots))
		}
		return strings.Join(b.tools(), ", ")
	})
}

// folders are what is in the folder of snapshots.
func (b *snapshotBed) folders() []string {
	var list []string
	entries, _ := os.ReadDir(filepath.Join(b.s.Data, "snapshots")) // none, no snapshot
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, e.Name())
		}
	}
	return list
}

// tools are processes other than the server that work for the instance: the engine's
// own tool for backups names the home in its arguments.
func (b *snapshotBed) tools() []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well formed
	for _, file := range files {
		raw, _ := os.ReadFile(file) // it may have ended
		command := strings.ReplaceAll(string(raw), "\x00", " ")
		if strings.Contains(command, "backup") && strings.Contains(command, b.i.ID) {
			found = append(found, "a tool is left: "+command)
		}
	}
	return found
}

// end demands that the source has served all the time.
func (b *snapshotBed) end(t *testing.T) {
	t.Helper()
	b.ledger.Stop()
	if errs, newest := b.ledger.Errors(); errs > 0 {
		t.Errorf("%d errors at the source, the newest: %v", errs, newest)
	}
	b.ledger.Verify(t)
}
