//go:build integration

package mariadb

import (
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
)

// trio is a writer whose commits can wait for either of two followers.
type trio struct {
	pair
	third *enginetest.Bed
}

func newTrio(t *testing.T) trio {
	t.Helper()
	s := setup(t, enginetest.Reachable(t))
	g := trio{joinPair(t, pair{enginetest.NewBed(t, s), enginetest.NewBed(t, s)}), enginetest.NewBed(t, s)}
	g.order(t, g.writer, writes3(g, nil))
	at := g.third.Want.Address
	g.third.Want = g.follower.Want
	g.third.Want.Instance, g.third.Want.ListensAt = g.writer.Want.Instance.Member(3), at
	g.third.Satisfy(t)
	(pair{g.writer, g.third}).awaitFollowing(t)
	return g
}

// writes3 is the role of the writer of all three.
func writes3(g trio, wait []kurabe.InstanceID) kurabe.Role {
	id := g.writer.Want.Instance
	return kurabe.Role{Epoch: 1, Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{id.Member(2), id.Member(3)}, WaitFor: wait}
}

func (g trio) order(t *testing.T, b *enginetest.Bed, role kurabe.Role) {
	t.Helper()
	b.Want.Generation++
	b.Want.Role = &role
	b.Satisfy(t)
}

// wait has commits wait for these, and demands that the server says so.
func (g trio) wait(t *testing.T, beds ...*enginetest.Bed) {
	t.Helper()
	var ids []kurabe.InstanceID
	for _, b := range beds {
		ids = append(ids, b.Want.Instance)
	}
	g.order(t, g.writer, writes3(g, ids))
	await(t, g.writer, "what it waits for", func(v engine.RoleView) bool { return slices.Equal(v.WaitsFor, ids) })
}

// freeze stops a server. The kernel stops the threads of a process one by one, and on a busy
// machine late: until then one of them may still answer.
func freeze(t *testing.T, b *enginetest.Bed) (thaw func()) {
	t.Helper()
	process := b.Process(t)
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	thaw = func() { _ = process.Signal(syscall.SIGCONT) }
	t.Cleanup(thaw)
	for began := time.Now(); !stopped(t, process.PID); time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("the server does not stop")
		}
	}
	return thaw
}

// stopped says whether all threads of a process are stopped.
func stopped(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("threads of %d: %d, %v", pid, len(threads), err)
	}
	for _, name := range threads {
		stat, err := os.ReadFile(name)
		if err != nil {
			return false // it ended
		}
		if _, rest, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(rest, "T") {
			return false
		}
	}
	return true
}

// hold orders a follower to follow nobody, and returns how far it then says that it is.
func (g trio) hold(t *testing.T, b *enginetest.Bed, epoch kurabe.Epoch) int64 {
	t.Helper()
	g.order(t, b, kurabe.Role{Epoch: epoch, Duty: kurabe.DutyDetached, ServesReads: b.Want.Role.ServesReads})
	o, err := b.Lifecycle.Observe(t.Context(), b.Want)
	if err != nil || o.Applied.HeldEpoch != epoch {
		t.Fatalf("it does not hold: %+v, %v", o.Applied, err)
	}
	return o.Applied.HeldAt
}

