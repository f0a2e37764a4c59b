//go:build integration

package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/proc"
)

// kept is a log and a snapshot, with what clients wrote meanwhile.
type kept struct {
	b        *enginetest.Bed
	d        *Driver
	a        *archive
	l        *ledger
	snapshot string
	copied   engine.Copied
	usable   time.Time // when the copy was whole: from then on, any moment
}

// TestLog keeps the log of a server through a restart and a crash, and brings a
// snapshot to moments of all that.
func TestLog(t *testing.T) {
	k := keep(t)
	for _, p := range []struct {
		name string
		part func(*testing.T, *kept)
	}{
		{"moments are exact", replaysMoments},
		{"records are those that the server's tool sees", scansAsTheTool},
		{"a log with damage or a gap is refused", refusesDamagedLog},
		{"what is impossible is refused", refusesImpossible},
		{"an ended context ends the server", endsSoon},
		{"a sound snapshot has no problems, behind a barred path", checksSound},
		{"damage is found", findsDamage},
		{"a log that grew too long is gone, and begins again", losesSlot},
		{"a stopped instance's snapshot is replayed", replaysStopped},
	} {
		if !t.Run(p.name, func(t *testing.T) { p.part(t, k) }) {
			t.FailNow()
		}
	}
}

func keep(t *testing.T) *kept {
	t.Helper()
	b := running(t)
	b.Want.Log = true
	b.MustQuery(t, "CREATE TABLE ledger (n integer PRIMARY KEY, words text)")
	k := &kept{b: b, d: b.Driver.(*Driver), a: newArchive(t, b), l: &ledger{}, snapshot: filepath.Join(t.TempDir(), "snapshot")}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	clients, endClients := context.WithCancel(ctx)
	defer endClients()
	var all, followed sync.WaitGroup
	var followErr error
	followed.Go(func() { followErr = k.a.follow(ctx) })
	for n := range 3 {
		all.Go(func() { k.l.write(clients, b, n+1) })
	}
	more := func(rows int) {
		t.Helper()
		least := k.l.acked() + rows
		until(t, "more rows", func() bool { return k.l.acked() >= least })
	}
	more(500) // so that nobody writes to the first page of the table any more
	var err error
	if k.copied, err = k.d.CopyRunning(t.Context(), b.Instance(), engine.CopyRequest{Dir: k.snapshot}); err != nil {
		t.Fatal(err)
	}
	k.usable = time.Now()
	more(50)
	b.Want.Boot++
	b.Satisfy(t)
	more(50)
	err = k.d.withAdmin(t.Context(), b.Instance(), func(conn *pgx.Conn) error {
		return execAll(t.Context(), conn, []string{"SELECT pg_catalog.pg_switch_wal()"})
	})
	if err != nil {
		t.Fatal(err)
	}
	more(100)
	server := b.Process(t)
	if err := server.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Satisfy(t)
	more(50)
	endClients()
	all.Wait()
	// Idle: marks with nothing between them.
	have, _ := k.a.newest()
	until(t, "more marks", func() bool { n, _ := k.a.newest(); return n > have+5 })
	stop()
	followed.Wait()
	if followErr != nil {
		t.Fatal(followErr)
	}
	if k.copied.Position == (kurabe.LogPosition{}) {
		t.Fatal("the snapshot has no position")
	}
	t.Logf("%d rows, %d marks, snapshot at %s, log up to %s", len(k.l.rows), len(k.a.marks), k.copied.Position, k.a.at)
	return k
}

// replayed brings a fresh copy of the snapshot to a moment and reads it.
func (k *kept) replayed(t *testing.T, at time.Time) {
	t.Helper()
	dir := restored(t, k.b, k.snapshot)
	begun := time.Now()
	r := k.a.request(t, k.copied.Position, at)
	rows := map[int]bool{}
	if err := k.d.replay(t.Context(), k.b.Instance(), dir, r, readLedger(rows)); err != nil {
		t.Fatal(err)
	}
	k.l.compare(t, rows, at)
	t.Logf("replayed in %v", time.Since(begun))
}

