package agent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
)

// What did not reach the planner is told every second, also while the worker
// waits to try a step again.
func TestReportIsToldAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		how  error
	}{{"of a satisfied assignment", nil}, {"of a failed step", errTest}} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.failAt(engine.StepStart, c.how)
				b.start()
				b.send(wanted(1))
				time.Sleep(10 * time.Minute) // virtual: pauses are as long as they get
				synctest.Wait()
				b.link.setDown(errTest)
				b.send(wanted(2))
				time.Sleep(10 * time.Minute) // virtual
				synctest.Wait()
				b.link.setDown(nil)
				back := time.Now()
				time.Sleep(unit.ReportRetry) // virtual
				synctest.Wait()
				r := b.last()
				if at := b.link.at[len(b.link.at)-1]; r.Generation != 2 || r.Done != (c.how == nil) || (r.Failure == nil) != (c.how == nil) || at.Before(back) {
					b.Errorf("a second after the link came back, the newest report is from %v: %+v", at, r)
				}
				if tries := len(b.link.tried); tries > 2*600 {
					b.Errorf("%d reports were tried in 20 minutes", tries)
				}
			})
		})
	}
}

// A quiet instance says nothing, whatever wakes its worker.
func TestSatisfiedHostIsQuiet(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		reports, steps := len(b.link.tried), len(b.steps())
		for range 10 {
			b.send(wanted(1))
			time.Sleep(testLook) // virtual
		}
		synctest.Wait()
		if len(b.link.tried) != reports || len(b.steps()) != steps {
			b.Errorf("reports %+v, steps %v", b.heard()[reports:], b.steps()[steps:])
		}
	})
}

func TestSameNews(t *testing.T) {
	base := kurabe.InstanceReport{Host: "h", Instance: "db-1", Generation: 2, Running: true, PID: 7, UsedBytes: 100 << 20}
	failing := func(attempts int, message string) kurabe.InstanceReport {
		r := base
		r.Failure = &kurabe.Failure{Kind: kurabe.FailureOther, Step: "start", Message: message, Attempts: attempts, At: time.Unix(int64(attempts), 0)}
		return r
	}
	for _, c := range []struct {
		name string
		a, b kurabe.InstanceReport
		same bool
	}{
		{"nothing changed", base, base, true},
		{"another step", base, changed(base, func(r *kurabe.InstanceReport) { r.Step = "probe" }), true},
		{"it waits for another server", base, changed(base, func(r *kurabe.InstanceReport) { r.Step = awaitsSource }), false},
		{"it waits on", changed(base, func(r *kurabe.InstanceReport) { r.Step = awaitsSource }), changed(base, func(r *kurabe.InstanceReport) { r.Step = awaitsSource }), true},
		{"another place in the log", changed(base, func(r *kurabe.InstanceReport) { r.Role = &kurabe.RoleReport{Epoch: 1, Position: 1} }),
			changed(base, func(r *kurabe.InstanceReport) { r.Role = &kurabe.RoleReport{Epoch: 1, Position: 2} }), true},
		{"another epoch", changed(base, func(r *kurabe.InstanceReport) { r.Role = &kurabe.RoleReport{Epoch: 1} }),
			changed(base, func(r *kurabe.InstanceReport) { r.Role = &kurabe.RoleReport{Epoch: 2} }), false},
		{"a follower was lost", changed(base, func(r *kurabe.InstanceReport) { r.Role = &kurabe.RoleReport{Epoch: 1} }),
			changed(base, func(r *kurabe.InstanceReport) { r.Role = &kurabe.RoleReport{Epoch: 1, SilentFollowers: ids(second)} }), false},
		{"it is in a group", base, changed(base, func(r *kurabe.InstanceReport) { r.Role = &kurabe.RoleReport{} }), false},
		{"little was written", base, changed(base, func(r *kurabe.InstanceReport) { r.UsedBytes += usageNews - 1 }), true},
		{"much was written", base, changed(base, func(r *kurabe.InstanceReport) { r.UsedBytes += usageNews }), false},
		{"much was removed", base, changed(base, func(r *kurabe.InstanceReport) { r.UsedBytes -= usageNews }), false},
		{"measured for the first time", changed(base, func(r *kurabe.InstanceReport) { r.UsedBytes = 0 }), changed(base, func(r *kurabe.InstanceReport) { r.UsedBytes = 1 }), false},
		{"another generation", base, changed(base, func(r *kurabe.InstanceReport) { r.Generation++ }), false},
		{"done", base, changed(base, func(r *kurabe.InstanceReport) { r.Done = true }), false},
		{"another process", base, changed(base, func(r *kurabe.InstanceReport) { r.PID++ }), false},
		{"a failure", base, failing(1, "no"), false},
		{"a failure is over", failing(20, "no"), base, false},
		{"one more try", failing(unit.MaxAttemptsNews-1, "no"), failing(unit.MaxAttemptsNews, "no"), false},
		{"one of very many tries", failing(unit.MaxAttemptsNews, "no"), failing(unit.MaxAttemptsNews+1, "no"), true},
		{"many tries, other words", failing(unit.MaxAttemptsNews, "no"), failing(unit.MaxAttemptsNews+1, "never"), false},
	} {
		before := fmt.Sprintf("%+v", c.b.Failure)
		if got := (*worker)(nil).SameNews(c.a, c.b); got != c.same {
			t.Errorf("%s: %v", c.name, got)
		}
		if after := fmt.Sprintf("%+v", c.b.Failure); after != before {
			t.Errorf("%s: the report was changed: %s, was %s", c.name, after, before)
		}
	}
}

func changed(r kurabe.InstanceReport, change func(*kurabe.InstanceReport)) kurabe.InstanceReport {
	change(&r)
	return r
}

// The walk over an instance's files is most of an idle service's work: it is made
// only when the disk has moved, or the last figure is old.
func TestUsageIsMeasuredWhenTheDiskMoved(t *testing.T) {
	inBubble(t, func(b *bed) {
		walks, used, free := 0, int64(1<<30), int64(100<<30)
		b.usage = func(kurabe.InstanceID) (int64, error) {
			walks++
			return used, nil
		}
		b.free = func() int64 { return free }
		b.start()
		b.send(wanted(1))
		for n, c := range []struct {
			name  string
			pause time.Duration
			moved int64
			walks int
		}{
			{"at first", 0, 0, 1},
			{"a look soon after", time.Second, 0, 0},
			{"the disk has hardly moved", time.Second, usageMove - 1, 0},
			{"something was written", time.Second, 1, 1},
			{"something was removed", time.Second, -usageMove, 1},
			{"the figure is old", usageAge, 0, 1},
		} {
			if n > 0 {
				walks = 0
			}
			time.Sleep(c.pause) // virtual
			free -= c.moved
			b.send(wanted(1))
			if walks != c.walks {
				b.Errorf("%s: %d walks, want %d", c.name, walks, c.walks)
			}
		}
		used += usageNews
		time.Sleep(usageAge) // virtual
		b.send(wanted(1))
		if got := b.last().UsedBytes; got != used {
			b.Errorf("reported %d bytes, want %d", got, used)
		}
	})
}