// A commit that can wait for either of two followers ends with the answer of one, whichever that
// is, and with none of one that is not to be waited for any more.
func TestGroupWaitsForEither(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newTrio(t)
	g.wait(t, g.follower, g.third)
	for n, hangs := range []*enginetest.Bed{g.follower, g.third} {
		thaw := freeze(t, hangs)
		if err := insert(t, g.writer, "INSERT INTO t VALUES ("+[]string{"10", "11"}[n]+", 'by the other')").end(t); err != nil {
			t.Errorf("with one of two: %v", err)
		}
		thaw()
		awaitRow(t, hangs, 10+n)
	}
	g.awaitFollowing(t)
	g.wait(t, g.follower)
	thaw := freeze(t, g.follower)
	// The log goes on in another file behind this one, while it waits.
	inside(t, g.writer, "SET GLOBAL max_binlog_size = 4096")
	alone := insert(t, g.writer, "INSERT INTO t VALUES (12, REPEAT('by the third', 1000))")
	awaitRow(t, g.third, 12)
	alone.waits(t, "by the answer of one that does not count")

	// One that comes says by that what it has; it counts no more than its answers.
	inside(t, g.third, "STOP SLAVE IO_THREAD")
	inside(t, g.third, "START SLAVE IO_THREAD")
	await(t, g.third, "a follower that has come again", func(v engine.RoleView) bool { return v.Following })
	alone.waits(t, "by the coming of one that does not count")
	g.wait(t, g.follower, g.third)
	if err := alone.end(t); err != nil {
		t.Errorf("the commit that may go on by the other's answer, which was there already: %v", err)
	}
	thaw()
	awaitRow(t, g.follower, 12)
}

// A follower that holds gets nothing any more, knows how far it is, also when its server was
// killed meanwhile, and goes on afterwards, or takes over.
func TestGroupFollowsNobody(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newTrio(t)
	g.writer.MustQuery(t, "INSERT INTO t VALUES (20, 'before')")
	awaitRow(t, g.follower, 20)
	follow := *g.follower.Want.Role
	first := g.hold(t, g.follower, 2)
	g.writer.MustQuery(t, "INSERT INTO t VALUES (21, 'while it holds')")
	awaitRow(t, g.third, 21)
	v := await(t, g.follower, "one that follows nobody", func(v engine.RoleView) bool { return !v.Following })
	if v.Position != first {
		t.Errorf("it has %+v, and was at %d", v, first)
	}
	g.follower.Crash(t)
	if again := g.hold(t, g.follower, 3); again != first {
		t.Errorf("started again it is at %d, and was at %d", again, first)
	}
	follow.Epoch = 3
	g.order(t, g.follower, follow)
	awaitRow(t, g.follower, 21)
	if second := g.hold(t, g.follower, 4); second <= first {
		t.Errorf("it is at %d with more than it had at %d", second, first)
	}
	g.writer.Crash(t)
	g.promote(t)
	if got := g.follower.MustQuery(t, "SELECT GROUP_CONCAT(id ORDER BY id) FROM t"); got != "1,20,21" {
		t.Errorf("rows %s", got)
	}
}

// A server that takes over does not wait for clients who read: their locks may hold the log up,
// which everybody else would wait for.
func TestGroupTakesOverFromReaders(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newTrio(t)
	follow := *g.follower.Want.Role
	follow.ServesReads = true
	g.order(t, g.follower, follow)
	g.writer.MustQuery(t, "INSERT INTO t VALUES (30, 'before')")
	awaitRow(t, g.follower, 30)
	login := g.follower.Login()
	login.Address = g.follower.Want.ListensAt
	db, err := open(login)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"SET SESSION lock_wait_timeout = 3600", "START TRANSACTION", "SELECT * FROM t"} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	g.writer.MustQuery(t, "ALTER TABLE t ADD COLUMN more INT")
	g.writer.MustQuery(t, "INSERT INTO t VALUES (31, 'behind the definition', 1)")
	await(t, g.follower, "log that is held up", func(v engine.RoleView) bool { return v.Position == v.Applied+2 })
	at := g.hold(t, g.follower, 2) // which waits for no client
	g.writer.Crash(t)
	began := time.Now()
	g.promote(t)
	t.Logf("it took over %v after it was told to, and was at %d", time.Since(began).Round(time.Millisecond), at)
	if got := g.follower.MustQuery(t, "SELECT COUNT(*) FROM t WHERE more = 1"); got != "1" {
		t.Errorf("%s rows", got)
	}
	if err := conn.PingContext(t.Context()); err == nil {
		t.Error("the session that held the log up goes on")
	}
}