func replaysMoments(t *testing.T, k *kept) {
	newest := k.a.marks[len(k.a.marks)-1]
	first := time.Time{}
	for _, m := range k.a.marks {
		// A mark that was begun within the copy can have a position behind it.
		if first.IsZero() && m.At.After(k.usable) {
			first = m.At
		}
	}
	// Of a slow copy, most rows are older than it.
	rows := slices.DeleteFunc(slices.Clone(k.l.rows), func(w written) bool { return !w.sent.After(first) })
	if len(rows) < 100 {
		t.Fatalf("%d rows were sent after the snapshot", len(rows))
	}
	for name, at := range map[string]time.Time{
		"right after the snapshot":     first,
		"the moment a row was sent":    rows[len(rows)*4/5].sent,
		"idle, within the last second": newest.At.Add(-time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) { k.replayed(t, at) })
	}
}

// last is a request for all of the log.
func (k *kept) last(t *testing.T) engine.ReplayRequest {
	t.Helper()
	_, newest := k.a.newest()
	return k.a.request(t, k.copied.Position, newest.At)
}

// The scanner and pg_waldump agree on each record and each transaction's end.
func scansAsTheTool(t *testing.T, k *kept) {
	r := k.last(t)
	s := wal.Segments{Bytes: 16 << 20}
	timeline, from, err := s.Place(r.From)
	if err != nil {
		t.Fatal(err)
	}
	_, after, err := s.Place(r.After.Position)
	if err != nil {
		t.Fatal(err)
	}
	// The tool wants whole segments.
	last := filepath.Join(r.Dir, r.After.Position.File)
	if err := os.Truncate(last, s.Bytes); err != nil {
		t.Fatal(err)
	}
	log := &wal.Scanner{Dir: r.Dir, Segments: s, Timeline: timeline, Limit: after}
	defer log.Close()
	var mine strings.Builder
	next, err := log.First(s.Begin(from))
	for err == nil {
		var r wal.Record
		if r, err = log.Read(next); err != nil {
			break
		}
		next = r.Next
		at, ok, endErr := r.TransactionEnd()
		if endErr != nil {
			t.Fatal(endErr)
		}
		fmt.Fprintf(&mine, "%X/%08X", uint64(r.Begin)>>32, uint32(r.Begin))
		if ok {
			fmt.Fprintf(&mine, " %s", at.Format("2006-01-02 15:04:05.000000"))
		}
		mine.WriteString("\n")
	}
	if !errors.Is(err, wal.ErrEnd) || next != s.SkipHeader(after) {
		t.Errorf("it ends at %s, and not at %s: %v", next, after, err)
	}
	tool := exec.Command(filepath.Join(k.b.Version.BinDir, "pg_waldump"), "--path="+r.Dir,
		"--start="+s.Begin(from).String(), r.From.File, r.After.Position.File)
	tool.Env = scratch.Env()
	out, _ := tool.Output() // It ends with an error where the log does.
	var theirs strings.Builder
	form := regexp.MustCompile(`lsn: (\S+), prev \S+, desc: (?:(?:COMMIT|ABORT)\S* (\S+ \S+))?`)
	for _, m := range form.FindAllStringSubmatch(string(out), -1) {
		theirs.WriteString(strings.TrimSpace(m[1]+" "+m[2]) + "\n")
	}
	if mine.String() != theirs.String() || strings.Count(mine.String(), " ") < len(k.l.rows)/2 {
		t.Errorf("%d bytes of records, the tool says %d", mine.Len(), theirs.Len())
	}
}

// refused is a replay that must fail, for this reason.
func (k *kept) refused(t *testing.T, dir string, r engine.ReplayRequest, says string) {
	t.Helper()
	err := k.d.Replay(t.Context(), k.b.Instance(), dir, r)
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("want %q, got %v", says, err)
	}
	t.Log(err)
}

