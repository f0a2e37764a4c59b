package plan_test

import (
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/plan/backup"
)

// TestLogCheck: the host of the primary is to check the log once a day, while one is kept; what
// it found is told once, with the time that cannot be restored any more.
func TestLogCheck(t *testing.T) {
	s := newSim(t)
	s.w.Spec.Now.RetentionDays = 7
	s.settle()
	ask := func(after time.Duration) plan.Result {
		t.Helper()
		s.w.Now = s.w.Now.Add(after)
		r := plan.Next(s.w)
		if r.Status != nil {
			s.w.Status = r.Status
		}
		return r
	}
	told := func(r plan.Result) (all []string) {
		for _, e := range r.Events {
			if e.ID == "KURABE-EVENT-0071" {
				all = append(all, e.Message)
			}
		}
		return all
	}
	if r := ask(time.Minute); len(r.Tasks) > 0 {
		t.Fatalf("of an instance that is new: %+v", r.Tasks)
	}
	r := ask(25 * time.Hour)
	if len(r.Tasks) != 1 || r.Tasks[0].Kind != kurabe.KindLogCheck || r.Tasks[0].Host != s.w.Assignment.Host || r.Tasks[0].Generation != 1 {
		t.Fatalf("after a day: %+v", r.Tasks)
	}
	s.w.Tasks = r.Tasks
	if r := ask(48 * time.Hour); len(r.Tasks)+len(r.TasksGone) > 0 {
		t.Fatalf("while it is being done: %+v", r)
	}
	from := s.w.Now.Add(-time.Hour)
	s.w.Backups = []backup.Backup{{ID: "snap-1", State: kurabe.SnapshotAvailable, TakenAt: from, UsableAt: from.Add(30 * time.Minute)}}
	s.w.TaskReports = []kurabe.TaskReport{{Task: s.w.Tasks[0], Done: true, TaskResult: kurabe.TaskResult{Problems: []kurabe.TaskProblem{{From: from, Text: "piece X is missing or damaged"}}}}}
	all := told(ask(time.Minute))
	if len(all) != 1 || !strings.Contains(all[0], "no moment after "+from.UTC().Format(time.RFC3339)+" and before "+from.Add(30*time.Minute).UTC().Format(time.RFC3339)) {
		t.Fatalf("told %q", all)
	}
	if all := told(ask(time.Minute)); len(all) > 0 {
		t.Fatalf("told again: %q", all)
	}
	r2 := ask(25 * time.Hour)
	if len(r2.Tasks) != 1 || r2.Tasks[0].Generation != 2 {
		t.Fatalf("after another day: %+v", r2.Tasks)
	}
	s.w.TaskReports[0].Generation, s.w.TaskReports[0].Problems = 2, nil
	s.w.Tasks = r2.Tasks
	checkedWhenLost(t, s, ask)
	s.w.Tasks[0].Host = "elsewhere" // its primary has moved
	if r := ask(time.Minute); len(r.TasksGone) != 1 || r.TasksGone[0].Host != "elsewhere" || len(r.Tasks) != 1 || r.Tasks[0].Generation != 4 {
		t.Fatalf("after a move: %+v", r)
	}
	s.w.Status.Applied.RetentionDays, s.w.Spec.Now.RetentionDays = 0, 0
	s.w.Spec.Revision++
	if r := ask(time.Minute); len(r.TasksGone) != 1 || len(r.Tasks) > 0 {
		t.Fatalf("without a log: %+v", r)
	}
}

// checkedWhenLost: two times are done; loss of stored log makes the check due at once.
func checkedWhenLost(t *testing.T, s *sim, ask func(time.Duration) plan.Result) {
	t.Helper()
	lost := *s.w.Report
	lost.LogBegan = s.w.Now
	s.w.Report = &lost
	if r := ask(time.Minute); len(r.Tasks) > 0 {
		t.Fatalf("while all is well: %+v", r.Tasks)
	}
	lost.LogEnded, lost.LogDamaged = "piece X is gone", true
	if r := ask(time.Minute); len(r.Tasks) != 1 || r.Tasks[0].Generation != 3 {
		t.Fatalf("when a part of the log is lost: %+v", r.Tasks)
	}
	s.w.Tasks[0].Generation, s.w.TaskReports[0].Generation = 3, 3
	ask(time.Minute)
	lost.LogEnded, lost.LogDamaged, lost.LogBegan = "", false, s.w.Now
	if r := ask(time.Minute); len(r.Tasks) != 1 || r.Tasks[0].Generation != 4 {
		t.Fatalf("when nothing of the log is left: %+v", r.Tasks)
	}
}
