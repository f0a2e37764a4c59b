//go:build integration

package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/study"
)

const (
	startMax = time.Minute
	stopMax  = 30 * time.Second
)

// unprivileged is a command as a user that a server accepts: none runs as root.
func unprivileged(account, path string, args ...string) *exec.Cmd {
	if os.Getuid() == 0 {
		args = append([]string{"--reuid=" + account, "--regid=" + account, "--clear-groups", path}, args...)
		path = "setpriv"
	}
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// onceIsEnough skips what loads servers for long in the suite's second run, without root:
// nothing of it asks for rights.
func onceIsEnough(t *testing.T) {
	t.Helper()
	if os.Getenv("KURABE_TEST_UNPRIVILEGED") != "" {
		t.Skip("runs with root only; it asks for no rights")
	}
}

// startPostgres gives a small server of the newest version that is installed.
func startPostgres(t testing.TB) dial.Server {
	t.Helper()
	initdb, err := findTool("initdb", "postgresql", pgbenchFolders)
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	giveTo(t, "postgres", dir)
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("seeded"), 0o644); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if out, err := unprivileged("postgres", initdb, "-D", data, "-U", "lab", "-A", "scram-sha-256", "--pwfile", password, "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	port := freePort(t)
	_, ended := serve(t, unprivileged("postgres", filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "shared_buffers=64MB"))
	s := dial.Server{Engine: study.Postgres, Host: "127.0.0.1", Port: port, User: "lab", Password: "seeded", Database: "postgres"}
	waitForServer(t, s, ended)
	return s
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// serve starts a server and ends it after the test.
func serve(t testing.TB, cmd *exec.Cmd) (*os.Process, <-chan error) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	gone := make(chan struct{})
	go func() { ended <- cmd.Wait(); close(gone) }()
	t.Cleanup(func() {
		// A fast shutdown of PostgreSQL; MariaDB takes no SIGINT for one.
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-gone:
		case <-time.After(stopMax):
			_ = cmd.Process.Kill()
			<-gone
		}
	})
	return cmd.Process, ended
}

func giveTo(t testing.TB, account, dir string) {
	if os.Getuid() != 0 {
		return
	}
	u, err := user.Lookup(account)
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := errors.Join(os.Chown(dir, uid, gid), os.Chmod(filepath.Dir(dir), 0o711)); err != nil {
		t.Fatal(err)
	}
}

func waitForServer(t testing.TB, s dial.Server, ended <-chan error) {
	t.Helper()
	deadline := time.After(startMax)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		session, err := dial.Open(context.Background(), s)
		if err == nil {
			session.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ended:
			t.Fatal("the server ended")
		case <-deadline:
			t.Fatal(err)
		}
	}
}