func refusesDamagedLog(t *testing.T, k *kept) {
	r, dir := k.last(t), restored(t, k.b, k.snapshot)
	if err := os.Remove(filepath.Join(r.Dir, r.After.Position.File)); err != nil {
		t.Fatal(err)
	}
	k.refused(t, dir, r, "is missing")
	r = k.last(t)
	if err := os.Truncate(filepath.Join(r.Dir, r.After.Position.File), r.After.Position.Offset-1); err != nil {
		t.Fatal(err)
	}
	k.refused(t, dir, r, "has")
	names := k.segments(t)
	for _, c := range []struct{ name, says string }{
		{names[len(names)-1], "the log is damaged"},
		// Before the marks that are looked at, so that the server itself meets it.
		{names[1], "recovery ended"},
	} {
		r = k.last(t)
		path := filepath.Join(r.Dir, c.name)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// Half way through what was written: the rest of a segment may be empty.
		at := len(bytes.TrimRight(raw, "\x00")) / 2
		if at < wal.PageBytes {
			t.Fatalf("segment %s holds %d bytes", c.name, 2*at)
		}
		for n := range 64 {
			raw[at+n] ^= 0xff
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		k.refused(t, dir, r, c.says)
	}
}

// segments are the names of those from the snapshot on.
func (k *kept) segments(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(k.a.dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() >= k.copied.Position.File {
			names = append(names, e.Name())
		}
	}
	if len(names) < 3 {
		t.Fatalf("the log is of %v", names)
	}
	return names
}

func refusesImpossible(t *testing.T, k *kept) {
	r, dir := k.last(t), restored(t, k.b, k.snapshot)
	r.At = r.After.At.Add(time.Second)
	k.refused(t, dir, r, "proven up to")
	r = k.last(t)
	r.From.File = "00000002" + r.From.File[8:]
	k.refused(t, dir, r, "timeline")
	// No mark before: the snapshot's own end is later than the moment wanted.
	r = k.last(t)
	r.At, r.Before = k.l.rows[0].acked, kurabe.LogMark{}
	k.refused(t, dir, r, "later than")
}

func endsSoon(t *testing.T, k *kept) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := restored(t, k.b, k.snapshot)
	err := k.d.recoverSnapshot(ctx, k.b.Instance(), dir, func(context.Context, *private, *pgx.Conn) error {
		cancel()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, err := proc.Survivors(dir); err != nil || len(left) > 0 {
		t.Errorf("still there: %v, %v", left, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
		t.Errorf("beside the data is %v, %v", entries, err)
	}
}

func checksSound(t *testing.T, k *kept) {
	r := k.last(t)
	dir := restored(t, k.b, k.snapshot)
	if err := os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := k.d.Check(t.Context(), k.b.Instance(), dir, engine.CheckRequest{Marker: k.copied.TakenAt.Add(-time.Minute), Replay: &r})
	if err != nil || len(c.Problems) > 0 || c.Marker.After(k.copied.TakenAt) || c.Marker.Before(k.l.rows[0].sent) {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = k.d.Check(t.Context(), k.b.Instance(), dir, engine.CheckRequest{Marker: k.copied.TakenAt.Add(time.Hour)})
	if err != nil || len(c.Problems) != 1 || !strings.Contains(c.Problems[0], "marker") {
		t.Errorf("an old marker: %+v, %v", c, err)
	}
}

// findsDamage turns a bit in the ledger's only big file, and takes a file away that
// recovery needs.
func findsDamage(t *testing.T, k *kept) {
	rel := k.b.MustQuery(t, "SELECT pg_relation_filepath('ledger')")
	dir := restored(t, k.b, k.snapshot)
	path := filepath.Join(dir, rel)
	raw, err := os.ReadFile(path)
	if err != nil || len(raw) < wal.PageBytes {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	raw[wal.PageBytes-100] ^= 1
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	// Of the stopped snapshot alone: full pages of the log would heal it.
	c, err := k.d.Check(t.Context(), k.b.Instance(), dir, engine.CheckRequest{})
	said := strings.Join(c.Problems, "\n")
	if err != nil || !strings.Contains(said, "verification failed in file") || !strings.Contains(said, "invalid page") {
		t.Errorf("%q, %v", said, err)
	}
	dir = restored(t, k.b, k.snapshot)
	if err := os.Remove(filepath.Join(dir, wal.Dir, k.copied.Position.File)); err != nil {
		t.Fatal(err)
	}
	c, err = k.d.Check(t.Context(), k.b.Instance(), dir, engine.CheckRequest{})
	if err != nil || len(c.Problems) == 0 {
		t.Errorf("without its log: %+v, %v", c, err)
	}
	t.Logf("%q", c.Problems)
}

// losesSlot fills what the server may hold back.
func losesSlot(t *testing.T, k *kept) {
	ctx := t.Context()
	admin, err := k.d.adminConn(ctx, k.b.Instance())
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(context.Background(), admin)
	exec := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	old := k.a.at
	exec("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
	exec("ALTER SYSTEM SET max_wal_size = '32MB'")
	if err := reload(ctx, admin); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		exec("SELECT pg_catalog.pg_logical_emit_message(false, 'kurabe', 'segment')")
		exec("SELECT pg_catalog.pg_switch_wal()")
	}
	exec("CHECKPOINT")
	if err := k.a.step(ctx); !errors.Is(err, engine.ErrLogGone) {
		t.Fatalf("the log goes on: %v", err)
	}
	// A session that is new finds it gone as well, and begins again.
	if err := k.a.step(ctx); !errors.Is(err, engine.ErrLogGone) {
		t.Fatalf("the log goes on: %v", err)
	}
	k.a.at = kurabe.LogPosition{}
	if err := k.a.step(ctx); err != nil || k.a.at.Compare(old) <= 0 {
		t.Fatalf("at %s after %s, %v", k.a.at, old, err)
	}
	exec("ALTER SYSTEM RESET ALL")
	if err := reload(ctx, admin); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := k.d.DropLog(ctx, k.b.Instance()); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := first(ctx, admin, "SELECT count(*) FROM pg_replication_slots"); err != nil || got != "0" {
		t.Errorf("%s slots, %v", got, err)
	}
	_ = k.a.log.Close()
	k.a.log, k.a.at = nil, kurabe.LogPosition{}
}

// replaysStopped has a snapshot of the stopped instance, whose folder holds segments
// for later use, and a log that goes on after it.
func replaysStopped(t *testing.T, k *kept) {
	b := k.b
	begin := len(k.a.marks)
	if err := k.a.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Want.Goal = kurabe.GoalStopped
	b.Satisfy(t)
	snapshot := filepath.Join(t.TempDir(), "snapshot")
	copied, err := k.d.CopyStopped(t.Context(), b.Instance(), engine.CopyRequest{Dir: snapshot})
	if err != nil {
		t.Fatal(err)
	}
	b.Want.Goal, b.Want.Boot = kurabe.GoalRunning, b.Want.Boot+1
	b.Satisfy(t)
	b.MustQuery(t, "CREATE TABLE late AS SELECT 1 AS n")
	if err := k.a.step(t.Context()); err != nil {
		// The session of before has ended with the server.
		if err := k.a.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	k.a.marks = slices.Delete(k.a.marks, 0, begin)
	_, newest := k.a.newest()
	dir := restored(t, b, snapshot)
	r := k.a.request(t, copied.Position, newest.At)
	if err := k.d.Replay(t.Context(), b.Instance(), dir, r); err != nil {
		t.Fatal(err)
	}
	rows := map[int]bool{}
	if err := k.d.recoverSnapshot(t.Context(), b.Instance(), dir, readLedger(rows)); err != nil {
		t.Fatal(err)
	}
	for _, w := range k.l.rows {
		if !w.acked.IsZero() && !rows[w.n] {
			t.Errorf("row %d is missing", w.n)
		}
	}
	for _, left := range []string{filepath.Join(slotDir, logSlot), signalFile, "backup_label.old"} {
		if _, err := os.Lstat(filepath.Join(dir, left)); err == nil {
			t.Errorf("%s is in the restored folder", left)
		}
	}
}
