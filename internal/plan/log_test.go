package plan_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"kurabe"
	"kurabe/internal/plan"
)

// loggedServer is a host with a MariaDB: one that died with its binary log comes up
// with it only, and no report says how it ended.
type loggedServer struct {
	*sim
	running, logged, torn bool
	boot                  int64
	recovered             int // starts with the log after a death
}

// newLoggedServer is one that is available and keeps its log.
func newLoggedServer(t tester) *loggedServer {
	l := &loggedServer{sim: newSim(t)}
	l.w.Spec.Engine, l.w.Spec.Now.RetentionDays = kurabe.MariaDB, 3
	l.step()
	l.obey()
	l.step()
	return l
}

// retain is what the user wishes.
func (l *loggedServer) retain(days int) {
	sp := *l.w.Spec
	sp.Revision++
	sp.Now.RetentionDays = days
	l.w.Spec = &sp
}

// die ends the server as kill -9 does.
func (l *loggedServer) die() {
	l.torn = l.torn || l.running && l.logged
	l.running = false
}

// stop ends it cleanly.
func (l *loggedServer) stop() {
	if l.running && l.logged {
		l.torn = false
	}
	l.running = false
}

// obey does what the assignment says and reports it.
func (l *loggedServer) obey() {
	a := l.w.Assignment
	if a.Goal != kurabe.GoalRunning || l.boot < a.Boot {
		l.stop()
	}
	l.start()
}

// start starts a server that is to run, and reports what came of it.
func (l *loggedServer) start() {
	a := l.w.Assignment
	r := kurabe.InstanceReport{Host: a.Host, Instance: a.Instance, Generation: a.Generation}
	switch {
	case a.Goal != kurabe.GoalRunning:
		r.Done = true
	case !l.running && l.torn && !a.Log:
		r.Failure = &kurabe.Failure{Kind: kurabe.FailureOther, Step: kurabe.StepWaitReady, Message: "it must start with its log", Attempts: 1}
	default:
		if !l.running {
			l.running, l.logged, l.boot = true, a.Log, a.Boot
			if l.torn {
				l.torn = false
				l.recovered++
			}
		}
		r.Done, r.Running, r.Serving = true, true, true
	}
	r.Boot = l.boot
	l.w.Report = &r
}

// settleLog obeys until the log is as the user wants it and the server serves.
func (l *loggedServer) settleLog() {
	l.t.Helper()
	for range 12 {
		l.obey()
		r := l.step()
		if r.Assignment == nil && r.Status == nil {
			break
		}
	}
	if a := l.w.Assignment; a.Log != l.w.Spec.Now.KeepsLog() || a.Goal == kurabe.GoalRunning && (!l.running || l.logged != a.Log || l.w.Status.LogOffBoot != 0) {
		l.t.Fatalf("ends with log %v, running %v with log %v, off by boot %d", a.Log, l.running, l.logged, l.w.Status.LogOffBoot)
	}
}

// wantServing accepts a snapshot that is due as well.
func (l *loggedServer) wantServing() {
	l.t.Helper()
	if l.w.Status.State != kurabe.StateBackingUp {
		l.want(kurabe.StateAvailable)
	}
}

// wantLog checks the assignment against the boot of the one before.
func (l *loggedServer) wantLog(on bool, bootBefore, rise int64) {
	l.t.Helper()
	if a := l.w.Assignment; a.Log != on || a.Boot != bootBefore+rise {
		l.t.Fatalf("log %v, boot %d after %d; want log %v and %d more", a.Log, a.Boot, bootBefore, on, rise)
	}
}

func TestLogIsHeldAfterACrash(t *testing.T) {
	for name, test := range map[string]func(l *loggedServer, boot int64){
		"a server that serves is restarted at once": func(l *loggedServer, boot int64) {
			l.retain(0)
			l.step()
			l.wantLog(false, boot, 1)
			l.want(kurabe.StateModifying)
		},
		"one that is down recovers first": func(l *loggedServer, boot int64) {
			l.die()
			l.w.Report = &kurabe.InstanceReport{Host: "h1", Instance: l.w.Spec.ID, Generation: l.w.Assignment.Generation, Boot: boot, Crashes: 1}
			l.retain(0)
			l.step()
			l.wantLog(true, boot, 0)
			l.want(kurabe.StateModifying)
			l.start()
			l.step()
			l.wantLog(false, boot, 1)
		},
		"one that dies in the restart is started with its log again": func(l *loggedServer, boot int64) {
			l.retain(0)
			l.step()
			l.die()
			l.obey()
			l.step()
			l.wantLog(true, boot, 2)
			l.want(kurabe.StateModifying)
			l.obey()
			l.step()
			l.wantLog(false, boot, 3)
		},
		"one that dies in each restart": func(l *loggedServer, boot int64) {
			l.retain(0)
			for range 5 {
				l.step() // off
				l.die()
				l.obey()
				l.step() // on
				l.obey()
			}
			if l.recovered != 5 {
				l.t.Fatalf("recovered %d times", l.recovered)
			}
		},
		"backups are wanted again meanwhile": func(l *loggedServer, boot int64) {
			l.retain(0)
			l.step()
			l.die()
			l.obey()
			l.retain(3)
			l.step()
			l.wantLog(true, boot, 2)
		},
	} {
		t.Run(name, func(t *testing.T) { heldLog(t, test) })
	}
}

