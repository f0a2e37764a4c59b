//go:build integration

package load

import (
	"context"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/study"
)

const (
	stallRate    = 200.0 // arrivals a second, evenly
	stallClients = 4
	// stallShort is less than an arrival may wait, stallLong more: some are skipped.
	stallShort = 600 * time.Millisecond
	stallLong  = queueMax + 500*time.Millisecond
)

// stallLoad touches a row that a lock on the table keeps from it.
func stallLoad() study.Workload {
	return study.Workload{Name: "w", Generator: study.GeneratorOwn, Mode: study.ModeOpen, Arrival: study.ArrivalConstant, Rate: stallRate, Clients: stallClients,
		Setup:  map[string][]string{"": {"CREATE TABLE stalled (id int PRIMARY KEY, n int)", "INSERT INTO stalled VALUES (1, 0)"}},
		Script: "UPDATE stalled SET n = n + 1 WHERE id = 1;"}
}

// stall is a way in which a server stops answering. It gives the way to go on.
type stall struct {
	name  string
	begin func(t *testing.T, s dial.Server, server *os.Process) (end func())
}

func stopped(t *testing.T, pids ...int) (end func()) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Errorf("stop process %d: %v", pid, err)
		}
	}
	return func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may have ended
		}
	}
}

// clientsOf are PostgreSQL's processes of the load's sessions.
func clientsOf(t *testing.T, s dial.Server) (pids []int) {
	t.Helper()
	session, err := dial.Open(t.Context(), s)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer session.Close()
	rows, err := session.Rows(t.Context(), "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND query LIKE '%stalled%'")
	if err != nil || len(rows) < stallClients {
		t.Errorf("sessions of the load: %v, %v", rows, err)
	}
	for _, row := range rows {
		if pid, err := strconv.Atoi(row[0]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func locked(t *testing.T, s dial.Server, lock []string, unlock string) (end func()) {
	t.Helper()
	session, err := dial.Open(t.Context(), s)
	if err != nil {
		t.Error(err)
		return func() {}
	}
	if err := session.Exec(t.Context(), lock...); err != nil {
		t.Error(err)
	}
	return func() {
		if err := session.Exec(context.Background(), unlock); err != nil {
			t.Error(err)
		}
		session.Close()
	}
}

var postgresStalls = []stall{
	{"processes of the sessions stopped", func(t *testing.T, s dial.Server, _ *os.Process) func() { return stopped(t, clientsOf(t, s)...) }},
	{"table locked", func(t *testing.T, s dial.Server, _ *os.Process) func() {
		return locked(t, s, []string{"BEGIN", "LOCK TABLE stalled"}, "COMMIT")
	}},
}

var mariadbStalls = []stall{
	{"server stopped", func(t *testing.T, _ dial.Server, server *os.Process) func() { return stopped(t, server.Pid) }},
	{"table locked", func(t *testing.T, s dial.Server, _ *os.Process) func() {
		return locked(t, s, []string{"LOCK TABLES stalled WRITE"}, "UNLOCK TABLES")
	}},
}

// A stall of the server is seen by every arrival of its time, and by those only once: as
// its latency, or as one that was skipped.
func TestStallIsSeenByAllArrivals(t *testing.T) {
	onceIsEnough(t)
	for _, engine := range []string{study.Postgres, study.MariaDB} {
		t.Run(engine, func(t *testing.T) {
			var s dial.Server
			var server *os.Process
			kinds := postgresStalls
			if engine == study.Postgres {
				s = startPostgres(t)
			} else {
				s, server = startMariaDB(t)
				kinds = mariadbStalls
			}
			g := prepared(t, stallLoad(), s)
			for _, kind := range kinds {
				for name, long := range map[string]time.Duration{"short": stallShort, "long": stallLong} {
					t.Run(kind.name+" "+name, func(t *testing.T) { seeStall(t, g, s, long, func() func() { return kind.begin(t, s, server) }) })
				}
			}
		})
	}
}

// seeStall stalls the server in the phase during, and looks for all who met it. Every
// bound is a least one: a busy machine can only make more of them wait.
func seeStall(t *testing.T, g Generator, s dial.Server, long time.Duration, begin func() (end func())) {
	change := func(context.Context) error {
		end := begin()
		defer end()
		timer := time.NewTimer(long) // the length of the stall is what is tested
		defer timer.Stop()
		<-timer.C
		return nil
	}
	out, err := g.Run(t.Context(), s, Options{Measure: 500 * time.Millisecond, After: 500 * time.Millisecond, Seed: 1, Change: change, ChangeMax: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{result.PhaseIdle, result.PhaseDuring, result.PhaseAfter} {
		l := phase(t, out, name).Load
		balanced(t, l)
		if due := l.Seconds * stallRate; float64(l.Offered) < due-1 || float64(l.Offered) > due+1 {
			t.Errorf("%s: offered %d; the schedule has %.1f", name, l.Offered, due)
		}
		if failures(l) > 0 {
			t.Errorf("%s: errors %v", name, l.Errors)
		}
	}
	l := phase(t, out, result.PhaseDuring).Load
	const period = time.Second / stallRate
	// Those due in the first half of the stall wait for its second half at the least.
	waited, least := slower(t, l.Response, long/2)+l.Skipped, int64(long/2/period)-1
	served := slower(t, l.Service, long/2)
	t.Logf("stalled %v: %d offered, %d answered after %v or skipped, %d skipped; the server saw %d of them wait so long", long, l.Offered, waited, long/2, l.Skipped, served)
	if waited < least {
		t.Errorf("%d arrivals show the stall; %d were due in its first half", waited, least)
	}
	if least := int64((long-queueMax)/period) - stallClients - 1; l.Skipped < least {
		t.Errorf("%d were skipped; %d had to wait longer than %v", l.Skipped, least, queueMax)
	}
}

// slower counts the values of a histogram from a time on. Its steps are 0.1 %.
func slower(t *testing.T, text string, than time.Duration) (n int64) {
	t.Helper()
	h, err := result.DecodeHistogram(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, bar := range h.Distribution() {
		if bar.To >= than.Microseconds() {
			n += bar.Count
		}
	}
	return n
}

// Sessions that the server ends are errors that are counted, and the load goes on with new
// ones.
func TestEndedSessionsAreCounted(t *testing.T) {
	s := startPostgres(t)
	g := prepared(t, stallLoad(), s)
	terminate := func(ctx context.Context) error {
		session, err := dial.Open(ctx, s)
		if err != nil {
			return err
		}
		defer session.Close()
		rows, err := session.Rows(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
		if err == nil && len(rows) < stallClients {
			t.Errorf("%d sessions ended", len(rows))
		}
		return err
	}
	out, err := g.Run(t.Context(), s, Options{Measure: 300 * time.Millisecond, After: time.Second, Seed: 1, Change: terminate, ChangeMax: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	failed, reconnects := int64(0), 0.0
	for _, name := range []string{result.PhaseIdle, result.PhaseDuring, result.PhaseAfter} {
		l := phase(t, out, name).Load
		balanced(t, l)
		failed += failures(l)
		reconnects += l.Generator["reconnects"]
	}
	l := phase(t, out, result.PhaseAfter).Load
	t.Logf("%d failed, %v connections made again, then %d of %d answered", failed, reconnects, l.Transactions, l.Offered)
	if failed != stallClients || reconnects != stallClients || l.Transactions == 0 {
		t.Errorf("%d transactions failed and %v connections were made again; %d sessions were ended", failed, reconnects, stallClients)
	}
}
