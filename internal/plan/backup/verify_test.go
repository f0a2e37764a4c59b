package backup_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/plan/backup"
)

// verifySim is an automated snapshot that was taken at the beginning.
func verifySim(t *testing.T, every time.Duration) *snapSim {
	s := newSnapSim(t)
	s.w.Spec.Kind = kurabe.SnapshotAutomated
	s.w.Retention = &backup.Retention{Days: 30}
	s.w.Verify = backup.Verify{Every: every, Newest: true}
	s.verifySettle()
	s.want(kurabe.SnapshotAvailable)
	s.events = nil
	return s
}

// verifySettle has the host do everything but verify.
func (s *snapSim) verifySettle() {
	s.t.Helper()
	var last *kurabe.Verification
	if s.w.Report != nil {
		last = s.w.Report.Verified
	}
	for range 10 {
		s.obey()
		if s.w.Report != nil {
			s.w.Report.Facts.TakenAt, s.w.Report.Verified = monday, last
		}
		if !s.step() {
			return
		}
	}
	s.t.Fatalf("no fixed point: %+v", s.w.Status)
}

// done has the host report a result.
func (s *snapSim) done(seq int64, at time.Time, problems ...string) {
	s.t.Helper()
	s.w.Report.Verified = &kurabe.Verification{Seq: seq, At: at, OK: len(problems) == 0, Problems: problems, Duration: time.Minute}
	s.verifySettle()
}

func (s *snapSim) wantVerify(seq int64) {
	s.t.Helper()
	if s.w.Assignment.Verify != seq {
		s.t.Fatalf("verification %d is wanted of the host, not %d", s.w.Assignment.Verify, seq)
	}
}

func TestVerifyOnASchedule(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for _, c := range []struct {
		name   string
		change func(*backup.World)
		after  time.Duration // when it is due, 0: never
	}{
		{"an hour after it was taken", func(*backup.World) {}, time.Hour},
		{"one of the instance was verified a day before", func(w *backup.World) { w.Verify.Last = monday.Add(-24 * time.Hour) }, 6 * 24 * time.Hour},
		{"the last verification was long ago", func(w *backup.World) { w.Verify.Last = monday.Add(-30 * 24 * time.Hour) }, time.Hour},
		{"not the newest", func(w *backup.World) { w.Verify.Newest = false }, 0},
		{"switched off", func(w *backup.World) { w.Verify.Every = 0 }, 0},
		{"manual", func(w *backup.World) { w.Spec.Kind, w.Retention = kurabe.SnapshotManual, nil }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := verifySim(t, week)
			c.change(&s.w)
			if c.after == 0 {
				s.w.Now = monday.Add(29 * 24 * time.Hour)
				s.verifySettle()
				s.wantVerify(0)
				return
			}
			s.w.Now = monday.Add(c.after - time.Second)
			if r := backup.Next(s.w); r.Assignment != nil || !r.LookAgain.Equal(monday.Add(c.after)) {
				t.Fatalf("%+v, again at %v", r.Assignment, r.LookAgain)
			}
			s.w.Now = monday.Add(c.after)
			s.verifySettle()
			s.wantVerify(1)
		})
	}
}

func TestVerifyIsToldOnce(t *testing.T) {
	s := verifySim(t, time.Hour)
	s.w.Now = monday.Add(time.Hour)
	s.verifySettle()
	s.w.Report.Verifying = "50 % are copied"
	s.step()
	if s.w.Status.Verifying == "" || len(s.events) > 0 {
		t.Fatalf("%+v, %v", s.w.Status, s.events)
	}
	s.done(1, s.w.Now)
	s.w.Verify.Last = s.w.Now
	if !slices.Equal(s.events, []string{"KURABE-EVENT-0008", "KURABE-EVENT-0008"}) || s.w.Status.Verified == nil || s.w.Status.Verifying != "" {
		t.Fatalf("%v, %+v", s.events, s.w.Status)
	}
	// A host that forgot it does not take it back.
	s.w.Report.Verified = nil
	s.verifySettle()
	if len(s.events) != 2 || s.w.Status.Verified == nil {
		t.Fatalf("%v, %+v", s.events, s.w.Status)
	}
	s.w.Now = s.w.Now.Add(time.Hour)
	s.verifySettle()
	s.wantVerify(2)
}

