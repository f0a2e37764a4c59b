package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe"
)

func TestRestoreOfWhatIsDamagedEnds(t *testing.T) {
	for _, c := range []struct {
		kind  kurabe.FailureKind
		words string
	}{
		{kurabe.FailureSnapshot, "the snapshot that it is restored from is damaged"},
		{kurabe.FailureLog, "the log that it is to be restored with is damaged"},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			s := newSim(t)
			s.w.Spec.Origin = &kurabe.Origin{Snapshot: "snap-a", Name: "a"}
			s.step()
			fail := func(attempts int) {
				s.w.Report = &kurabe.InstanceReport{
					Host: "h1", Instance: s.w.Spec.ID, Generation: s.w.Assignment.Generation,
					Failure: &kurabe.Failure{Kind: c.kind, Step: "restore-snapshot", Message: "pack-00002.tar is missing", Attempts: attempts, At: monday},
				}
				s.step()
			}
			fail(kurabe.RestoreTries - 1)
			s.want(kurabe.StateCreating)
			fail(kurabe.RestoreTries)
			s.want(kurabe.StateIncompatibleRestore)
			if reason := s.w.Status.Reason; !strings.Contains(reason, c.words) || !strings.Contains(reason, "pack-00002.tar is missing") {
				t.Errorf("the user is told %q", reason)
			}
			s.wantEvent("KURABE-EVENT-0016")
			told := len(s.events)
			if r := s.step(); r.Status != nil || r.Assignment != nil || len(s.events) > told {
				t.Errorf("no fixed point: %+v", r)
			}
		})
	}
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
