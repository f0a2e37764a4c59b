package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kurabe"
	"kurabe/internal/plan"
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
	s.w.Backups = append(slices.Clone(s.w.Backups), plan.Backup{Name: r.Snapshot.Name, CreatedAt: r.Snapshot.CreatedAt, TakenAt: s.w.Now, State: state})
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

// TestRetention checks that a snapshot is kept exactly as long as a moment within the
// retention needs it.
func TestRetention(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		days := rapid.IntRange(1, 35).Draw(rt, "days")
		hours := rapid.SliceOfNDistinct(rapid.IntRange(0, 24*60), 1, 8, rapid.ID[int]).Draw(rt, "taken")
		slices.Sort(hours)
		now := monday.Add(time.Duration(rapid.IntRange(24*60, 24*90).Draw(rt, "now")) * time.Hour)
		oldest := now.AddDate(0, 0, -days) // the first moment that was promised
		for n, h := range hours {
			taken := monday.Add(time.Duration(h) * time.Hour)
			r := &plan.Retention{Days: days}
			if n+1 < len(hours) {
				r.Newer = monday.Add(time.Duration(hours[n+1]) * time.Hour)
			}
			s := newSnapSim(rt)
			s.w.Spec.Kind, s.w.Now, s.w.Retention = kurabe.SnapshotAutomated, now, r
			s.w.Status = &kurabe.SnapshotStatus{ID: "snap-a", SpecRevision: 1, State: kurabe.SnapshotAvailable, Host: "h1", Facts: kurabe.SnapshotFacts{TakenAt: taken, Percent: 100}}
			s.w.Assignment = &kurabe.SnapshotAssignment{Generation: 1, Host: "h1", Snapshot: "snap-a", Goal: kurabe.SnapshotPresent, Of: "db-A", Kind: kurabe.SnapshotAutomated, Source: s.w.Spec.Source, Name: s.w.Spec.Name}
			s.w.Report = &kurabe.SnapshotReport{Host: "h1", Snapshot: "snap-a", Generation: 1, Done: true, Facts: s.w.Status.Facts}
			result := plan.NextSnapshot(s.w)
			goes := result.Assignment != nil && result.Assignment.Goal == kurabe.SnapshotAbsent
			// It is needed for the moments from taken to Newer; are any of them promised?
			needed := r.Newer.IsZero() || r.Newer.After(oldest)
			if goes == needed {
				rt.Fatalf("taken %s, newer %s, promised from %s: goes %v", taken, r.Newer, oldest, goes)
			}
			if !goes && !r.Newer.IsZero() && !result.LookAgain.Equal(r.Newer.AddDate(0, 0, days)) {
				rt.Fatalf("looks again at %s", result.LookAgain)
			}
		}
	})
}

// One that was there and is lost may be found again: its disk was mounted late, say. One
// that never was there goes as soon as another is.
func TestRetentionOfFailed(t *testing.T) {
	for _, c := range []struct {
		name  string
		taken time.Time
		newer time.Time
		goes  bool
	}{
		{"never taken", time.Time{}, monday.Add(-time.Hour), true},
		{"never taken, the newest", time.Time{}, time.Time{}, false},
		{"lost", monday.AddDate(0, 0, -1), monday.Add(-time.Hour), false},
		{"lost, and needless", monday.AddDate(0, 0, -9), monday.AddDate(0, 0, -8), true},
	} {
		b := plan.Backup{TakenAt: c.taken, State: kurabe.SnapshotFailed}
		if got := goes(t, b, monday, plan.Retention{Days: 7, Newer: c.newer}); got != c.goes {
			t.Errorf("%s: goes %v", c.name, got)
		}
	}
}

func TestRetentionEnds(t *testing.T) {
	for name, c := range map[string]struct {
		r    plan.Retention
		want string
	}{
		"switched off":                   {plan.Retention{Days: 0}, "switched off"},
		"deleted with its instance":      {plan.Retention{Days: 7, Dropped: true}, "deleted together"},
		"its deleted instance's is over": {plan.Retention{Days: 7, Until: monday.AddDate(0, 0, -7)}, "retention of its deleted instance"},
		"still within it":                {plan.Retention{Days: 7, Until: monday.AddDate(0, 0, -6)}, ""},
		"the newest of all":              {plan.Retention{Days: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSnapSim(t)
			s.w.Spec.Kind, s.w.Retention = kurabe.SnapshotAutomated, &c.r
			s.w.Status = &kurabe.SnapshotStatus{ID: "snap-a", State: kurabe.SnapshotAvailable, Host: "h1"}
			s.w.Assignment = &kurabe.SnapshotAssignment{Generation: 1, Host: "h1", Snapshot: "snap-a", Goal: kurabe.SnapshotPresent}
			r := plan.NextSnapshot(s.w)
			goes := r.Assignment != nil && r.Assignment.Goal == kurabe.SnapshotAbsent
			if goes != (c.want != "") || goes && !strings.Contains(strings.Join(r.Reasons, "; "), c.want) {
				t.Fatalf("goes %v: %v", goes, r.Reasons)
			}
		})
	}
}
