package plan_test

import (
	"testing"
	"time"

	"kurabe"
)

// binlog is what a follower lives on. PostgreSQL's log is always there; MariaDB's begins and
// ceases with a start, and one that died with it starts with it only.
type binlog struct {
	runs, torn, refused bool
}

func (b *binlog) start(a kurabe.Assignment) bool {
	has := !a.Engine.RestartsForLog() || a.Log || a.Binlog
	b.refused = b.torn && !has
	if !b.refused {
		b.runs, b.torn = has, false
	}
	return !b.refused
}

func (s *server) stop() {
	s.binlog.torn = s.binlog.torn && !s.running
	s.running = false
}

func (s *server) die() {
	s.binlog.torn = s.binlog.torn || s.running && s.binlog.runs
	s.running, s.hung, s.asked = false, false, time.Time{}
}

// refusal is what is reported of a start that came to nothing.
func (s *server) refusal() *kurabe.Failure {
	if s.running || !s.binlog.refused {
		return nil
	}
	return &kurabe.Failure{Kind: kurabe.FailureOther, Step: kurabe.StepWaitReady, Message: "it must start with its log", Attempts: 1}
}

// checkBinlog: the log is there for whoever lives on it.
func (f *groupFleet) checkBinlog(t tester, w *server) {
	a, s := f.w.Members[w.id], f.w.Spec.Now
	if a.Log != s.KeepsLog() || a.Log && a.Binlog || f.w.Group != nil && !w.binlog.runs {
		t.Fatalf("the log is kept: %v, written for a standby: %v, is there: %v; want one kept: %v", a.Log, a.Binlog, w.binlog.runs, s.KeepsLog())
	}
}

// wish has the user want something else, and the fleet come to rest.
func (f *groupFleet) wish(t tester, change func(*kurabe.InstanceSpec)) {
	f.ask(change)
	for range 4 {
		f.calm(t)
	}
}

// A server that writes the binary log becomes a primary with a standby as it runs, and ceases
// to be one; another one restarts once. A log that was there for a standby alone stays until
// the server restarts for something else.
func TestStandbyLivesOnTheBinlog(t *testing.T) {
	for _, c := range []struct {
		name    string
		engine  kurabe.EngineName
		days    int
		restart int64
		binlog  bool
	}{
		{"postgres", kurabe.Postgres, 0, 0, false},
		{"postgres with backups", kurabe.Postgres, 1, 0, false},
		{"mariadb", kurabe.MariaDB, 0, 1, true},
		{"mariadb with backups", kurabe.MariaDB, 1, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newGroupFleet(c.engine, false)
			f.w.Spec.Now.MultiAZ, f.w.Spec.Now.RetentionDays = false, c.days
			f.calm(t)
			want := func(what string, boot int64, binlog bool) {
				t.Helper()
				if a := f.w.Members[f.primary()]; a.Boot != boot || a.Binlog != binlog || a.Log != (c.days > 0) {
					t.Fatalf("%s: boot %d, binary log %v, log %v; want boot %d, binary log %v", what, a.Boot, a.Binlog, a.Log, boot, binlog)
				}
			}
			want("at first", 1, false)
			zones := func(multi bool) { f.wish(t, func(s *kurabe.InstanceSpec) { s.Now.MultiAZ = multi }) }
			zones(true)
			f.recovers(t)
			want("two zones", 1+c.restart, c.binlog)
			zones(false)
			f.recovers(t)
			want("one zone", 1+c.restart, c.binlog)
			zones(true)
			want("two zones again", 1+c.restart, c.binlog)
			zones(false)
			f.wish(t, func(s *kurabe.InstanceSpec) { s.RebootSeq++ })
			f.recovers(t)
			if a := f.w.Members[f.primary()]; a.Binlog || a.Boot == 1+c.restart {
				t.Errorf("after a reboot: boot %d, binary log %v", a.Boot, a.Binlog)
			}
		})
	}
}

// With a standby, backups begin and cease as the server runs.
func TestBackupsBesideAStandby(t *testing.T) {
	f := newGroupFleet(kurabe.MariaDB, false)
	f.calm(t)
	for _, days := range []int{1, 0, 1} {
		f.wish(t, func(s *kurabe.InstanceSpec) { s.Now.RetentionDays = days })
		f.recovers(t)
		if a := f.w.Members[f.primary()]; a.Boot != 1 || a.Log != (days > 0) || a.Binlog != (days == 0) {
			t.Errorf("%d days: boot %d, log %v, binary log %v", days, a.Boot, a.Log, a.Binlog)
		}
	}
}
