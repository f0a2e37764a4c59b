package plan_test

import (
	"slices"
	"strings"
	"testing"

	"kurabe"
)

// asksFor has the user set what no server starts with, and ask for what it would take effect
// with.
func (f *groupFleet) asksFor(t *testing.T, ask func(s *kurabe.InstanceSpec)) {
	t.Helper()
	f.buffers(impossible)
	f.step(t)
	if !slices.Equal(f.w.Status.PendingParameters, []string{"shared_buffers"}) {
		t.Fatalf("pending: %v", f.w.Status.PendingParameters)
	}
	f.ask(ask)
}

// serves demands that clients write all the time until the fleet has come to rest.
func (f *groupFleet) serves(t *testing.T, primary *server) {
	t.Helper()
	for range 3 {
		acked := len(f.acked)
		f.calm(t)
		if len(f.acked) == acked || !f.opens(primary) {
			t.Fatalf("clients cannot write: %+v, %+v", f.w.Group, f.w.Status)
		}
	}
}

// usable says whether the instance is available, or would be if somebody took the snapshot that
// backups begin with.
func (f *groupFleet) usable() bool {
	now := f.w.Status.State
	return now == kurabe.StateAvailable || now == kurabe.StateBackingUp && f.w.Spec.Now.KeepsLog()
}

// whole demands that it is, with every standby.
func (f *groupFleet) whole(t *testing.T) {
	t.Helper()
	if !f.usable() || len(f.w.Group.SyncSet) != f.wanted() {
		t.Fatalf("%+v, %+v", f.w.Group, f.w.Status)
	}
}

func eachEngine(t *testing.T, test func(t *testing.T, engine kurabe.EngineName)) {
	for _, engine := range []kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB} {
		t.Run(string(engine), func(t *testing.T) { test(t, engine) })
	}
}

// Parameters that the standby cannot start with leave the primary alone, and the standby gets
// back what it had: what the user has set waits for a reboot again. So does what is mended, and
// nobody restarts for what is as it was.
func TestRefusedParametersAreTakenBack(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine kurabe.EngineName) {
		f, primary, standby, boot := pair(t, engine)
		f.asksFor(t, func(s *kurabe.InstanceSpec) { s.FailoverSeq++ })
		f.serves(t, primary)
		f.whole(t)
		if primary.boot != boot || f.primary() != primary.id || !standby.running || f.w.Members[standby.id].Settings["shared_buffers"] == impossible {
			t.Errorf("writer %s, boot %d after %d; the standby has %+v", f.primary(), primary.boot, boot, f.w.Members[standby.id])
		}
		for id, want := range map[string]int{"KURABE-EVENT-0043": 1, "KURABE-EVENT-0044": 1, "KURABE-EVENT-0031": 1, "RDS-EVENT-0013": 0} {
			if f.times(id) != want {
				t.Errorf("%s was told %d times, want %d", id, f.times(id), want)
			}
		}
		if s := f.w.Status; s.ParameterApply != "pending-reboot" || !slices.Equal(s.PendingParameters, []string{"shared_buffers"}) || s.FailoverSeq != f.w.Spec.FailoverSeq {
			t.Errorf("%+v", s)
		}
		f.w.Parameters.Values["work_mem"] = kurabe.ParameterValue{Value: "8192", Method: kurabe.ApplyImmediate}
		f.serves(t, primary)
		f.buffers("")
		f.serves(t, primary)
		f.whole(t)
		if s := f.w.Status; s.ParameterApply != "in-sync" || primary.boot != boot || primary.obeyed.Settings["work_mem"] != "8192" || standby.obeyed.Settings["work_mem"] != "8192" {
			t.Errorf("boot %d after %d, %+v, %+v", primary.boot, boot, s, primary.obeyed)
		}
		f.buffers("4096")
		f.step(t)
		f.wish(t, func(s *kurabe.InstanceSpec) { s.FailoverSeq++ })
		f.whole(t)
		if f.primary() != standby.id || primary.obeyed.Settings["shared_buffers"] != "4096" || standby.obeyed.Settings["shared_buffers"] != "4096" {
			t.Errorf("%s writes with %v, beside %v", f.primary(), standby.obeyed.Settings, primary.obeyed.Settings)
		}
	})
}

