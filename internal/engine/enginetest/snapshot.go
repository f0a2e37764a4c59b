package enginetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/snapshot"
)

// RunSnapshots takes snapshots of one instance in each of its conditions, and
// restores them. The parts build on each other.
func RunSnapshots(t *testing.T, s Setup) {
	runParts(t, s, []part{
		{"what was acknowledged before is in it, and nothing by half", takesUnderLoad},
		{"source, snapshot and restored instance are independent", independent},
		{"a copy of a snapshot outlives it", copiesSnapshot},
		{"a snapshot taken again is the one that is there", takesOnce},
		{"a damaged snapshot is refused and nothing is made", refusesDamage},
		{"a snapshot of another engine or major is refused", refusesStranger},
		{"a stopped instance is copied, and does not start meanwhile", takesStopped},
		{"killed while taking, it leaves nothing that counts", survivesKill},
	})
}

// RunClones is RunSnapshots for a root on a file system that clones: the parts in
// which that makes a difference.
func RunClones(t *testing.T, s Setup) {
	runParts(t, s, []part{
		{"what was acknowledged before is in it, and nothing by half", takesUnderLoad},
		{"source, snapshot and restored instance are independent", independent},
		{"a copy of a snapshot outlives it", copiesSnapshot},
		{"a clone shares its blocks until the source changes", sharesBlocks},
	})
}

type part struct {
	name string
	part func(*testing.T, *Bed)
}

func runParts(t *testing.T, s Setup, parts []part) {
	t.Helper()
	b := NewBed(t, s)
	b.Satisfy(t)
	b.MustQuery(t, "CREATE TABLE ledger (n integer, half integer)")
	for _, p := range parts {
		if !t.Run(p.name, func(t *testing.T) { p.part(t, b) }) {
			t.FailNow()
		}
	}
}

// Snapshots are those of the bed's host.
func (b *Bed) Snapshots() *engine.Snapshots {
	return engine.NewSnapshots(filepath.Join(b.Root, "snapshots"), b.Lifecycle)
}

func (b *Bed) assignment() kurabe.SnapshotAssignment {
	id := kurabe.NewSnapshotID()
	return kurabe.SnapshotAssignment{
		Generation: 1, Snapshot: id, Name: "suite-" + string(id)[5:9], Goal: kurabe.SnapshotPresent, Of: b.Want.Instance,
		Source: kurabe.SnapshotSource{Instance: b.Want.Instance, Engine: b.Engine, MasterUsername: b.Want.MasterUsername, Password: b.Want.Password},
	}
}

// Take takes a snapshot of the instance as it is.
func (b *Bed) Take(t *testing.T) (kurabe.SnapshotID, kurabe.SnapshotFacts) {
	t.Helper()
	a := b.assignment()
	facts, err := b.Snapshots().Take(t.Context(), a, b.Want, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, state, err := b.Snapshots().Find(a.Snapshot); err != nil || state != snapshot.Complete {
		t.Fatalf("a snapshot that was taken is %s, %v", state, err)
	}
	return a.Snapshot, facts
}

// From describes a new instance from a snapshot of this one; it does not exist yet.
func (b *Bed) From(t *testing.T, id kurabe.SnapshotID) *Bed {
	t.Helper()
	n := *b
	n.Want.Instance = kurabe.NewInstanceID()
	n.Want.Name, n.Want.Goal, n.Want.Origin = "restored", kurabe.GoalRunning, &kurabe.Origin{Snapshot: id}
	n.Want.Address = address(n.Want.Instance)
	n.Want.Port = freePort(t, n.Want.Address)
	t.Cleanup(func() { n.kill(t) })
	return &n
}

// Restore makes a running instance of a snapshot.
func (b *Bed) Restore(t *testing.T, id kurabe.SnapshotID) *Bed {
	t.Helper()
	n := b.From(t, id)
	n.Satisfy(t)
	return n
}

// Discard ends an instance and removes all of it.
func (b *Bed) Discard(t *testing.T) {
	t.Helper()
	b.Want.Goal = kurabe.GoalAbsent
	b.Satisfy(t)
}

// ledger commits pairs of rows one after the other and keeps what was acknowledged.
type ledger struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex // guards acked and err
	acked []time.Time
	err   error
}

func (b *Bed) write(t *testing.T) *ledger {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &ledger{stop: stop}
	l.done.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			_, err := b.Query(ctx, b.Login(), fmt.Sprintf("INSERT INTO ledger VALUES (%d, 1), (%d, 2)", n, n))
			if ctx.Err() != nil {
				return
			}
			l.mu.Lock()
			l.acked = append(l.acked, time.Now())
			l.err = errors.Join(l.err, err)
			l.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	return l
}

// before is how many pairs were acknowledged before a moment.
func (l *ledger) before(at time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.acked) && l.acked[n].Before(at) {
		n++
	}
	return n
}

