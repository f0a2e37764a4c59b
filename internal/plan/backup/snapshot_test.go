package backup_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kurabe"
	"kurabe/internal/plan/backup"
)

var monday = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// tester is what testing.T and rapid.T share, so that rapid can shrink failures.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// snapSim is one snapshot with an obedient host.
type snapSim struct {
	t      tester
	w      backup.World
	gone   bool
	events []string
}

func newSnapSim(t tester) *snapSim {
	return &snapSim{t: t, w: backup.World{
		Now: monday,
		Spec: &kurabe.SnapshotSpec{ID: "snap-a", Name: "before-release", Revision: 1, Kind: kurabe.SnapshotManual, CreatedAt: monday,
			Source: kurabe.SnapshotSource{Instance: "db-A", Name: "shop", Engine: kurabe.Postgres}},
		Instance: &kurabe.Assignment{Host: "h1", Instance: "db-A", Goal: kurabe.GoalRunning, Generation: 3},
	}}
}

// step plans once and writes the result; it says whether anything changed.
func (s *snapSim) step() bool {
	s.t.Helper()
	before, _ := json.Marshal(s.w)
	r := backup.Next(s.w)
	if after, _ := json.Marshal(s.w); string(before) != string(after) {
		s.t.Fatalf("Next changed its input:\n%s\n%s", before, after)
	}
	if a := r.Assignment; a != nil {
		if have := s.w.Assignment; have != nil && (a.Generation != have.Generation+1 || a.Host != have.Host) {
			s.t.Fatalf("%+v after %+v", a, have)
		}
		if a.Goal == kurabe.SnapshotAbsent && s.w.Spec.Deleting == nil && r.Status.State != kurabe.SnapshotFailed {
			s.t.Fatal("removal that nobody asked for")
		}
		s.w.Assignment = a
	}
	if r.Status != nil {
		was := s.w.Status != nil && s.w.Status.State == kurabe.SnapshotAvailable
		if r.Status.State == kurabe.SnapshotAvailable && !was && (s.w.Report == nil || !s.w.Report.Done) {
			s.t.Fatal("available before the host is done")
		}
		s.w.Status = r.Status
	}
	for _, e := range r.Events {
		s.events = append(s.events, e.ID)
	}
	s.gone = r.Gone
	return r.Assignment != nil || r.Status != nil || len(r.Events) > 0
}

// report has the host say something of the assignment in force.
func (s *snapSim) report(change func(*kurabe.SnapshotReport)) {
	a := s.w.Assignment
	if a == nil {
		return
	}
	r := kurabe.SnapshotReport{Host: a.Host, Snapshot: a.Snapshot, Generation: a.Generation}
	change(&r)
	s.w.Report = &r
}

func (s *snapSim) obey() {
	s.report(func(r *kurabe.SnapshotReport) {
		r.Done = true
		r.Absent = s.w.Assignment.Goal == kurabe.SnapshotAbsent
		if !r.Absent {
			r.Facts = kurabe.SnapshotFacts{Percent: 100, SizeBytes: 1 << 20, Method: kurabe.SnapshotCopied}
		}
	})
}

func (s *snapSim) settle() {
	s.t.Helper()
	for range 10 {
		s.obey()
		if !s.step() || s.gone {
			return
		}
	}
	s.t.Fatalf("no fixed point: %+v", s.w.Status)
}

func (s *snapSim) want(state kurabe.SnapshotState) {
	s.t.Helper()
	if s.w.Status.State != state {
		s.t.Fatalf("state %s (%s), want %s", s.w.Status.State, s.w.Status.Reason, state)
	}
}

func TestSnapshotIsTaken(t *testing.T) {
	s := newSnapSim(t)
	s.step()
	s.want(kurabe.SnapshotCreating)
	if a := s.w.Assignment; a.Host != "h1" || a.Of != "db-A" || a.Goal != kurabe.SnapshotPresent {
		t.Fatalf("%+v", a)
	}
	s.report(func(r *kurabe.SnapshotReport) { r.Facts.Percent = 40 })
	s.step()
	s.want(kurabe.SnapshotCreating)
	if s.w.Status.Facts.Percent != 40 {
		t.Fatalf("%+v", s.w.Status)
	}
	s.settle()
	s.want(kurabe.SnapshotAvailable)
	if want := []string{"RDS-EVENT-0040", "RDS-EVENT-0001", "RDS-EVENT-0042", "RDS-EVENT-0002"}; !slices.Equal(s.events, want) {
		t.Fatalf("events %v, want %v", s.events, want)
	}
}