// A restart in place is the user's own: the standby takes over from a primary that does not come
// up again, and keeps what it has.
func TestRefusedInPlace(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine kurabe.EngineName) {
		f, primary, standby, boot := pair(t, engine)
		f.asksFor(t, func(s *kurabe.InstanceSpec) { s.RebootSeq++ })
		f.calm(t)
		f.serves(t, standby)
		f.whole(t)
		if f.primary() != standby.id || standby.boot != boot || !primary.running {
			t.Errorf("%s writes, boot %d after %d: %+v", f.primary(), standby.boot, boot, f.w.Status)
		}
	})
}

// A class with which the standby cannot start waits, however long: the primary keeps what it has
// also when the host of that standby is lost. What takes no restart does not wait. When it is
// taken back the standby returns, and nobody else restarts.
func TestRefusedClassWaits(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine kurabe.EngineName) {
		f := newGroupFleet(engine, false)
		f.w.Spec.Now.RetentionDays = 1
		f.spread(2)
		f.calm(t)
		f.calm(t)
		primary, standby := f.servers[firstServer], f.servers[secondServer]
		boot := primary.boot
		f.tooLarge = true
		f.ask(func(s *kurabe.InstanceSpec) { s.Now.Class = "db.t3.small" })
		f.serves(t, primary)
		if s := f.w.Status; primary.boot != boot || !f.usable() || !strings.Contains(s.Reason, "it cannot start so") || f.times("KURABE-EVENT-0043") != 1 {
			t.Fatalf("boot %d after %d: %+v", primary.boot, boot, s)
		}
		f.ask(func(s *kurabe.InstanceSpec) { s.Password = kurabe.Password{Seq: 2, Verifier: "v2"} })
		f.serves(t, primary)
		if primary.obeyed.Password.Seq != 2 {
			t.Errorf("the password waits: %+v", primary.obeyed)
		}
		lost := f.machineOf(standby)
		for range 20 {
			lost.cut = true
			f.work(t, lost)
			f.pass(kurabe.HostLostAfter / 8)
		}
		if f.w.Status == nil || len(f.lost()) != 1 || f.w.Members[primary.id].Boot != boot {
			t.Fatalf("lost %v: %+v", f.lost(), f.w.Members[primary.id])
		}
		f.ask(func(s *kurabe.InstanceSpec) { s.Now.Class = "db.t3.micro" })
		for range 3 {
			f.calm(t)
		}
		f.recovers(t)
		if primary.boot != boot || f.primary() != primary.id {
			t.Errorf("%s writes, boot %d after %d", f.primary(), primary.boot, boot)
		}
	})
}

// A host that was lost before it said anything of what is new keeps nobody waiting.
func TestUntriedClassGoesOn(t *testing.T) {
	f := newGroupFleet(kurabe.Postgres, false)
	f.spread(2)
	f.calm(t)
	f.calm(t)
	primary := f.servers[firstServer]
	boot, lost := primary.boot, f.machineOf(f.servers[secondServer])
	f.ask(func(s *kurabe.InstanceSpec) { s.Now.Class = "db.t3.small" })
	for range 20 {
		lost.cut, f.cut = true, true
		f.work(t, lost)
		f.pass(kurabe.HostLostAfter / 8)
	}
	if len(f.lost()) != 1 || primary.boot == boot || !f.opens(primary) {
		t.Errorf("lost %v, boot %d after %d: %+v", f.lost(), primary.boot, boot, f.w.Group)
	}
}

// In a cluster one reader tries what is new, and the other one goes on beside the primary.
func TestRefusedInACluster(t *testing.T) {
	f := newGroupFleet(kurabe.Postgres, true)
	f.calm(t)
	f.calm(t)
	primary := f.servers[f.primary()]
	boot := primary.boot
	f.tooLarge = true
	f.ask(func(s *kurabe.InstanceSpec) { s.Now.Class = "db.t3.small" })
	f.serves(t, primary)
	down := 0
	for _, s := range f.servers {
		if !s.running {
			down++
		} else if s.boot != boot {
			t.Errorf("%s was restarted", s.id)
		}
	}
	if down != 1 || len(f.w.Group.SyncSet) != 1 {
		t.Fatalf("%d servers are down: %+v", down, f.w.Group)
	}
	f.wish(t, func(s *kurabe.InstanceSpec) { s.FailoverSeq++ })
	if f.primary() == primary.id || f.w.Members[f.primary()].Boot != boot {
		t.Errorf("%s writes, %+v", f.primary(), f.w.Members[f.primary()])
	}
	f.ask(func(s *kurabe.InstanceSpec) { s.Now.Class = "db.t3.micro" })
	f.recovers(t)
}
