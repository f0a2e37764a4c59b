package plan_test

import (
	"slices"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/plan/backup"
)

// keptSim is an instance whose backups are kept for a week, as it becomes available.
func keptSim(t tester) *sim {
	s := newSim(t)
	s.w.Spec.Now.RetentionDays = 7
	s.step()
	s.obey()
	return s
}

// backUp plays the snapshot that was planned: it is taken now, in the given state.
func (s *sim) backUp(r plan.Result, state kurabe.SnapshotState) {
	s.t.Helper()
	if r.Snapshot == nil {
		s.t.Fatalf("no snapshot is planned: %s, %v", s.w.Status.State, r.Reasons)
	}
	for _, b := range s.w.Backups {
		if b.Name == r.Snapshot.Name {
			s.t.Fatalf("two snapshots are called %s", b.Name)
		}
	}
	s.w.Backups = append(slices.Clone(s.w.Backups), backup.Backup{Name: r.Snapshot.Name, CreatedAt: r.Snapshot.CreatedAt, TakenAt: s.w.Now, State: state})
	s.w.BackingUp = state == kurabe.SnapshotCreating
}

func (s *sim) logSince(at time.Time, ended string) {
	r := *s.w.Report
	r.LogBegan, r.LogSince, r.LogEnded = at, at, ended
	s.w.Report = &r
}

func TestFirstBackup(t *testing.T) {
	s := keptSim(t)
	r := s.step()
	s.want(kurabe.StateBackingUp)
	if r.Snapshot != nil {
		t.Fatal("taken before its log is followed: no moment could be restored from it")
	}
	if !s.w.Assignment.Log {
		t.Fatal("the host is not told to keep the log")
	}
	s.logSince(s.w.Now, "")
	s.w.Now = s.w.Now.Add(time.Second)
	r = s.step()
	s.backUp(r, kurabe.SnapshotCreating)
	if n := r.Snapshot; n.Name != "rds:shop-"+s.w.Now.Format("2006-01-02-15-04") || n.Kind != kurabe.SnapshotAutomated || n.Source.Name != "shop" || n.Source.Settings.RetentionDays != 7 {
		t.Fatalf("%+v", n)
	}
	s.want(kurabe.StateBackingUp)
	s.w.BackingUp, s.w.Backups[0].State = false, kurabe.SnapshotAvailable
	if r := s.step(); r.Snapshot != nil {
		t.Fatalf("another one at once: %v", r.Reasons)
	}
	s.want(kurabe.StateAvailable)
}

func TestFirstBackupWithoutALog(t *testing.T) {
	s := keptSim(t)
	s.step()
	s.w.Now = s.w.Now.Add(2 * time.Minute)
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	s.w.Now = s.w.Now.Add(time.Hour)
	s.logSince(s.w.Now, "")
	s.w.Now = s.w.Now.Add(time.Second)
	if r := s.step(); r.Snapshot == nil {
		t.Fatalf("the log that is followed at last has no snapshot: %v", r.Reasons)
	}
}

func TestDailyBackup(t *testing.T) {
	s := keptSim(t)
	s.logSince(s.w.Now, "")
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	day := s.w.Now.Truncate(24*time.Hour).AddDate(0, 0, 1)
	for _, c := range []struct {
		at  time.Duration
		due bool
	}{{2*time.Hour + 59*time.Minute, false}, {3 * time.Hour, true}, {3*time.Hour + 20*time.Minute, false}, {12 * time.Hour, false}, {27*time.Hour + 29*time.Minute, true}} {
		s.w.Now = day.Add(c.at)
		r := s.step()
		if (r.Snapshot != nil) != c.due {
			t.Fatalf("at %s: planned %v, want %v: %v", s.w.Now, r.Snapshot != nil, c.due, r.Reasons)
		}
		if c.due {
			s.backUp(r, kurabe.SnapshotAvailable)
		}
		s.step()
		s.want(kurabe.StateAvailable)
	}
	s.w.Now = s.w.Now.Add(37 * time.Hour)
	if r := s.step(); r.Snapshot == nil {
		t.Fatal("the window was missed, and the newest is older than 36 hours")
	}
}

func TestFailedBackupIsTriedAgain(t *testing.T) {
	s := keptSim(t)
	s.logSince(s.w.Now, "")
	s.backUp(s.step(), kurabe.SnapshotFailed)
	r := s.step()
	if r.Snapshot != nil {
		t.Fatal("tried again at once")
	}
	s.want(kurabe.StateAvailable)
	s.w.Now = r.LookAgain
	s.backUp(s.step(), kurabe.SnapshotAvailable)
}