func (l *ledger) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.done.Wait()
	if l.err != nil {
		t.Fatalf("the writer: %v", l.err)
	}
}

const ledgerFewest = 20

func takesUnderLoad(t *testing.T, b *Bed) {
	l := b.write(t)
	for deadline := time.Now().Add(passTime); l.before(time.Now()) < ledgerFewest; {
		if time.Now().After(deadline) {
			t.Fatal("the writer does not get on")
		}
		time.Sleep(time.Millisecond)
	}
	begin := time.Now()
	id, facts := b.Take(t)
	took := time.Since(begin)
	l.end(t)
	t.Logf("taken in %v (%s): %+v", took.Round(time.Millisecond), facts.Method, facts)
	if facts.TakenAt.Before(begin.Add(-time.Second)) || facts.SizeBytes == 0 || facts.OccupiedBytes == 0 || facts.Percent != 100 {
		t.Errorf("facts %+v", facts)
	}
	if err := b.Snapshots().Seal(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if sealed, err := b.Snapshots().Sealed(id); err != nil || !sealed {
		t.Errorf("sealed %v, %v", sealed, err)
	}
	if got := b.MustQuery(t, b.LeftSQL); got != "0" {
		t.Errorf("it left %s in the server", got)
	}
	if _, err := os.Stat(b.Home().CopyDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it left its folder: %v", err)
	}
	begin = time.Now()
	n := b.Restore(t, id)
	t.Logf("restored to probed in %v", time.Since(begin).Round(time.Millisecond))
	newest := n.count(t, "SELECT max(n) FROM ledger")
	if least := l.before(facts.TakenAt); newest < least || newest < ledgerFewest {
		t.Errorf("it has %d pairs, %d were acknowledged before", newest, least)
	}
	if rows := n.count(t, "SELECT count(*) FROM ledger"); rows != 2*newest {
		t.Errorf("%d rows of %d pairs: one is torn, or missing", rows, newest)
	}
	if got := n.MustQuery(t, b.LeftSQL); got != "0" {
		t.Errorf("what took the snapshot is in the restored server: %s", got)
	}
	before := n.Process(t)
	n.Want.Boot++
	n.Satisfy(t)
	if before.PID == n.Process(t).PID || n.count(t, "SELECT max(n) FROM ledger") != newest {
		t.Error("another start changes what is there")
	}
	n.Discard(t)
}

func (b *Bed) count(t *testing.T, statement string) int {
	t.Helper()
	n, err := strconv.Atoi(b.MustQuery(t, statement))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func independent(t *testing.T, b *Bed) {
	b.MustQuery(t, "DELETE FROM ledger")
	b.MustQuery(t, "INSERT INTO ledger VALUES (7, 1)")
	id, _ := b.Take(t)
	n := b.Restore(t, id)
	n.MustQuery(t, "UPDATE ledger SET n = 8")
	if got := b.MustQuery(t, "SELECT n FROM ledger"); got != "7" {
		t.Errorf("a write to the restored instance reached the source: %s", got)
	}
	if err := b.Snapshots().Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, state, err := b.Snapshots().Find(id); err != nil || state != snapshot.Absent {
		t.Errorf("%s after its removal, %v", state, err)
	}
	if err := b.Snapshots().Remove(t.Context(), id); err != nil {
		t.Errorf("removing it again: %v", err)
	}
	b.MustQuery(t, "UPDATE ledger SET n = 9")
	if got := n.MustQuery(t, "SELECT n FROM ledger"); got != "8" {
		t.Errorf("a write to the source reached the restored instance: %s", got)
	}
	n.Discard(t)
}

func copiesSnapshot(t *testing.T, b *Bed) {
	from, _ := b.Take(t)
	a := b.assignment()
	a.Of, a.From = "", from
	facts, err := b.Snapshots().Copy(t.Context(), a, nil)
	if err != nil || facts.SizeBytes == 0 {
		t.Fatalf("%+v, %v", facts, err)
	}
	if err := b.Snapshots().Remove(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	if err := b.Snapshots().Seal(t.Context(), a.Snapshot); err != nil {
		t.Fatal(err)
	}
	n := b.Restore(t, a.Snapshot)
	if got := n.MustQuery(t, "SELECT n FROM ledger"); got != "9" {
		t.Errorf("it has %s", got)
	}
	n.Discard(t)
}

func takesOnce(t *testing.T, b *Bed) {
	a := b.assignment()
	first, err := b.Snapshots().Take(t.Context(), a, b.Want, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Snapshots().Take(t.Context(), a, b.Want, nil)
	if err != nil || again != first {
		t.Errorf("%+v, then %+v, %v", first, again, err)
	}
}

// largest is the biggest file of a snapshot's data.
func largest(t *testing.T, dir string) string {
	t.Helper()
	found, most := "", int64(0)
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && info.Size() > most {
			found, most = path, info.Size()
		}
		return err
	})
	if err != nil || found == "" {
		t.Fatal(err)
	}
	return found
}

// refused says why a restore fails, and demands that it left nothing.
func (b *Bed) refused(t *testing.T, id kurabe.SnapshotID) string {
	t.Helper()
	n := b.From(t, id)
	err := n.TrySatisfy(t.Context())
	if err == nil {
		t.Fatal("it was restored")
	}
	entries, dirErr := filepath.Glob(n.Home().DataDir() + "*")
	if dirErr != nil || len(entries) > 0 {
		t.Errorf("left %v, %v", entries, dirErr)
	}
	n.Discard(t)
	t.Logf("in its words: %v", err)
	return err.Error()
}

func refusesDamage(t *testing.T, b *Bed) {
	id, _ := b.Take(t)
	if err := b.Snapshots().Seal(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(b.Root, "snapshots", string(id))
	victim := largest(t, filepath.Join(dir, "data"))
	content, err := os.ReadFile(victim)
	if err != nil {
		t.Fatal(err)
	}
	damages := []struct {
		name, says string
		do         func() error
	}{
		{"a shorter file", "damaged", func() error { return os.Truncate(victim, int64(len(content)-1)) }},
		{"a missing file", "missing", func() error { return os.Remove(victim) }},
		{"no record", "not complete", func() error { return os.Remove(filepath.Join(dir, "snapshot.json")) }},
	}
	for _, d := range damages {
		if err := d.do(); err != nil {
			t.Fatal(err)
		}
		if why := b.refused(t, id); !strings.Contains(why, d.says) {
			t.Errorf("%s: %s", d.name, why)
		}
		if d.name == "no record" {
			continue
		}
		if err := os.WriteFile(victim, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, state, err := b.Snapshots().Find(id); err != nil || state != snapshot.Partial {
		t.Errorf("without a record it is %s, %v", state, err)
	}
}

func refusesStranger(t *testing.T, b *Bed) {
	id, _ := b.Take(t)
	path := filepath.Join(b.Root, "snapshots", string(id), "snapshot.json")
	record, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	family := strconv.Quote(b.Version.Family)
	if !strings.Contains(string(record), family) {
		t.Fatalf("no %s in %s", family, record)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(record), family, `"postgres9"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if why := b.refused(t, id); !strings.Contains(why, "postgres9") {
		t.Error(why)
	}
}

// sharesBlocks takes it of the stopped instance, which both engines clone.
func sharesBlocks(t *testing.T, b *Bed) {
	b.Want.Goal = kurabe.GoalStopped
	b.Satisfy(t)
	id, facts := b.Take(t)
	if facts.Method != kurabe.SnapshotCloned || facts.OccupiedBytes > facts.SizeBytes/4 {
		t.Errorf("%+v", facts)
	}
	if sealed, err := b.Snapshots().Sealed(id); err != nil || sealed {
		t.Errorf("a clone was read: sealed %v, %v", sealed, err)
	}
	if err := b.Snapshots().Seal(t.Context(), id); err != nil {
		t.Error(err)
	}
	b.Discard(t)
	// Not all: what the template had is still shared with it.
	// XFS frees what was removed in the background.
	for deadline := time.Now().Add(passTime); ; {
		own, err := b.Snapshots().Occupied(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if own > 2*facts.OccupiedBytes {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("with its source it had %d bytes of its own, without it has %d", facts.OccupiedBytes, own)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func takesStopped(t *testing.T, b *Bed) {
	b.Want.Goal = kurabe.GoalStopped
	b.Satisfy(t)
	begun, a := make(chan struct{}), b.assignment()
	var once sync.Once
	goOn := make(chan struct{})
	var facts kurabe.SnapshotFacts
	var err error
	var done sync.WaitGroup
	done.Go(func() {
		facts, err = b.Snapshots().Take(t.Context(), a, b.Want, func(int64, int64) { once.Do(func() { close(begun) }); <-goOn })
	})
	<-begun
	o, lookErr := b.Lifecycle.Observe(t.Context(), b.Want)
	if lookErr != nil || o.Survivors || len(b.Lifecycle.Steps(b.Want, o)) > 0 {
		t.Errorf("the copy looks like a living server: %+v, %v", o, lookErr)
	}
	started := b.Want
	started.Goal = kurabe.GoalRunning
	for _, step := range b.Lifecycle.Steps(started, o) {
		if step.Name == engine.StepStart && step.Do(t.Context()) == nil {
			t.Error("the server was started during the copy")
		}
	}
	close(goOn)
	done.Wait()
	if err != nil || facts.SizeBytes == 0 {
		t.Fatalf("%+v, %v", facts, err)
	}
	n := b.Restore(t, a.Snapshot)
	if got := n.MustQuery(t, "SELECT n FROM ledger"); got != "9" {
		t.Errorf("it has %s", got)
	}
	n.Discard(t)
	b.Want.Goal = kurabe.GoalRunning
	b.Want.Boot++
	b.Satisfy(t)
}