// TestLogOfAStoppedServer: it needs no start to be without its log, and gets it all
// the same if it must recover.
func TestLogOfAStoppedServer(t *testing.T) {
	for name, test := range map[string]func(l *loggedServer, boot int64){
		"a stopped one needs no start for it": func(l *loggedServer, boot int64) {
			l.w.Spec.Power = kurabe.Power{Seq: 1, Stopped: true, At: l.w.Now}
			l.step()
			l.obey()
			l.retain(0)
			l.step()
			l.wantLog(false, boot, 1)
			l.settleLog()
			l.w.Spec.Power = kurabe.Power{Seq: 2}
		},
		"a stopped one that had died": func(l *loggedServer, boot int64) {
			l.w.Spec.Power = kurabe.Power{Seq: 1, Stopped: true, At: l.w.Now}
			l.step()
			l.die()
			l.obey()
			l.retain(0)
			l.step()
			l.w.Spec.Power = kurabe.Power{Seq: 2}
			l.step()
			l.obey()
			l.step()
			if !l.w.Assignment.Log {
				l.t.Fatal("it is not given its log")
			}
		},
	} {
		t.Run(name, func(t *testing.T) { heldLog(t, test) })
	}
}

// heldLog runs a test on a server that keeps its log, and demands that it is as the
// user wants it in the end.
func heldLog(t *testing.T, test func(l *loggedServer, boot int64)) {
	t.Helper()
	l := newLoggedServer(t)
	test(l, l.w.Assignment.Boot)
	l.settleLog()
	if l.w.Assignment.Goal == kurabe.GoalRunning {
		l.wantServing()
	}
}

// TestLogStaysOff: what else keeps a server down says nothing of its log.
func TestLogStaysOff(t *testing.T) {
	failing := func(l *loggedServer, kind kurabe.FailureKind, step string) {
		a := l.w.Assignment
		l.w.Report = &kurabe.InstanceReport{Host: a.Host, Instance: a.Instance, Generation: a.Generation,
			Failure: &kurabe.Failure{Kind: kind, Step: step, Message: "no", Attempts: 3}}
		l.step()
	}
	t.Run("parameters that do not fit", func(t *testing.T) {
		l := newLoggedServer(t)
		boot := l.w.Assignment.Boot
		l.retain(0)
		l.step()
		failing(l, kurabe.FailureParameters, kurabe.StepWaitReady)
		l.wantLog(false, boot, 1)
		l.want(kurabe.StateIncompatibleParameters)
	})
	t.Run("another step", func(t *testing.T) {
		l := newLoggedServer(t)
		boot := l.w.Assignment.Boot
		l.retain(0)
		l.step()
		failing(l, kurabe.FailureOther, "write-settings")
		l.wantLog(false, boot, 1)
	})
	t.Run("after it has served without", func(t *testing.T) {
		l := newLoggedServer(t)
		boot := l.w.Assignment.Boot
		l.retain(0)
		l.step()
		l.settleLog()
		failing(l, kurabe.FailureOther, kurabe.StepWaitReady)
		l.wantLog(false, boot, 1)
	})
	t.Run("where no log was kept", func(t *testing.T) {
		l := newLoggedServer(t)
		l.w.Spec.Now.RetentionDays = 0
		l.w.Status, l.w.Assignment, l.w.Report = nil, nil, nil
		l.step()
		failing(l, kurabe.FailureOther, kurabe.StepWaitReady)
		l.wantLog(false, 1, 0)
	})
	t.Run("of another engine", func(t *testing.T) {
		l := newLoggedServer(t)
		l.w.Spec.Engine = kurabe.Postgres
		boot := l.w.Assignment.Boot
		l.w.Report.Serving = false
		l.retain(0)
		l.step()
		l.wantLog(false, boot, 0)
		failing(l, kurabe.FailureOther, kurabe.StepWaitReady)
		l.wantLog(false, boot, 0)
	})
}

// TestHeldLogIsNotAnnounced: while it is kept only to recover with, no backup misses
// what it lacks.
func TestHeldLogIsNotAnnounced(t *testing.T) {
	l := newLoggedServer(t)
	l.logSince(l.w.Now, "")
	l.step()
	l.retain(0)
	l.die()
	r := *l.w.Report
	r.Serving, r.Running, r.Done = false, false, false
	r.LogBegan, r.LogEnded = time.Time{}, "the server died"
	l.w.Report = &r
	l.step()
	for _, e := range l.events {
		if e.ID == "KURABE-EVENT-0004" {
			t.Errorf("%+v", e)
		}
	}
	if l.w.Status.LogEnded != "" || !l.w.Assignment.Log {
		t.Errorf("log %v, %+v", l.w.Assignment.Log, l.w.Status)
	}
}

// TestRandomLogs switches backups, kills, stops and restarts a server at random, and
// demands that it always comes back, with the log changed only by a restart.
func TestRandomLogs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLoggedServer(rt)
		plans := func() plan.Result {
			before := *l.w.Assignment
			r := l.step()
			if a := l.w.Assignment; a.Log != before.Log && a.Boot == before.Boot {
				rt.Fatalf("log %v after %v without a restart", a.Log, before.Log)
			}
			return r
		}
		for range rapid.IntRange(1, 40).Draw(rt, "acts") {
			sp := *l.w.Spec
			sp.Revision++
			switch rapid.IntRange(0, 6).Draw(rt, "act") {
			case 0:
				sp.Now.RetentionDays = rapid.IntRange(0, 1).Draw(rt, "days")
			case 1:
				sp.RebootSeq++
			case 2:
				sp.Power = kurabe.Power{Seq: sp.Power.Seq + 1, Stopped: rapid.Bool().Draw(rt, "stopped"), At: l.w.Now}
			case 3:
				l.die()
			case 4:
				l.start()
			default:
				l.obey()
			}
			l.w.Spec = &sp
			if rapid.Bool().Draw(rt, "plans") {
				plans()
			}
		}
		sp := *l.w.Spec
		sp.Power = kurabe.Power{Seq: sp.Power.Seq + 1}
		l.w.Spec = &sp
		plans()
		l.settleLog()
		l.wantServing()
	})
}