// The log begins anew at a moment at which an older snapshot was there already: only
// its position says that it is the older one.
func TestClockGoesBack(t *testing.T) {
	s := keptSim(t)
	at := func(n int64) kurabe.LogPosition { return kurabe.LogPosition{File: "000001", Offset: n} }
	s.logSince(s.w.Now, "")
	s.w.Now = s.w.Now.Add(30 * time.Minute)
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	s.w.Backups[0].Position = at(500)
	s.step()
	s.w.Now = s.w.Now.Add(-time.Hour)
	s.logSince(s.w.Now, "the clock went back")
	s.w.Report.LogFrom = at(700)
	s.w.Now = s.w.Now.Add(time.Second)
	s.backUp(s.step(), kurabe.SnapshotCreating)
	if r := s.step(); r.Snapshot != nil {
		t.Fatalf("another while one is in the making: %v", r.Reasons)
	}
	s.w.BackingUp, s.w.Backups[1].State, s.w.Backups[1].Position = false, kurabe.SnapshotAvailable, at(800)
	for range 3 {
		if r := s.step(); r.Snapshot != nil {
			t.Fatalf("another one: %v", r.Reasons)
		}
		s.w.Now = s.w.Now.Add(time.Minute)
	}
}

// Files of the database that were brought back from elsewhere have an older log: what
// was taken before lies further on in it, and is the older one all the same.
func TestLogGoesBack(t *testing.T) {
	s := keptSim(t)
	at := func(n int64) kurabe.LogPosition { return kurabe.LogPosition{File: "000001", Offset: n} }
	s.logSince(s.w.Now, "")
	s.w.Report.LogFrom = at(100)
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	s.w.Backups[0].Position, s.w.Backups[0].Untrusted = at(500), true
	s.w.Now = s.w.Now.Add(40 * time.Hour)
	s.logSince(s.w.Now, "the log went back")
	s.w.Report.LogFrom = at(300)
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	s.w.Backups[1].Position = at(310)
	for range 5 {
		if r := s.step(); r.Snapshot != nil {
			t.Fatalf("another one: %v", r.Reasons)
		}
		s.want(kurabe.StateAvailable)
		s.w.Now = s.w.Now.Add(time.Minute)
	}
}

// A clock that goes back by days must neither put off the daily snapshot until it has
// caught up, nor the one that a gap asks for.
func TestClockGoesFarBack(t *testing.T) {
	s := keptSim(t)
	s.logSince(s.w.Now, "")
	for range 8 {
		s.backUp(s.step(), kurabe.SnapshotAvailable)
		s.w.Now = s.w.Now.Add(37 * time.Hour)
	}
	s.w.Now = monday.Add(-24 * time.Hour)
	s.logSince(time.Time{}, "the clock went back")
	r := s.step()
	if r.Snapshot != nil || r.LookAgain.Hour() != 3 || r.LookAgain.Sub(s.w.Now) > 24*time.Hour {
		t.Fatalf("planned %v, looks again at %s", r.Snapshot, r.LookAgain)
	}
	s.w.Now = r.LookAgain
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	s.w.Now = s.w.Now.Add(time.Minute)
	if r := s.step(); r.Snapshot != nil {
		t.Fatalf("another one in the same window: %v", r.Reasons)
	}
	s.logSince(s.w.Now, "the clock went back")
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	if r := s.step(); r.Snapshot != nil {
		t.Fatalf("another one: %v", r.Reasons)
	}
}

// Where nothing was written since, the position does not tell them apart.
func TestIdleClockGoesBack(t *testing.T) {
	s := keptSim(t)
	idle := kurabe.LogPosition{File: "000001", Offset: 500}
	s.logSince(s.w.Now, "")
	s.w.Now = s.w.Now.Add(30 * time.Minute)
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	s.w.Backups[0].Position = idle
	s.w.Now = s.w.Now.Add(-time.Hour)
	s.logSince(s.w.Now, "the clock went back")
	s.w.Report.LogFrom = idle
	s.w.Now = s.w.Now.Add(time.Second)
	s.backUp(s.step(), kurabe.SnapshotAvailable) // no moment until the clock has caught up has another
	s.w.Backups[1].Position = idle
	if r := s.step(); r.Snapshot != nil {
		t.Fatalf("another one: %v", r.Reasons)
	}
}

// One that fails is not tried again at once because of what was made when the clock
// showed more.
func TestFailureAfterTheClockWentBack(t *testing.T) {
	s := keptSim(t)
	s.logSince(s.w.Now, "")
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	s.w.Now = s.w.Now.Add(-time.Hour)
	s.logSince(s.w.Now, "the clock went back")
	s.w.Report.LogFrom = kurabe.LogPosition{File: "000001", Offset: 500}
	s.backUp(s.step(), kurabe.SnapshotFailed)
	r := s.step()
	if again := s.w.Now.Add(10 * time.Minute); r.Snapshot != nil || !r.LookAgain.Equal(again) {
		t.Fatalf("planned %v, looks again at %s", r.Snapshot, r.LookAgain)
	}
	s.w.Now = r.LookAgain
	s.backUp(s.step(), kurabe.SnapshotAvailable)
}

