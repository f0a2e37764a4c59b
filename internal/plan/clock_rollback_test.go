package plan_test

import (
	"testing"
	"time"

	"kurabe"
)

// setBack is by how much the clock goes back.
const setBack = 3 * time.Hour

// A switchover lasts no longer for a clock that is set back, before it has begun or after.
func TestSwitchoverWhileTheClockGoesBack(t *testing.T) {
	for name, c := range map[string]struct {
		waits bool
		most  time.Duration
	}{
		"it waits to begin": {true, 31 * time.Second},
		"it is under way":   {false, 61 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newYielder(t)
			if c.waits {
				s.w.Report.Role.NearlyCaughtUp = nil
			}
			s.turn()
			s.w.Now = s.w.Now.Add(-setBack)
			s.turn()
			if s.told("KURABE-EVENT-0038") != 0 || s.w.Status.SwitchBy.After(s.w.Now.Add(c.most)) {
				t.Fatalf("until %v at %v, %+v", s.w.Status.SwitchBy, s.w.Now, s.w.Group)
			}
			s.w.Now = s.w.Now.Add(c.most)
			s.turn()
			if s.told("KURABE-EVENT-0038") != 1 || s.w.Group.SwitchoverTo != "" || s.w.Assignment.Role.Duty != kurabe.DutyWrite || !s.w.Status.SwitchBy.IsZero() {
				t.Errorf("%+v, %+v", s.w.Group, s.w.Status)
			}
		})
	}
}

// Each pause counts from now where it had begun later than that, and one that had not stays.
func TestPausesWhileTheClockGoesBack(t *testing.T) {
	s := newYielder(t)
	s.w.Spec.Switchover = nil
	began := s.w.Now.Add(-time.Minute)
	mark := func(h *kurabe.InstanceStatus) []*time.Time {
		return []*time.Time{&h.RebuiltAt, &h.StoppedAt, &h.Waits.AnnouncedAt, &h.Storage.ChangedAt, &h.Storage.HandedOverAt}
	}
	for _, at := range mark(s.w.Status) {
		*at = began
	}
	check := func(what string, want time.Time) {
		t.Helper()
		for n, at := range mark(s.w.Status) {
			if !at.Equal(want) {
				t.Errorf("%s: moment %d is %v, not %v", what, n, at, want)
			}
		}
	}
	s.turn()
	check("the clock is right", began)
	s.w.Now = s.w.Now.Add(-setBack)
	back := s.w.Now
	s.turn()
	check("it went back", back)
	s.w.Now = s.w.Now.Add(time.Minute)
	s.turn()
	check("it goes on", back)
}