func TestSnapshotOfNothingFails(t *testing.T) {
	s := newSnapSim(t)
	s.w.Instance = nil
	s.step()
	s.want(kurabe.SnapshotFailed)
	if s.w.Assignment != nil {
		t.Fatalf("assigned: %+v", s.w.Assignment)
	}
	s.w.Spec.Deleting = &kurabe.Deletion{At: monday}
	s.step()
	if !s.gone {
		t.Fatal("a failed snapshot cannot be deleted")
	}
}

func TestSnapshotThatCannotBeTaken(t *testing.T) {
	s := newSnapSim(t)
	s.step()
	for attempts := 1; attempts <= 5; attempts++ {
		s.want(kurabe.SnapshotCreating)
		s.report(func(r *kurabe.SnapshotReport) {
			r.Failure = &kurabe.Failure{Kind: kurabe.FailureStorage, Step: "take-snapshot", Message: "no space left", Attempts: attempts}
		})
		s.step()
	}
	s.want(kurabe.SnapshotFailed)
	if s.w.Assignment.Goal != kurabe.SnapshotAbsent {
		t.Fatal("half a copy is kept")
	}
	s.settle()
	s.want(kurabe.SnapshotFailed)
}

// A folder that somebody removed or damaged is no snapshot any more.
func TestSnapshotThatWasLost(t *testing.T) {
	s := newSnapSim(t)
	s.settle()
	s.report(func(r *kurabe.SnapshotReport) {
		r.Failure = &kurabe.Failure{Step: "observe", Message: "the folder is gone", Attempts: 5}
	})
	s.step()
	s.want(kurabe.SnapshotFailed)
	if s.w.Assignment.Goal != kurabe.SnapshotPresent {
		t.Fatal("what is left of it is to be removed")
	}
	s.settle() // its disk is mounted at last
	s.want(kurabe.SnapshotAvailable)
}

func TestSnapshotIsDeletedWhenNobodyReads(t *testing.T) {
	s := newSnapSim(t)
	s.settle()
	s.w.Spec.Deleting = &kurabe.Deletion{At: monday}
	s.w.Spec.Revision++
	s.w.Readers = []string{"restore of shop2"}
	s.settle()
	s.want(kurabe.SnapshotDeleting)
	if s.gone || s.w.Assignment.Goal == kurabe.SnapshotAbsent {
		t.Fatal("deleted below a restore")
	}
	s.w.Readers = nil
	s.step()
	if s.gone || s.w.Assignment.Goal != kurabe.SnapshotAbsent {
		t.Fatalf("gone %v, %+v", s.gone, s.w.Assignment)
	}
	s.settle()
	if !s.gone {
		t.Fatal("not gone although the host has nothing left")
	}
}

func TestSnapshotCopy(t *testing.T) {
	s := newSnapSim(t)
	s.w.Spec.CopyOf, s.w.Spec.CopyOfName = "snap-b", "older"
	s.w.From = &kurabe.SnapshotStatus{ID: "snap-b", State: kurabe.SnapshotAvailable, Host: "h2"}
	s.step()
	s.want(kurabe.SnapshotCopying)
	if a := s.w.Assignment; a.Host != "h2" || a.From != "snap-b" || a.Of != "" {
		t.Fatalf("%+v", a)
	}
	s.w.From = nil // deleted meanwhile: the copy under way reads on
	s.settle()
	s.want(kurabe.SnapshotAvailable)

	late := newSnapSim(t)
	late.w.Spec.CopyOf = "snap-b"
	late.step()
	late.want(kurabe.SnapshotFailed)
}

// Whatever a host says in whatever order, a plan comes to rest, generations rise
// by one, and nothing is called available that the host does not hold.
func TestSnapshotProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newSnapSim(rt)
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				s.obey()
			case 1:
				s.report(func(r *kurabe.SnapshotReport) {
					r.Failure = &kurabe.Failure{Step: "take-snapshot", Message: "x", Attempts: rapid.IntRange(1, 6).Draw(rt, "attempts")}
				})
			case 2:
				s.w.Spec.Deleting = &kurabe.Deletion{At: monday}
			case 3:
				s.w.Instance = nil
			case 4:
				s.w.Readers = rapid.SliceOfN(rapid.Just("x"), 0, 1).Draw(rt, "readers")
			case 5:
				s.report(func(r *kurabe.SnapshotReport) { r.Generation--; r.Done = true })
				if s.w.Report != nil {
					s.w.Report.Done = s.w.Status.State == kurabe.SnapshotAvailable
				}
			}
			s.step()
			if s.gone {
				return
			}
		}
		s.w.Readers = nil
		s.settle()
		if s.w.Spec.Deleting != nil && !s.gone {
			rt.Fatalf("deleted and still there: %+v", s.w.Status)
		}
	})
}