func TestGapInTheLog(t *testing.T) {
	s := keptSim(t)
	s.logSince(s.w.Now, "")
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	s.step()
	s.w.Now = s.w.Now.Add(time.Hour)
	s.logSince(time.Time{}, "segment 7 is gone")
	if r := s.step(); r.Snapshot != nil {
		t.Fatal("a snapshot without a log to go with it")
	}
	s.wantEvent("KURABE-EVENT-0004")
	announced := len(s.events)
	s.step()
	if len(s.events) != announced {
		t.Fatal("told twice")
	}
	for range 20 {
		s.w.Now = s.w.Now.Add(time.Second)
		s.logSince(s.w.Now, "segment 7 is gone")
		s.w.Now = s.w.Now.Add(time.Second)
		r := s.step()
		if r.Snapshot == nil {
			break
		}
		s.backUp(r, kurabe.SnapshotAvailable)
	}
	s.wantEvent("KURABE-EVENT-0005")
	if n := len(s.w.Backups); n < 3 || n > 7 {
		t.Fatalf("%d snapshots within a minute of gaps", n)
	}
	r := s.step()
	s.w.Now = r.LookAgain
	if r := s.step(); r.Snapshot == nil {
		t.Fatalf("no snapshot when the pause is over: %v", r.Reasons)
	}
}

func TestNoBackups(t *testing.T) {
	t.Run("with a retention of 0", func(t *testing.T) {
		s := newSim(t)
		s.settle()
		s.want(kurabe.StateAvailable)
		if s.w.Assignment.Log {
			t.Fatal("the log is kept all the same")
		}
	})
	t.Run("MariaDB restarts to begin and to end", func(t *testing.T) {
		for _, engine := range []kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB} {
			s := newSim(t)
			s.w.Spec.Engine = engine
			s.settle()
			boot := s.w.Assignment.Boot
			s.w.Spec.Now.RetentionDays, s.w.Spec.Revision = 3, 2
			s.step()
			if restarts := s.w.Assignment.Boot > boot; restarts != (engine == kurabe.MariaDB) || !s.w.Assignment.Log {
				t.Fatalf("%s: restarts %v, log %v", engine, restarts, s.w.Assignment.Log)
			}
		}
	})
	t.Run("an instance goes after its backups, or leaves them", func(t *testing.T) {
		for _, keep := range []bool{false, true} {
			s := keptSim(t)
			s.logSince(s.w.Now, "")
			s.backUp(s.step(), kurabe.SnapshotAvailable)
			s.w.Spec.Deleting = &kurabe.Deletion{At: s.w.Now, KeepBackups: keep}
			s.step()
			s.obey()
			if r := s.step(); r.Gone != keep {
				t.Fatalf("kept %v: gone %v, %v", keep, r.Gone, r.Reasons)
			}
			s.w.Backups = nil
			if r := s.step(); !keep && !r.Gone {
				t.Fatal("it never goes")
			}
		}
	})
}

func TestUntrustedBackupIsReplacedOnce(t *testing.T) {
	s := keptSim(t)
	made := func(name string, age time.Duration, untrusted bool) backup.Backup {
		at := s.w.Now.Add(-age)
		return backup.Backup{Name: name, CreatedAt: at, TakenAt: at, State: kurabe.SnapshotAvailable, Untrusted: untrusted}
	}
	s.settle()
	for _, c := range []struct {
		name    string
		backups []backup.Backup
		fresh   bool
	}{
		{"good ones", []backup.Backup{made("a", 3*time.Hour, false), made("b", 2*time.Hour, false)}, false},
		{"the newest is bad", []backup.Backup{made("a", 3*time.Hour, false), made("b", 2*time.Hour, true)}, true},
		{"the only one is bad", []backup.Backup{made("b", 2*time.Hour, true)}, true},
		{"an older one is bad", []backup.Backup{made("a", 3*time.Hour, true), made("b", 2*time.Hour, false)}, false},
		{"the one that replaced a bad one is bad", []backup.Backup{made("a", 3*time.Hour, true), made("b", 2*time.Hour, true)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := s.w
			w.Backups = c.backups
			if r := plan.Next(w); (r.Snapshot != nil) != c.fresh {
				t.Errorf("%+v, %v", r.Snapshot, r.Reasons)
			}
		})
	}
}
