package plan_test

import "testing"

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
