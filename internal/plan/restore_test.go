package plan_test

import (
	"strings"
	"testing"

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
