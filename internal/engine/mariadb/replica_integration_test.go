//go:build integration

package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/engine/mariadb/sqltext"
)

// Times of these tests: patience only ends a failure, unanswered is how long a commit must
// be seen to wait, callTime what a follower waits for its source to hear that it has ceased
// to receive (rpl_semi_sync_slave_kill_conn_timeout).
const (
	patience   = 30 * time.Second
	unanswered = time.Second
	callTime   = time.Second
)

// pair is a writer with a log and its follower, as the lifecycle makes them.
type pair struct{ writer, follower *enginetest.Bed }

// newPair makes a single server a writer, without a restart, and clones it.
func newPair(t *testing.T) pair {
	t.Helper()
	s := setup(t, enginetest.Reachable(t))
	return joinPair(t, pair{enginetest.NewBed(t, s), enginetest.NewBed(t, s)})
}

func joinPair(t *testing.T, p pair) pair {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			p.tell(t)
		}
	})
	p.writer.Want.Log = true
	p.writer.Satisfy(t)
	p.writer.MustQuery(t, "CREATE TABLE t (id INT PRIMARY KEY, word TEXT)")
	p.writer.MustQuery(t, "INSERT INTO t VALUES (1, 'before the copy')")
	id, at := p.writer.Want.Instance, p.follower.Want.Address
	before := p.writer.Process(t).PID
	p.write(t, nil)
	if now := p.writer.Process(t).PID; now != before {
		t.Fatalf("the server restarted to become a writer: %d, then %d", before, now)
	}
	p.follower.Want = p.writer.Want
	p.follower.Want.Instance, p.follower.Want.ListensAt = id.Member(2), at
	p.follower.Want.Role = &kurabe.Role{Epoch: 1, Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: id, Address: p.writer.Want.Address, Port: p.writer.Want.Port}}
	p.follower.Satisfy(t)
	p.awaitFollowing(t)
	return p
}

// tell shows what both have said last.
func (p pair) tell(t *testing.T) {
	for _, b := range []*enginetest.Bed{p.writer, p.follower} {
		text, err := os.ReadFile(filepath.Join(b.Home().LogDir(), conf.ErrorLog))
		t.Logf("%s: %v\n%s", b.Want.Instance, err, lastOf(string(text), 60))
		_ = guard.With(context.Background(), b.Instance(), func(a *guard.Session) error {
			s, err := replica.AskSlave(context.Background(), a)
			t.Logf("%s follows: %+v, %v", b.Want.Instance, s, err)
			return nil
		})
	}
}

func lastOf(text string, most int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// write orders the writer to wait for these.
func (p pair) write(t *testing.T, wait []kurabe.InstanceID) {
	t.Helper()
	p.writer.Want.Generation++
	p.writer.Want.Role = &kurabe.Role{Epoch: 1, Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{p.writer.Want.Instance.Member(2)}, WaitFor: wait}
	p.writer.Satisfy(t)
}

func (p pair) waitForFollower(t *testing.T) {
	t.Helper()
	p.write(t, []kurabe.InstanceID{p.follower.Want.Instance})
}

// replicator is the driver behind a bed.
func replicator(b *enginetest.Bed) engine.Replicator { return b.Driver }

// await looks at a server until what it says is as it should be.
func await(t *testing.T, b *enginetest.Bed, what string, met func(engine.RoleView) bool) engine.RoleView {
	t.Helper()
	return awaitView(t, replicator(b), b.Instance(), what, met)
}

func awaitView(t *testing.T, r engine.Replicator, i engine.Instance, what string, met func(engine.RoleView) bool) engine.RoleView {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w, err := r.OpenWatch(ctx, i)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for {
		v, err := w.Look(ctx)
		if err != nil {
			t.Fatalf("wait for %s: %v", what, err)
		}
		if met(v) {
			return v
		}
		if err := guard.Pause(ctx, 20*time.Millisecond); err != nil {
			t.Fatalf("wait for %s: %+v", what, v)
		}
	}
}

func (p pair) awaitFollowing(t *testing.T) {
	t.Helper()
	await(t, p.follower, "a follower that follows", func(v engine.RoleView) bool { return v.Following && !v.Writing })
	// A watch lives on while followers come and go.
	before, role := p.writer.Instance(), *p.writer.Instance().Role
	role.Followers = nil
	before.Role = &role
	awaitView(t, replicator(p.writer), before, "a writer that sees it", func(v engine.RoleView) bool {
		f := v.Followers[p.follower.Want.Instance]
		return v.Writing && f.Streaming && f.Flushed >= v.Inserted && f.HeardAgo < time.Second
	})
}

// awaitRow waits until a follower has applied a row, which clients cannot see there.
func awaitRow(t *testing.T, b *enginetest.Bed, id int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		rows := looking(t, b, fmt.Sprintf("SELECT word FROM shop.t WHERE id = %d", id))
		if len(rows) == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("row %d does not arrive", id)
		}
		if err := guard.Pause(t.Context(), 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// insertion commits in the background, over a session that others can name.
type insertion struct {
	conn *sql.Conn
	id   string
	done chan error
}

func insert(t *testing.T, b *enginetest.Bed, statement string) *insertion {
	t.Helper()
	db, err := open(b.Login())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := &insertion{conn: conn, done: make(chan error, 1)}
	if n.id, err = first(t.Context(), conn, "SELECT CONNECTION_ID()"); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := conn.ExecContext(context.Background(), statement)
		n.done <- err
	}()
	return n
}

func (n *insertion) waits(t *testing.T, what string) {
	t.Helper()
	select {
	case err := <-n.done:
		t.Fatalf("%s: the commit ended: %v", what, err)
	case <-time.After(unanswered):
	}
}

func (n *insertion) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-n.done:
		return err
	case <-time.After(patience):
		t.Fatal("the commit does not end")
		return nil
	}
}

