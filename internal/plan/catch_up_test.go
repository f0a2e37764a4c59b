package plan_test

import (
	"testing"

	"kurabe"
)

// A failover in order waits for a standby that is behind, since clients would wait for it
// otherwise, but not for ever.
func TestFailoverWaitsForWhoIsBehind(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine kurabe.EngineName) {
		for _, catchesUp := range []bool{true, false} {
			f, primary, standby, _ := pair(t, engine)
			f.slow = true
			f.calm(t)
			if !f.w.Status.CatchUpBy.IsZero() {
				t.Fatalf("nobody wants a failover, and one waits until %v", f.w.Status.CatchUpBy)
			}
			f.ask(func(s *kurabe.InstanceSpec) { s.FailoverSeq++ })
			f.calm(t)
			if f.primary() != primary.id || f.w.Group.HandoverTo != "" || f.w.Status.CatchUpBy.IsZero() {
				t.Fatalf("%+v, waits until %v", f.w.Group, f.w.Status.CatchUpBy)
			}
			f.slow = !catchesUp
			f.calm(t)
			if !catchesUp && f.primary() != primary.id {
				t.Errorf("it waits no longer: %+v", f.w.Group)
			}
			for range 3 {
				f.calm(t)
			}
			if f.primary() != standby.id || !f.w.Status.CatchUpBy.IsZero() || f.w.Status.FailoverSeq != f.w.Spec.FailoverSeq {
				t.Errorf("it catches up %v: %+v, waits until %v", catchesUp, f.w.Group, f.w.Status.CatchUpBy)
			}
		}
	})
}
