package plan_test

import (
	"testing"

	"kurabe"
)

// A failover in order does not go to a standby without room: that would end with the whole
// instance being stopped. It is told, and the failover is done when there is room.
func TestNoFailoverIntoAFullDisk(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine kurabe.EngineName) {
		f, primary, standby, _ := pair(t, engine)
		standby.full = true
		f.calm(t)
		if f.times("KURABE-EVENT-0041") != 1 {
			t.Errorf("told %d times", f.times("KURABE-EVENT-0041"))
		}
		f.ask(func(s *kurabe.InstanceSpec) { s.FailoverSeq++ })
		f.serves(t, primary)
		f.whole(t) // it has every commit nevertheless
		if f.primary() != primary.id || f.w.Group.HandoverTo != "" {
			t.Fatalf("%+v", f.w.Group)
		}
		standby.full = false
		f.calm(t)
		f.calm(t)
		f.whole(t)
		if f.primary() != standby.id || f.times("KURABE-EVENT-0041") != 1 || f.times("KURABE-EVENT-0042") != 1 {
			t.Errorf("%s writes, events %+v", f.primary(), f.events)
		}
	})
}

// So it is with one that takes all of its own storage; of two standbys the other one is chosen.
func TestFailoverGoesWhereThereIsRoom(t *testing.T) {
	for _, first := range []bool{true, false} {
		f := newGroupFleet(kurabe.Postgres, true)
		f.calm(t)
		f.calm(t)
		full, roomy := f.servers[secondServer], f.servers[firstServer.Member(3)]
		if first {
			full, roomy = roomy, full
		}
		full.used = kurabe.GiB * int64(f.w.Spec.Now.StorageGiB)
		f.calm(t)
		f.wish(t, func(s *kurabe.InstanceSpec) { s.FailoverSeq++ })
		f.whole(t)
		if f.primary() != roomy.id || f.times("KURABE-EVENT-0041") != 1 {
			t.Errorf("%s writes and %s has room: %+v", f.primary(), roomy.id, f.events)
		}
	}
}
