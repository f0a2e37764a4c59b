//go:build fault

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// TestLogSwitchedOffUnderKills switches the backups of a MariaDB off, for which its
// binary log ceases, and kills the server at each point of it: with the service, which
// then finds a dead server and an order to start it without its log, and under a
// service that lives. A server that died with its log must recover with it, so each
// time it is to come back by itself, without its log in the end, with every row that
// was acknowledged.
func TestLogSwitchedOffUnderKills(t *testing.T) {
	s := harness.Start(t, harness.Options{Fault: true, Args: []string{"--log-level", "info"}})
	s.NeedEngine(t, "mariadb", s.Engines(t))
	in := harness.Request("switched", "mariadb")
	in.BackupRetentionPeriod = aws.Int32(1)
	l := &logSwitch{s: s, i: s.MustCreate(t, in)}
	l.ledger = harness.NewLedger(t, l.i)
	l.ledger.Start(t)
	for _, point := range []string{"before:stop", "after:stop", "after:start", "after:wait-ready"} {
		l.run(t, "with the service "+point, func() { l.killBoth(t, point) })
	}
	l.run(t, "the server dies while it stops", func() { l.killStopping(t) })
	l.run(t, "the server dies as the wish comes", func() {
		l.kill(t)
		l.retain(t, 0)
	})
	n := seed(t)
	r := rand.New(rand.NewPCG(n, 1))
	for range 2 {
		late := time.Duration(r.Int64N(int64(800 * time.Millisecond)))
		l.run(t, fmt.Sprintf("the server dies %v after the wish", late.Round(time.Millisecond)), func() {
			l.retain(t, 0)
			harness.Pause(t.Context(), late)
			l.kill(t)
		})
	}
	l.ledger.Stop()
	t.Logf("%d rows; the server refused %d starts without its log", l.ledger.Acked(), l.refusals)
	if l.refusals == 0 {
		t.Error("no kill hit a server whose log was needed")
	}
	l.i.Delete(t)
	noOrphans(t, s)
}

type logSwitch struct {
	s        *harness.Service
	i        *harness.Instance
	ledger   *harness.Ledger
	refusals int // starts without the log, for which the planner gave it back
}

// run does one switch under a kill, demands that the log is off, that clients are
// served and have lost nothing, and switches it on again.
func (l *logSwitch) run(t *testing.T, name string, disturbed func()) {
	t.Run(name, func(t *testing.T) {
		l.wait(t, "1")
		l.ledger.WaitMore(t, 5)
		mark := l.s.Log.Mark()
		start := time.Now()
		disturbed()
		l.wait(t, "0")
		took := time.Since(start)
		l.ledger.WaitMore(t, 5)
		l.ledger.Stop() // Verify compares with what stands still
		l.ledger.Verify(t)
		refused := strings.Count(l.s.Log.Since(mark), "did not come up without its log")
		l.refusals += refused
		t.Logf("refused to start without its log %d times, and serves without it after %v", refused, took.Round(time.Millisecond))
		l.retain(t, 1)
	})
	l.ledger.Start(t)
}

// retain asks for a retention, as soon as the service takes it.
func (l *logSwitch) retain(t *testing.T, days int32) {
	t.Helper()
	harness.Wait(t, settleTime, "the wish is taken", func() string {
		_, err := l.s.ModifyDBInstance(t.Context(), &rds.ModifyDBInstanceInput{
			DBInstanceIdentifier: aws.String(l.i.Name), ApplyImmediately: aws.Bool(true), BackupRetentionPeriod: aws.Int32(days)})
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// killBoth has the service die at a point of the switch, kills the server if it runs,
// and starts the service again.
func (l *logSwitch) killBoth(t *testing.T, point string) {
	t.Helper()
	l.s.Arm(t, point)
	// The service may die before it has answered: the wish is stored then or is not,
	// so it is repeated once the service is back.
	_, _ = l.s.ModifyDBInstance(t.Context(), &rds.ModifyDBInstanceInput{
		DBInstanceIdentifier: aws.String(l.i.Name), ApplyImmediately: aws.Bool(true), BackupRetentionPeriod: aws.Int32(0)})
	harness.Wait(t, settleTime, "the switch comes to "+point, func() string {
		if l.s.Running() {
			return "it does not"
		}
		return ""
	})
	l.kill(t)
	l.s.Start(t)
	l.retain(t, 0)
}

// killStopping kills the server after it was told to stop and before it has: the
// service that waits for its end sees no difference.
func (l *logSwitch) killStopping(t *testing.T) {
	t.Helper()
	shutdowns := func() int {
		words, err := os.ReadFile(filepath.Join(l.i.Home(), "log", "mysql-error.log"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(words), "Normal shutdown")
	}
	before, deadline := shutdowns(), time.Now().Add(settleTime)
	l.retain(t, 0)
	for shutdowns() == before { // it takes some 50 ms, so every millisecond counts
		if time.Now().After(deadline) {
			t.Fatal("the server was not told to stop")
		}
	}
	l.kill(t)
}

// kill ends the server at once, if it runs.
func (l *logSwitch) kill(t *testing.T) {
	t.Helper()
	for _, pid := range l.s.Servers(l.i.ID) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
	}
}

// wait demands an instance that serves, with or without its binary log.
func (l *logSwitch) wait(t *testing.T, log string) {
	t.Helper()
	harness.Wait(t, settleTime, "it serves with log_bin = "+log, func() string {
		d := l.i.Describe(t)
		if status := aws.ToString(d.DBInstanceStatus); status != "available" {
			return status + ": " + fmt.Sprint(l.i.Events(t))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s, err := harness.Open(ctx, l.i.Login(t))
		if err != nil {
			return err.Error()
		}
		defer s.Close()
		rows, err := s.Rows(ctx, "SELECT @@GLOBAL.log_bin")
		if err != nil {
			return err.Error()
		}
		if len(rows) != 1 || rows[0] != log {
			return fmt.Sprintf("log_bin is %v", rows)
		}
		return ""
	})
}