// stopReceiving has the follower answer nobody, and receive nothing.
func (p pair) stopReceiving(t *testing.T) { inside(t, p.follower, "STOP SLAVE IO_THREAD") }

// promote makes the follower the writer at its own address: there is no gateway here.
func (p pair) promote(t *testing.T) {
	t.Helper()
	w := &p.follower.Want
	w.Generation++
	w.Address, w.ListensAt = w.Listens(), ""
	w.Role = &kurabe.Role{Epoch: 2, Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{p.writer.Want.Instance}}
	p.follower.Satisfy(t)
}

// rejoin makes the former writer a follower.
func (p pair) rejoin(t *testing.T) {
	t.Helper()
	w := &p.writer.Want
	w.Generation++
	w.Role = &kurabe.Role{Epoch: 2, Duty: kurabe.DutyFollow,
		Source: &kurabe.Source{ID: p.follower.Want.Instance, Address: p.follower.Want.Address, Port: p.follower.Want.Port}}
	p.writer.Satisfy(t)
}

// checkLogs: what is kept of one member's log is never taken for a part of another's.
func (p pair) checkLogs(t *testing.T) {
	t.Helper()
	of, err := binlog.List(p.writer.Home().DataDir())
	also, otherErr := binlog.List(p.follower.Home().DataDir())
	if err := errors.Join(err, otherErr); err != nil || len(of) == 0 || len(also) == 0 {
		t.Fatalf("%v, %v, %v", of, also, err)
	}
	if slices.ContainsFunc(of, func(name string) bool { return slices.Contains(also, name) }) || binlog.FileNumber(also[0]) != firstLogNumber(p.follower.Instance()) {
		t.Errorf("the logs of the writer are %v, those of its follower %v", of, also)
	}
}

func TestGroupFollows(t *testing.T) {
	p := newPair(t)
	p.checkLogs(t)
	for _, statement := range []string{
		"INSERT INTO t VALUES (2, 'after the copy')", "OPTIMIZE TABLE t", "CREATE USER guest IDENTIFIED BY 'First-password-2'",
		"CREATE EVENT on_event ON SCHEDULE EVERY 1 DAY DO SELECT 1", "CREATE EVENT off_event ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
		"CREATE PROCEDURE p() SELECT 1", "TRUNCATE TABLE t", "INSERT INTO t VALUES (3, 'last')",
	} {
		p.writer.MustQuery(t, statement)
	}
	if err := mark(t.Context(), p.writer.Instance(), time.Now()); err != nil {
		t.Fatal(err)
	}
	p.awaitFollowing(t)
	awaitRow(t, p.follower, 3)
	rows := inside(t, p.follower, "SELECT name, status FROM mysql.event ORDER BY name")
	if got := fmt.Sprint(rows); got != "[[off_event DISABLED] [on_event ENABLED]]" {
		t.Errorf("events: %s", got)
	}
	login := p.follower.Login()
	login.Address = p.follower.Want.ListensAt
	if got, err := query(t.Context(), login, "SELECT 1"); err == nil {
		t.Errorf("a client came in at the follower: %q", got)
	}
	// A start keeps what it has, and goes on.
	p.follower.Want.Boot++
	p.writer.Want.Boot = p.follower.Want.Boot - 1
	p.follower.Satisfy(t)
	p.writer.MustQuery(t, "INSERT INTO t VALUES (4, 'after its restart')")
	p.awaitFollowing(t)
	awaitRow(t, p.follower, 4)
}

