//go:build fault

package fault

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// TestKillTheEngineUnderLoad kills the server, and once only one of its
// children, while clients write.
func TestKillTheEngineUnderLoad(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	w := watch(t, s)
	s.EachEngine(t, func(t *testing.T, engine string) {
		i := s.MustCreate(t, harness.Request("loaded-"+engine, engine))
		ledger := harness.NewLedger(t, i)
		ledger.Start(t)
		if engine == "postgres" {
			if out, err := pgbench(t, i, "-i", "-q", "-s", "2").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		for n, victim := range []string{"the server", "the server again", "a child of it"} {
			if engine == "postgres" {
				load := pgbench(t, i, "-c", "4", "-T", "60", "-n")
				if err := load.Start(); err != nil {
					t.Fatal(err)
				}
				defer load.Wait() // it ends with its connections
			}
			ledger.WaitMore(t, 50)
			pid := i.Server(t)
			if n == 2 {
				pid = aChild(t, i, pid)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			took := ledger.WaitMore(t, 3)
			t.Logf("%s killed; the next row %v later", victim, took.Round(time.Millisecond))
			if took > backTime {
				t.Errorf("%s was back after %v", engine, took)
			}
		}
		ledger.Stop()
		ledger.Verify(t)
		w.check(t)
		i.WaitStatus(t, "available")
		t.Logf("%d rows", ledger.Acked())
		i.Delete(t)
	})
}

// aChild is another process of the server; the server itself where it has none.
func aChild(t *testing.T, i *harness.Instance, server int) int {
	t.Helper()
	for _, pid := range i.Service.Processes(i.ID) {
		if pid != server {
			return pid
		}
	}
	return server
}

var failedTransactions = regexp.MustCompile(`number of failed transactions: (\d+)`)

// TestClientsSeeNothingOfTheService ends the service in every way while clients
// work: none of them may see an error.
func TestClientsSeeNothingOfTheService(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	var instances []*harness.Instance
	var ledgers []*harness.Ledger
	for _, engine := range s.Engines(t) {
		i := s.MustCreate(t, harness.Request("steady-"+engine, engine))
		l := harness.NewLedger(t, i)
		l.Start(t)
		instances, ledgers = append(instances, i), append(ledgers, l)
	}
	at := slices.IndexFunc(instances, func(i *harness.Instance) bool { return i.Engine == "postgres" })
	if at < 0 {
		t.Skip("the service offers no postgres here")
	}
	var out bytes.Buffer
	if b, err := pgbench(t, instances[at], "-i", "-q", "-s", "2").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	load := pgbench(t, instances[at], "-c", "4", "-T", "6", "-n")
	load.Stdout, load.Stderr = &out, &out
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- load.Wait() }()
	restarts := 0
	for done := false; !done; {
		select {
		case err := <-ended:
			done = true
			if err != nil {
				t.Errorf("pgbench: %v", err)
			}
		default:
			if restarts%2 == 0 {
				s.Terminate(t)
			} else {
				s.Kill(t)
			}
			s.Start(t)
			restarts++
		}
	}
	m := failedTransactions.FindStringSubmatch(out.String())
	if m == nil || m[1] != "0" || strings.Contains(out.String(), "error") {
		t.Errorf("pgbench:\n%s", out.String())
	}
	for n, l := range ledgers {
		l.Stop()
		if errs, newest := l.Errors(); errs > 0 {
			t.Errorf("%s: %d errors, the newest: %v", instances[n].Name, errs, newest)
		}
		l.Verify(t)
	}
	t.Logf("%d restarts; %s", restarts, regexp.MustCompile(`tps = .*`).FindString(out.String()))
}