// A snapshot that was taken of the writer although there were standbys is told of, once.
func TestSnapshotInsteadOfAStandbys(t *testing.T) {
	for why, want := range map[string]bool{"": false, "no standby has every commit": true} {
		s := newSnapSim(t)
		s.step()
		s.report(func(r *kurabe.SnapshotReport) {
			r.Done, r.Facts = true, kurabe.SnapshotFacts{Percent: 100, TakenFrom: "db-A", StandbySkipped: why}
		})
		for s.step() {
		}
		s.report(func(r *kurabe.SnapshotReport) {
			r.Done, r.Facts = true, kurabe.SnapshotFacts{Percent: 100, OccupiedBytes: 1, TakenFrom: "db-A", StandbySkipped: why}
		})
		for s.step() {
		}
		told := 0
		for _, e := range s.events {
			if e == "KURABE-EVENT-0024" {
				told++
			}
		}
		if want != (told == 1) || told > 1 || s.w.Status.Facts.StandbySkipped != why {
			t.Errorf("%q: told %d times, %+v", why, told, s.w.Status.Facts)
		}
	}
}

// Locks of clients do not make a snapshot fail; that it waits is told, once.
func TestSnapshotWaitsForLocks(t *testing.T) {
	s := newSnapSim(t)
	s.step()
	began, told := s.w.Now, 0
	held := func(kind kurabe.FailureKind, attempts int) {
		s.report(func(r *kurabe.SnapshotReport) {
			r.Failure = &kurabe.Failure{Kind: kind, Step: "take-snapshot", Message: "clients hold locks", Attempts: attempts, At: s.w.Now, Since: began}
		})
		s.step()
		told = 0
		for _, e := range s.events {
			if e == "KURABE-EVENT-0062" {
				told++
			}
		}
	}
	for attempts := 1; attempts <= 20; attempts++ {
		held(kurabe.FailureLocked, attempts)
		s.want(kurabe.SnapshotCreating)
		s.w.Now = s.w.Now.Add(time.Minute)
	}
	if told != 2 { // of the snapshot, and of its instance
		t.Errorf("told %d times", told)
	}
	s.w.Now = began.Add(7 * time.Hour)
	held(kurabe.FailureLocked, 99)
	s.want(kurabe.SnapshotFailed)
}

// TestSnapshotOfAFormerWriter: one that was not taken when another host became the writer's
// is not waited for; one that was is good.
func TestSnapshotOfAFormerWriter(t *testing.T) {
	taken := kurabe.SnapshotFacts{TakenAt: monday, Percent: 100}
	for name, c := range map[string]struct {
		change func(*snapSim)
		failed bool
	}{
		"nothing heard":  {func(s *snapSim) { s.w.Report = nil }, true},
		"in the midst":   {func(s *snapSim) { s.report(func(r *kurabe.SnapshotReport) { r.Facts.Percent = 40 }) }, true},
		"done":           {func(s *snapSim) { s.report(func(r *kurabe.SnapshotReport) { r.Done, r.Facts = true, taken }) }, false},
		"the same host":  {func(s *snapSim) { s.w.Instance.Host = "h1" }, false},
		"it is deleted":  {func(s *snapSim) { s.w.Spec.Deleting = &kurabe.Deletion{At: monday} }, false},
		"it goes itself": {func(s *snapSim) { s.w.Instance.Goal = kurabe.GoalAbsent }, false},
	} {
		s := newSnapSim(t)
		s.step()
		s.w.Instance.Host = "h2"
		c.change(s)
		s.step()
		if failed := s.w.Status.State == kurabe.SnapshotFailed && s.w.Status.Reason == backup.WriterMoved; failed != c.failed {
			t.Errorf("%s: %+v", name, s.w.Status)
		}
		if removed := s.w.Assignment.Goal == kurabe.SnapshotAbsent; c.failed && !removed {
			t.Errorf("%s: what there is of it stays", name)
		}
	}
}