func TestGroupCommitWaits(t *testing.T) {
	enginetest.OnceIsEnough(t)
	p := newPair(t)
	p.waitForFollower(t)
	p.writer.MustQuery(t, "INSERT INTO t VALUES (10, 'answered')")
	thaw := freeze(t, p.follower)
	a := insert(t, p.writer, "INSERT INTO t VALUES (11, 'a')")
	a.waits(t, "while the follower stands still")
	b := insert(t, p.writer, "SET STATEMENT max_statement_time = 0.2 FOR INSERT INTO t VALUES (12, 'b')")
	b.waits(t, "beyond the time of its statement")
	p.writer.MustQuery(t, "KILL QUERY "+a.id)
	a.waits(t, "although it was killed")
	b.waits(t, "although another one was killed")
	// What ends the waiting gets through, and whoever looks sees who is silent.
	v := await(t, p.writer, "a silent follower", func(v engine.RoleView) bool {
		return v.Followers[p.follower.Want.Instance].HeardAgo > 1500*time.Millisecond
	})
	if len(v.WaitsFor) != 1 || v.WaitsFor[0] != p.follower.Want.Instance {
		t.Errorf("it waits for %v", v.WaitsFor)
	}
	if err := mark(t.Context(), p.writer.Instance(), time.Now()); !errors.Is(err, engine.ErrNotReady) {
		t.Errorf("the service's own statement was begun: %v", err)
	}
	p.write(t, nil)
	if err := errors.Join(a.end(t), b.end(t)); err != nil {
		t.Error(err)
	}
	thaw()
	p.awaitFollowing(t)
	awaitRow(t, p.follower, 12)
	p.waitForFollower(t)
	p.writer.MustQuery(t, "INSERT INTO t VALUES (13, 'answered again')")
}

// A writer that hangs costs the promotion no time.
func TestGroupPromotes(t *testing.T) {
	p := newPair(t)
	p.waitForFollower(t)
	p.writer.MustQuery(t, "INSERT INTO t VALUES (20, 'answered')")
	if err := p.writer.Process(t).Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p.stopReceiving(t)
	if took := time.Since(began); took >= callTime {
		t.Errorf("it took %v to leave a source that hangs", took)
	}
	p.writer.Crash(t)
	p.promote(t)
	if got := p.follower.MustQuery(t, "SELECT GROUP_CONCAT(id ORDER BY id) FROM t"); got != "1,20" {
		t.Errorf("rows %s", got)
	}
	p.follower.MustQuery(t, "INSERT INTO t VALUES (21, 'of the new writer')")
	p.rejoin(t)
	awaitRow(t, p.writer, 21)
}

func TestGroupRejoins(t *testing.T) {
	for name, c := range map[string]struct {
		tail  string
		count string
	}{
		"a row that nobody answered for is taken back": {"INSERT INTO t VALUES (41, 'alone')", "SELECT COUNT(*) FROM shop.t WHERE id = 41"},
		"a definition needs a clone":                   {"CREATE TABLE alone (id INT)", "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = 'alone'"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			p.waitForFollower(t)
			p.writer.MustQuery(t, "INSERT INTO t VALUES (40, 'answered')")
			p.stopReceiving(t)
			tail := insert(t, p.writer, c.tail)
			tail.waits(t, "without a follower")
			p.writer.Crash(t)
			if err := tail.end(t); err == nil {
				t.Error("it was acknowledged")
			}
			p.promote(t)
			p.follower.MustQuery(t, "INSERT INTO t VALUES (42, 'of the new writer')")
			p.rejoin(t)
			o, err := p.writer.Lifecycle.Observe(t.Context(), p.writer.Want)
			if want := (kurabe.DiscardedCommits{Seq: 1, Transactions: 1}); err != nil || o.Applied.GivenUp != want {
				t.Errorf("%+v is given up, %v; want %+v", o.Applied.GivenUp, err, want)
			}
			awaitRow(t, p.writer, 42)
			if got := looking(t, p.writer, c.count)[0][0]; got != "0" {
				t.Errorf("what nobody answered for is there %s times", got)
			}
		})
	}
}

