package plan_test

import (
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/plan"
)

// TestBackupDue: what people are told is what the planner then does.
func TestBackupDue(t *testing.T) {
	due := func(s *sim, words string) time.Time {
		t.Helper()
		at, why := plan.BackupDue(s.w)
		if !strings.Contains(why, words) || words == "" && why != "" {
			t.Fatalf("due %s because %q, want %q", at, why, words)
		}
		return at
	}
	s := newSim(t)
	due(s, "") // never planned
	s = keptSim(t)
	s.step()
	if at := due(s, "waits for the log"); !at.IsZero() {
		t.Fatalf("due at %s", at)
	}
	s.logSince(s.w.Now, "")
	if at := due(s, "its first"); !at.Equal(s.w.Now) {
		t.Fatalf("due at %s, now is %s", at, s.w.Now)
	}
	s.backUp(s.step(), kurabe.SnapshotFailed)
	s.w.Now = due(s, "failed")
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	at := due(s, "the backup window 03:00-03:30 UTC opens")
	if at.Hour() != 3 || at.Minute() != 0 {
		t.Fatalf("due at %s", at)
	}
	s.w.Now = at.Add(-time.Second)
	if r := s.step(); r.Snapshot != nil {
		t.Fatalf("made before it is due: %v", r.Reasons)
	}
	s.w.Now = at
	s.backUp(s.step(), kurabe.SnapshotAvailable)
	r := *s.w.Report
	s.w.Report = nil
	due(s, "not reported")
	s.w.Report = &r
	s.w.Spec.Deleting = &kurabe.Deletion{At: s.w.Now}
	due(s, "")
}
