//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/harness"
)

// Words of KURABE-EVENT-0036, KURABE-EVENT-0037 and RDS-EVENT-0051.
const (
	endedEarly = "ended their wait for the standby before it had answered"
	byNow      = "Another server has all commits by now"
	activated  = "activation completed"
)

// earlyName is by what the sessions are found whose commits wait.
const earlyName = "early"

// earlyBed is a pair whose commits wait for the standby as long as it takes, and nobody else's
// commits but the test's.
type earlyBed struct {
	*blockBed
	rows  int // the number of the newest row
	waits kurabe.WaitCount
}

// TestWaitsThatEnd has commits end their wait for the standby, or be about to, in every way
// that there is. None of them is presented as replicated: other sessions see it only where its
// client was told that it may be at one server alone, or was not answered, and it is counted;
// or where another server has it.
func TestWaitsThatEnd(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := &earlyBed{blockBed: newBlockBed(t, s, engine)}
		b.pulse.Stop() // its commits would wait before those of the test
		b.Query(t, "CREATE TABLE early (n integer)")
		if engine == "postgres" {
			inTurn(t, "a statement is cancelled", b.cancelled)
			inTurn(t, "a session is terminated", b.terminated)
			inTurn(t, "a statement is cancelled and the writer dies", b.cancelledAndLost)
		} else {
			inTurn(t, "a statement is killed", func(t *testing.T) { b.killed(t, "KILL QUERY ", true) })
			inTurn(t, "a session is killed", func(t *testing.T) { b.killed(t, "KILL ", false) })
		}
		inTurn(t, "the client is gone", b.clientGone)
		inTurn(t, "the writer dies", func(t *testing.T) {
			b.writerDies(t, func(t *testing.T, writer harness.Member, _ string) { must(t, harness.KillServers(writer)) })
		})
		if engine == "postgres" {
			inTurn(t, "the session dies", func(t *testing.T) {
				b.writerDies(t, func(t *testing.T, _ harness.Member, session string) {
					pid, err := strconv.Atoi(session)
					must(t, errors.Join(err, syscall.Kill(pid, syscall.SIGKILL)))
				})
			})
			inTurn(t, "the writer is started again", b.startedAgain)
		}
		b.pulse.Verify(t)
		b.gone(t)
	})
}

// early is a commit that waits.
type early struct {
	row     int
	session string          // how the server calls it
	boss    harness.Session // another one, from before
	ended   chan error
	leave   func() // the client goes without a word
}

// commit has one wait for the standby, which hangs, and demands that nobody sees its row.
func (b *earlyBed) commit(t *testing.T) (c *early, writer, standby harness.Member, from time.Time) {
	t.Helper()
	b.WaitWhole(t)
	writer, standby = b.Pair(t)
	b.rows++
	c = &early{row: b.rows, boss: b.Open(t), ended: make(chan error, 1)}
	from = time.Now()
	must(t, standby.Freeze())
	b.WaitEventsFrom(t, from, nowWaits)
	ctx, leave := context.WithCancel(t.Context())
	c.leave = leave
	t.Cleanup(leave)
	login := b.Login(t)
	go func() { c.ended <- insertEarly(ctx, login, c.row) }()
	harness.Wait(t, gapBound, "the commit waits", func() string {
		waiting, err := c.boss.Rows(t.Context(), whoWaits[b.Engine])
		if err != nil || len(waiting) != 1 {
			return fmt.Sprint(waiting, err)
		}
		c.session = waiting[0]
		return ""
	})
	b.seen(t, c, false)
	return c, writer, standby, from
}

// whoWaits are the sessions of the test's whose commits wait.
var whoWaits = map[string]string{
	"postgres": "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = '" + earlyName + "'",
	"mariadb":  "SELECT ID FROM information_schema.PROCESSLIST WHERE STATE LIKE '%semi-sync%' AND INFO LIKE 'INSERT INTO early%'",
}

// insertEarly inserts a row: errWarned when the client was told that it may be nowhere else.
func insertEarly(ctx context.Context, l harness.Login, n int) error {
	statement := fmt.Sprintf("INSERT INTO early VALUES (%d)", n)
	if l.Engine == "postgres" {
		out, err := psql(ctx, l, earlyName, statement)
		if err == nil && strings.Contains(out, notReplicated) {
			return errWarned
		}
		return err
	}
	s, err := harness.Open(ctx, l)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Exec(ctx, statement)
}

