package agent

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/hostlink"
)

// logLink counts the reports of logs.
type logLink struct {
	hostlink.Link
	reports atomic.Int64
}

func (l *logLink) PutLogs(context.Context, kurabe.LogReport) error {
	l.reports.Add(1)
	return nil
}

// stuckLogs grow, and nothing that a repository has to answer comes to an end.
type stuckLogs struct {
	Logs
	stuck atomic.Int64
}

func (l *stuckLogs) All() []kurabe.InstanceLog {
	return []kurabe.InstanceLog{{Instance: "db-1", Runs: []kurabe.LogRun{{Last: kurabe.LogMark{At: time.Now()}}}}}
}

func (l *stuckLogs) Log(kurabe.InstanceID) (kurabe.InstanceLog, bool) { return l.All()[0], true }

func (l *stuckLogs) Remove(ctx context.Context, _ kurabe.InstanceID) error {
	l.stuck.Add(1)
	<-ctx.Done()
	return context.Cause(ctx)
}

// markedLog has a mark.
type markedLog struct{ engine.Log }

func (markedLog) Mark(context.Context) (kurabe.LogMark, error) {
	return kurabe.LogMark{At: time.Unix(1, 0)}, nil
}

// TestNoMarkWithoutALease: what a server says after its lease is over is not believed, as
// another one may have taken clients by then.
func TestNoMarkWithoutALease(t *testing.T) {
	for _, over := range []bool{false, true} {
		m, err := leasedLog{markedLog{}, func() bool { return over }}.Mark(t.Context())
		if (err != nil) != over || m.At.IsZero() != over {
			t.Errorf("over %v: %v, %v", over, m, err)
		}
	}
}

// TestReportsOfLogsWaitForNoRepository: how far the logs reach is told while a
// repository that does not answer holds up the removal of what nobody needs.
func TestReportsOfLogsWaitForNoRepository(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, logs := &logLink{}, &stuckLogs{}
		a := New(Config{Host: "host-1", Link: link, Logs: logs, Log: slog.New(slog.DiscardHandler), Now: time.Now})
		a.unneeded["db-1"] = true
		ctx, cancel := context.WithCancel(t.Context())
		a.host.Wait.Go(func() { a.watchLogs(ctx) })
		const reports = 10
		time.Sleep((reports + 1) * logReport)
		if logs.stuck.Load() != 1 {
			t.Errorf("%d removals are under way", logs.stuck.Load())
		}
		if n := link.reports.Load(); n < reports {
			t.Errorf("only %d reports in the time of %d", n, reports)
		}
		cancel()
		a.host.Wait.Wait()
	})
}
