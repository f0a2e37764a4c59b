package plan_test

import (
	"strings"
	"testing"

	"kurabe"
)

func TestFinalSnapshot(t *testing.T) {
	deleted := func(t *testing.T) *sim {
		s := newSim(t)
		s.settle()
		s.w.Spec.Deleting = &kurabe.Deletion{At: monday, FinalSnapshot: "snap-f"}
		s.w.Spec.Revision++
		return s
	}
	t.Run("the data stays until it is taken", func(t *testing.T) {
		s := deleted(t)
		for _, final := range []*kurabe.SnapshotStatus{nil, {State: kurabe.SnapshotCreating}} {
			s.w.Final, s.w.BackingUp = final, true
			s.step()
			s.want(kurabe.StateDeleting)
			if s.w.Assignment.Goal == kurabe.GoalAbsent {
				t.Fatal("removed before its final snapshot was taken")
			}
		}
		s.w.Final, s.w.BackingUp = &kurabe.SnapshotStatus{State: kurabe.SnapshotAvailable}, false
		s.step()
		if s.w.Assignment.Goal != kurabe.GoalAbsent {
			t.Fatal("not removed although the final snapshot is there")
		}
	})
	t.Run("one that failed keeps the instance, until it is asked again", func(t *testing.T) {
		s := deleted(t)
		s.w.Final = &kurabe.SnapshotStatus{State: kurabe.SnapshotFailed, Reason: "no space left"}
		s.settle()
		s.want(kurabe.StateFailed)
		if !strings.Contains(s.w.Status.Reason, "no space left") || s.w.Assignment.Goal == kurabe.GoalAbsent {
			t.Fatalf("%+v", s.w.Status)
		}
		s.w.Spec.Deleting = &kurabe.Deletion{At: monday}
		s.w.Spec.Revision++
		s.step()
		s.want(kurabe.StateDeleting)
		if s.w.Assignment.Goal != kurabe.GoalAbsent {
			t.Fatal("kept without need")
		}
	})
}

func TestBackingUp(t *testing.T) {
	s := newSim(t)
	s.settle()
	s.w.BackingUp = true
	s.settle()
	s.want(kurabe.StateBackingUp)
	s.w.Spec.Power = kurabe.Power{Seq: 1, Stopped: true, At: monday}
	s.w.Spec.Revision++
	s.step()
	if s.w.Assignment.Goal != kurabe.GoalRunning {
		t.Fatal("stopped below a snapshot")
	}
	s.w.BackingUp = false
	s.settle()
	s.want(kurabe.StateStopped)
}

func TestRestored(t *testing.T) {
	s := newSim(t)
	s.w.Spec.Origin = &kurabe.Origin{Snapshot: "snap-o", Name: "before-release"}
	s.step()
	if o := s.w.Assignment.Origin; o == nil || o.Snapshot != "snap-o" {
		t.Fatalf("%+v", s.w.Assignment)
	}
	s.settle()
	s.wantEvent("RDS-EVENT-0043")
}