var errWarned = errors.New("the row may be nowhere else")

// seen demands that another session sees the row of a commit, or does not.
func (b *earlyBed) seen(t *testing.T, c *early, want bool) {
	t.Helper()
	rows, err := c.boss.Rows(t.Context(), "SELECT n FROM early")
	if err != nil || slices.Contains(rows, strconv.Itoa(c.row)) != want {
		t.Errorf("rows %v, %v; row %d is to be seen: %v", rows, err, c.row, want)
	}
}

// still demands that a commit waits, and that nobody sees its row.
func (b *earlyBed) still(t *testing.T, c *early) {
	t.Helper()
	began := time.Now()
	harness.Wait(t, 2*blockTime, "time goes by", func() string {
		select {
		case err := <-c.ended:
			t.Fatalf("the commit has come back: %v", err)
		default:
		}
		if time.Since(began) < time.Second {
			return "not long enough"
		}
		return ""
	})
	b.seen(t, c, false)
}

// end is how the client was answered.
func (c *early) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-c.ended:
		return err
	case <-time.After(gapBound):
		t.Fatal("the commit does not come back")
		return nil
	}
}

// goesOn has the standby go on, after which every row is at both servers.
func (b *earlyBed) goesOn(t *testing.T, standby harness.Member) {
	t.Helper()
	must(t, standby.Thaw())
	b.WaitWhole(t)
}

// counts demands that users are told of what has ended its wait by now.
func (b *earlyBed) counts(t *testing.T) {
	t.Helper()
	for by, want := range map[string]int64{"cancel": b.waits.Cancelled, "session": b.waits.Ended} {
		waitMetric(t, b.Service, fmt.Sprintf(`kurabe_ended_waits_total{instance="%s",by="%s"}`, b.Name, by), strconv.FormatInt(want, 10),
			func(n float64) bool { return n == float64(want) })
	}
}

// cancelled: the client is warned, others see the row, and users are told that it is at one
// server, and when it is no more.
func (b *earlyBed) cancelled(t *testing.T) {
	b.counts(t)
	c, writer, standby, from := b.commit(t)
	must(t, c.boss.Exec(t.Context(), "SELECT pg_cancel_backend("+c.session+")"))
	if err := c.end(t); !errors.Is(err, errWarned) {
		t.Errorf("the client is answered with %v", err)
	}
	b.seen(t, c, true)
	b.WaitEventsFrom(t, from, endedEarly, "the statements of 1 were cancelled", "No other server is known to have them")
	b.waits.Cancelled++
	b.waitSaid(t, "early: 1 cancelled, 0 by the end of the session; "+writer.ID+" alone has the newest", "explain", b.Name)
	b.counts(t)
	if slices.ContainsFunc(b.EventsFrom(t, from), func(m string) bool { return strings.Contains(m, byNow) }) {
		t.Error("another server is said to have it")
	}
	b.goesOn(t, standby)
	b.WaitEventsFrom(t, from, byNow)
	b.counts(t)
}

// terminated: the client has no answer. It is counted all the same.
func (b *earlyBed) terminated(t *testing.T) {
	c, _, standby, _ := b.commit(t)
	must(t, c.boss.Exec(t.Context(), "SELECT pg_terminate_backend("+c.session+")"))
	if err := c.end(t); err == nil || errors.Is(err, errWarned) {
		t.Errorf("the client is answered with %v", err)
	}
	b.waits.Ended++
	b.counts(t)
	b.goesOn(t, standby)
}