// A stop of a writer acknowledges nothing that nobody answered for, and comes to an end.
func TestGroupStopAcknowledgesNothing(t *testing.T) {
	enginetest.OnceIsEnough(t)
	p := newPair(t)
	p.waitForFollower(t)
	p.stopReceiving(t)
	var alone []*insertion
	for n := range 5 {
		alone = append(alone, insert(t, p.writer, fmt.Sprintf("INSERT INTO t VALUES (%d, 'alone')", 50+n)))
	}
	alone[0].waits(t, "without a follower")
	process := p.writer.Process(t)
	if err := process.Signal(syscall.Signal(p.writer.Driver.StopSignal())); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := process.Wait(ctx); err != nil {
		t.Fatalf("it does not stop: %v", err)
	}
	for _, n := range alone {
		if err := n.end(t); err == nil {
			t.Error("a commit was acknowledged by the stop")
		}
	}
}

// A follower whose source has thrown away what it needs is cloned, by the steps that there
// are for a writer which cannot rejoin.
func TestGroupClonesWhatCannotFollow(t *testing.T) {
	p := newPair(t)
	p.follower.Crash(t)
	p.writer.MustQuery(t, "INSERT INTO t VALUES (300, 'missed')")
	inside(t, p.writer, "FLUSH BINARY LOGS")
	names, err := binlog.List(p.writer.Home().DataDir())
	if err != nil {
		t.Fatal(err)
	}
	// The server keeps a log that its recovery may need until it has noted that it does not.
	for deadline := time.Now().Add(patience); ; {
		inside(t, p.writer, "PURGE BINARY LOGS TO "+sqltext.Literal(names[len(names)-1]))
		if left, err := binlog.List(p.writer.Home().DataDir()); err != nil || len(left) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the log is not purged")
		}
	}
	p.follower.Satisfy(t)
	w, err := replicator(p.follower).OpenWatch(t.Context(), p.follower.Instance())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for deadline := time.Now().Add(patience); replicator(p.follower).IsFollower(p.follower.Home()); {
		v, err := w.Look(t.Context())
		if err != nil || v.Following || time.Now().After(deadline) {
			t.Fatalf("it is not given up: %+v, %v", v, err)
		}
	}
	p.follower.Satisfy(t)
	p.awaitFollowing(t)
	awaitRow(t, p.follower, 300)
}

// A writer that died while commits waited keeps clients out until it is released, and lets
// its follower in.
func TestGroupHolds(t *testing.T) {
	enginetest.OnceIsEnough(t)
	p := newPair(t)
	p.waitForFollower(t)
	p.writer.Crash(t)
	p.writer.Want.Generation++
	p.writer.Want.Role.StartSeq = 1
	p.writer.Satisfy(t)
	if got, err := query(t.Context(), p.writer.Login(), "SELECT 1"); err == nil {
		t.Errorf("a client came in: %q", got)
	}
	v := await(t, p.writer, "its follower", func(v engine.RoleView) bool {
		f := v.Followers[p.follower.Want.Instance]
		return f.Streaming && f.Flushed >= v.Inserted
	})
	if !v.Writing || len(v.WaitsFor) != 1 {
		t.Errorf("%+v", v)
	}
	p.write(t, nil)
	p.writer.MustQuery(t, "INSERT INTO t VALUES (400, 'released')")
}

// Whoever has the right to replicate may have a server that answers; a commit waits for
// the follower all the same.
func TestGroupCountsMembersOnly(t *testing.T) {
	enginetest.OnceIsEnough(t)
	p := newPair(t)
	p.waitForFollower(t)
	p.stopReceiving(t)
	conn := foreignReplica(t, p.writer)
	defer conn.Close()
	alone := insert(t, p.writer, "INSERT INTO t VALUES (500, 'alone')")
	alone.waits(t, "with a replica of a user's")
	rows := inside(t, p.writer, "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_clients'")
	if rows[0][1] != "0" {
		t.Errorf("%s answer for commits", rows[0][1])
	}
	p.write(t, nil)
	if err := alone.end(t); err != nil {
		t.Error(err)
	}
}
