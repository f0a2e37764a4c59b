package plan_test

import (
	"slices"
	"testing"
)

// Switching automated backups off and on is told once each; another retention is not.
func TestSwitchingBackupsIsTold(t *testing.T) {
	s := newSim(t)
	s.settle()
	counted := func(step string, disabled, enabled int) {
		t.Helper()
		s.settle()
		if off, on := s.count("RDS-EVENT-0028"), s.count("RDS-EVENT-0032"); off != disabled || on != enabled {
			t.Errorf("%s: %d times disabled and %d enabled, want %d and %d", step, off, on, disabled, enabled)
		}
	}
	retain := func(days int) {
		s.w.Spec.Now.RetentionDays = days
		s.w.Spec.Revision++
	}
	counted("created", 0, 0)
	retain(3)
	counted("on", 0, 1)
	retain(7)
	counted("longer", 0, 1)
	retain(0)
	counted("off", 1, 1)
	retain(1)
	counted("on again", 1, 2)
}

// What a change begins has an end, and users are told of both in RDS's order.
func TestChangesAreTold(t *testing.T) {
	s := newSim(t)
	s.settle()
	told := func(step string, ids ...string) {
		t.Helper()
		begin := len(s.events)
		s.w.Spec.Revision++
		s.settle()
		var got []string
		for _, e := range s.events[begin:] {
			got = append(got, e.ID)
		}
		if !slices.Equal(got, ids) {
			t.Errorf("%s: told of %q, want %q", step, got, ids)
		}
	}
	if ids := s.events; len(ids) != 1 || ids[0].ID != "RDS-EVENT-0005" {
		t.Errorf("the first events are %v", ids)
	}
	s.w.Spec.Now.Class = "db.t3.large"
	told("class", "RDS-EVENT-0012", "RDS-EVENT-0014")
	s.w.Spec.Now.StorageGiB += 10
	told("storage", "RDS-EVENT-0018", "RDS-EVENT-0017")
	s.w.Spec.Now.Class, s.w.Spec.Now.Port = "db.t3.micro", s.w.Spec.Now.Port+1
	told("class and port", "RDS-EVENT-0012", "RDS-EVENT-0014", "KURABE-EVENT-0001")
	s.w.Spec.Monitoring.IntervalSeconds = 15
	told("monitoring", "RDS-EVENT-0078")
	s.w.Spec.ParameterGroup = "another"
	s.w.Spec.ParameterGroupSeq++
	told("group", "RDS-EVENT-0011", "RDS-EVENT-0092")
	s.w.Spec.Power.Stopped, s.w.Spec.Power.At = true, s.w.Now
	s.w.Spec.Power.Seq++
	told("stop", "RDS-EVENT-0087")
	s.w.Spec.Now.StorageGiB += 10
	told("storage of a stopped one", "RDS-EVENT-0018", "RDS-EVENT-0017")
	s.w.Spec.Power.Stopped = false
	s.w.Spec.Power.Seq++
	told("start", "RDS-EVENT-0088")
	s.w.Spec.RebootSeq++
	told("reboot", "RDS-EVENT-0006")
}