func TestBadVerification(t *testing.T) {
	s := verifySim(t, time.Hour)
	s.w.Spec.VerifySeq = 1
	s.verifySettle()
	s.wantVerify(1)
	s.w.Report.Verified = &kurabe.Verification{Seq: 1, At: s.w.Now, Problems: []string{"p1", "p2", "p3", "p4"}}
	r := backup.Next(s.w)
	if len(r.Events) != 2 || r.Events[0].ID != "KURABE-EVENT-0009" || r.Events[0].SourceType != "db-snapshot" || r.Events[1].SourceType != "db-instance" ||
		!strings.Contains(r.Events[1].Message, "p3; and 1 more") || !slices.Contains(r.Events[0].Categories, "failure") {
		t.Fatalf("%+v", r.Events)
	}
	s.verifySettle()
	s.want(kurabe.SnapshotAvailable) // a person may still save what is in it
	s.w.Now = monday.Add(20 * 24 * time.Hour)
	s.verifySettle()
	s.wantVerify(1) // the schedule does not repeat it
	s.w.Spec.VerifySeq = 2
	s.verifySettle()
	s.wantVerify(2)
}

func TestWishForAVerification(t *testing.T) {
	s := newSnapSim(t)
	s.w.Spec.VerifySeq = 7
	s.step()
	s.wantVerify(0) // nothing is there yet
	s.verifySettle()
	s.wantVerify(7)
	generation := s.w.Assignment.Generation
	s.done(7, s.w.Now)
	if s.w.Assignment.Generation != generation {
		t.Error("an order that nobody gave")
	}
}

func TestVerificationTellsWhatItCouldNotCheck(t *testing.T) {
	s := verifySim(t, 0)
	s.w.Report.Verified = &kurabe.Verification{
		Seq: 1, At: monday, OK: true, Duration: time.Minute, Notes: []string{"shop.a was not checked", "nor was shop.b", "nor shop.c", "nor shop.d"},
	}
	for _, e := range backup.Next(s.w).Events {
		if strings.Contains(e.Message, "no damage was found") && strings.Contains(e.Message, "; shop.a was not checked; nor was shop.b; nor shop.c; and 1 more") {
			return
		}
	}
	t.Errorf("%+v", backup.Next(s.w).Events)
}

// What a restore has met is the snapshot's newest verification, until a later one.
func TestRestoreMarksTheSnapshot(t *testing.T) {
	s := verifySim(t, 0)
	s.w.Damage = &kurabe.Failure{Kind: kurabe.FailureSnapshot, Message: "pack-00002.tar is missing", Attempts: kurabe.RestoreTries, At: monday.Add(time.Hour)}
	s.verifySettle()
	v := s.w.Status.Verified
	if v == nil || v.OK || len(v.Problems) != 1 || !strings.Contains(v.Problems[0], "pack-00002.tar is missing") || !v.At.Equal(s.w.Damage.At) {
		t.Fatalf("%+v", v)
	}
	if want := []string{"KURABE-EVENT-0009", "KURABE-EVENT-0009"}; !slices.Equal(s.events, want) { // on the snapshot and its instance
		t.Errorf("events %v", s.events)
	}
	s.want(kurabe.SnapshotAvailable)
	// The host says the same again after a restart.
	again := *s.w.Damage
	again.At = again.At.Add(time.Hour)
	s.w.Damage = &again
	s.verifySettle()
	if len(s.events) != 2 {
		t.Errorf("told again: %v", s.events)
	}
	// Its object was brought back from a copy, and somebody wants to know.
	s.w.Spec.VerifySeq++
	s.verifySettle()
	s.done(1, monday.Add(3*time.Hour))
	if v := s.w.Status.Verified; !v.OK || v.Seq != 1 {
		t.Errorf("after a good verification: %+v", v)
	}
}