func ask(t testing.TB, s dial.Server, query string) string {
	t.Helper()
	session, err := dial.Open(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	rows, err := session.Rows(context.Background(), query)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	return rows[0][0]
}

func prepared(t testing.TB, w study.Workload, s dial.Server) Generator {
	t.Helper()
	g, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Check(s.Engine); err != nil {
		t.Skip(err)
	}
	if err := g.Prepare(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestPostgresKits(t *testing.T) {
	onceIsEnough(t)
	// Writers of random rows may meet in a circle; and where two move the same row, the
	// DELETE of the second does not see what the first has put there, which its INSERT
	// then meets, as sysbench's does.
	runKits(t, startPostgres(t), "40P01", "23505")
}

// runKits runs every kit by every protocol. Of errors there may be deadlocks, and the key
// that is there already in one of a hundred transactions.
func runKits(t *testing.T, s dial.Server, deadlock, duplicate string) {
	for _, kit := range Kits(study.GeneratorOwn) {
		for _, protocol := range []string{protocolSimple, protocolExtended, protocolPrepared} {
			t.Run(kit+" "+protocol, func(t *testing.T) {
				w := study.Workload{Name: "w", Generator: study.GeneratorOwn, Kit: kit, Protocol: protocol, Mode: study.ModeClosed, Clients: 4, Rows: 5000, Scale: 1}
				g := prepared(t, w, s)
				out, err := g.Run(context.Background(), s, Options{Measure: time.Second, Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				l := phase(t, out, result.PhaseMeasure).Load
				maps.DeleteFunc(l.Errors, func(code string, n int64) bool {
					return code == deadlock || code == duplicate && 100*n < l.Transactions
				})
				if l.Transactions == 0 || len(l.Errors) > 0 {
					t.Errorf("%d transactions, errors %v", l.Transactions, l.Errors)
				}
			})
		}
	}
}

func TestPrepareLeavesWhatIsRight(t *testing.T) {
	s := startPostgres(t)
	for _, generator := range []string{study.GeneratorPgbench, study.GeneratorOwn} {
		w := study.Workload{Name: "w", Generator: generator, Kit: "tpcb-like", Mode: study.ModeClosed, Clients: 1, Scale: 1}
		prepared(t, w, s)
		const table = "SELECT oid FROM pg_class WHERE relname = 'pgbench_accounts'"
		before := ask(t, s, table)
		prepared(t, w, s)
		if ask(t, s, table) != before || ask(t, s, "SELECT count(*) FROM pgbench_accounts") != "100000" {
			t.Errorf("%s made its data again", generator)
		}
		w.Scale = 2
		prepared(t, w, s)
		if n := ask(t, s, "SELECT count(*) FROM pgbench_accounts"); n != "200000" {
			t.Errorf("%s left data of another scale: %s rows", generator, n)
		}
	}
}

func TestToolsRun(t *testing.T) {
	onceIsEnough(t)
	runTools(t, startPostgres(t), map[string]study.Workload{
		"pgbench closed": {Generator: study.GeneratorPgbench, Kit: "tpcb-like", Mode: study.ModeClosed, Clients: 4},
		"pgbench open":   {Generator: study.GeneratorPgbench, Kit: "select-only", Mode: study.ModeOpen, Rate: 200, Clients: 4, Protocol: protocolPrepared},
		"pgbench script": {Generator: study.GeneratorPgbench, Script: "\\set a random(1, 10 * :scale)\nSELECT :a;", Mode: study.ModeClosed, Clients: 1},
		// Without its clock, a tenth of these took no time.
		"pgbench clock":   {Generator: study.GeneratorPgbench, Script: "SELECT 1", Mode: study.ModeClosed, Clients: 16},
		"pgbench connect": {Generator: study.GeneratorPgbench, Kit: "select-only", Mode: study.ModeClosed, Clients: 2, Connect: true},
		// Two clients could meet at a row; sysbench counts that as an error, and goes on.
		"sysbench closed": {Generator: study.GeneratorSysbench, Kit: "oltp_read_write", Mode: study.ModeClosed, Clients: 1},
		"sysbench open":   {Generator: study.GeneratorSysbench, Kit: "oltp_point_select", Mode: study.ModeOpen, Rate: 200, Clients: 2},
	})
}

func runTools(t *testing.T, s dial.Server, cases map[string]study.Workload) {
	for name, w := range cases {
		t.Run(name, func(t *testing.T) {
			w.Name = name
			g := prepared(t, w, s)
			var entered []string
			out, err := g.Run(context.Background(), s, Options{Warm: time.Second, WarmMax: 5 * time.Second, Measure: 2 * time.Second, Seed: 1,
				Settled: func(rates []float64) bool { return len(rates) >= 2 },
				Enter:   func(phase string) error { entered = append(entered, phase); return nil }})
			if err != nil {
				t.Fatal(err)
			}
			l := phase(t, out, result.PhaseMeasure).Load
			if out.Unsettled || l.Transactions == 0 || len(l.Errors) > 0 || l.Prog == "" || l.Summary[summaryAverage] == 0 || fmt.Sprint(entered) != "[warm measure ]" {
				t.Errorf("%+v of %q", l, entered)
			}
		})
	}
}

// A run that ends while its statements wait for a lock leaves none of them behind.
func TestInterruptFreesTheServer(t *testing.T) {
	t.Run(study.Postgres, func(t *testing.T) {
		freesTheServer(t, startPostgres(t), []string{"BEGIN", "LOCK TABLE %s"}, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
	})
	t.Run(study.MariaDB, func(t *testing.T) {
		s, _ := startMariaDB(t)
		freesTheServer(t, s, []string{"LOCK TABLES %s WRITE"}, "SELECT count(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table%'")
	})
}

func freesTheServer(t *testing.T, s dial.Server, lock []string, waiting string) {
	w := study.Workload{Name: "w", Generator: study.GeneratorOwn, Kit: kitWriters, Mode: study.ModeClosed, Clients: 3, Rows: 1000}
	g := prepared(t, w, s)
	locker, err := dial.Open(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close()
	for _, text := range lock {
		if err := locker.Exec(context.Background(), strings.ReplaceAll(text, "%s", w.Table())); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := g.Run(ctx, s, Options{Measure: time.Hour})
		done <- err
	}()
	until(t, func() bool { return ask(t, s, waiting) == "3" })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	until(t, func() bool { return ask(t, s, waiting) == "0" })
}

func until(t testing.TB, true func() bool) {
	t.Helper()
	deadline := time.After(startMax)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !true() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it did not come true")
		}
	}
}

// BenchmarkAgainstPgbench reports the response times of both generators at one rate on
// one server. They should agree within 5 % or 20 µs.
func BenchmarkAgainstPgbench(b *testing.B) {
	s := startPostgres(b)
	for _, kit := range []string{"select-only", "tpcb-like"} {
		for _, generator := range []string{study.GeneratorPgbench, study.GeneratorOwn} {
			b.Run(kit+"/"+generator, func(b *testing.B) {
				w := study.Workload{Name: "w", Generator: generator, Kit: kit, Mode: study.ModeOpen, Rate: 500, Clients: 8, Scale: 1, Protocol: protocolPrepared}
				g := prepared(b, w, s)
				for b.Loop() {
					out, err := g.Run(context.Background(), s, Options{Warm: 2 * time.Second, Measure: 10 * time.Second, Seed: 1})
					if err != nil {
						b.Fatal(err)
					}
					l := phase(b, out, result.PhaseMeasure).Load
					b.ReportMetric(quantile(b, l.Response, 50)*1000, "p50-µs")
					b.ReportMetric(quantile(b, l.Response, 95)*1000, "p95-µs")
					b.ReportMetric(quantile(b, l.Response, 99)*1000, "p99-µs")
					b.ReportMetric(l.Generator["lag_p99_ms"]*1000, "lag-p99-µs")
				}
			})
		}
	}
}