// cancelledAndLost: what others have seen goes with the writer, which hangs until the standby
// has taken over without it, and users are told so.
func (b *earlyBed) cancelledAndLost(t *testing.T) {
	c, writer, standby, from := b.commit(t)
	must(t, c.boss.Exec(t.Context(), "SELECT pg_cancel_backend("+c.session+")"))
	if err := c.end(t); !errors.Is(err, errWarned) {
		t.Errorf("the client is answered with %v", err)
	}
	b.seen(t, c, true)
	b.waits.Cancelled++
	b.counts(t) // what the server's logger has in its hands goes with it
	must(t, writer.Freeze())
	must(t, standby.EndReceiver())
	must(t, standby.Thaw())
	b.WaitEventsFrom(t, from, failoverEvents...)
	b.goesOn(t, writer)
	b.WaitEventsFrom(t, from, "that its standby never had")
	if got := b.Query(t, c.count()); got != "0" {
		t.Errorf("row %d is there %s times", c.row, got)
	}
	b.counts(t)
}

// killed: with MariaDB nothing ends the wait. Who loses the connection has no answer.
func (b *earlyBed) killed(t *testing.T, kill string, keeps bool) {
	c, _, standby, _ := b.commit(t)
	must(t, c.boss.Exec(t.Context(), kill+c.session))
	if !keeps {
		if err := c.end(t); err == nil {
			t.Error("the client of a session that is killed has an answer")
		}
	}
	b.still(t, c)
	b.goesOn(t, standby)
	if keeps {
		_ = c.end(t) // the statement has done what it was killed for, and may say either
	}
	b.there(t, c)
	b.counts(t)
}

// clientGone: the commit goes on waiting.
func (b *earlyBed) clientGone(t *testing.T) {
	c, _, standby, _ := b.commit(t)
	c.leave()
	if err := c.end(t); err == nil || errors.Is(err, errWarned) {
		t.Errorf("the client is answered with %v", err)
	}
	b.still(t, c)
	b.goesOn(t, standby)
	b.there(t, c)
	b.counts(t)
}

// there waits until others see the row of a commit that was not answered.
func (b *earlyBed) there(t *testing.T, c *early) {
	t.Helper()
	harness.Wait(t, gapBound, "the row is there", func() string {
		if n := b.Query(t, c.count()); n != "1" {
			return n + " times"
		}
		return ""
	})
}

// count is how often the row of a commit is there.
func (c *early) count() string { return fmt.Sprintf("SELECT count(*) FROM early WHERE n = %d", c.row) }

// writerDies: the client has no answer, and the row is with whoever writes next or nowhere, for
// good.
func (b *earlyBed) writerDies(t *testing.T, strike func(t *testing.T, writer harness.Member, session string)) {
	c, writer, standby, from := b.commit(t)
	strike(t, writer, c.session)
	if err := c.end(t); err == nil || errors.Is(err, errWarned) {
		t.Errorf("the client is answered with %v", err)
	}
	must(t, standby.Thaw())
	harness.Wait(t, gapBound, "somebody writes again", func() string {
		told := b.EventsFrom(t, from)
		if slices.ContainsFunc(told, func(m string) bool { return strings.Contains(m, activated) || strings.Contains(m, failoverEvents[1]) }) {
			return ""
		}
		return strings.Join(told, "\n")
	})
	b.WaitWhole(t)
	first, asked := b.Query(t, c.count()), time.Now()
	must(t, b.AskFailover(t))
	b.WaitEventsFrom(t, asked, failoverEvents...)
	b.WaitWhole(t)
	if then := b.Query(t, c.count()); first != then {
		t.Errorf("row %d is there %s times, and after a failover %s times", c.row, first, then)
	}
	b.counts(t)
}

// startedAgain: the standby stays away, so the same server is started again. Clients see the row,
// which nobody was answered for; from then on nobody takes that server's place who lacks it.
func (b *earlyBed) startedAgain(t *testing.T) {
	c, writer, standby, from := b.commit(t)
	b.waitSaid(t, "it does not answer", "explain", b.Name) // or the standby would be trusted to take over
	must(t, harness.KillServers(writer))
	if err := c.end(t); err == nil || errors.Is(err, errWarned) {
		t.Errorf("the client is answered with %v", err)
	}
	b.WaitEventsFrom(t, from, activated)
	b.there(t, c)
	b.waitSaid(t, "no standby has every commit", "explain", b.Name)
	if err := b.AskFailover(t); err == nil {
		t.Error("a failover to a server that lacks it is begun")
	}
	b.goesOn(t, standby)
	b.there(t, c)
}
