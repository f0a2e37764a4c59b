package plan_test

import (
	"slices"
	"strings"
	"testing"

	"kurabe"
)

// failoverEvents are those of a failover, and of a conversion, of an instance or a cluster.
var failoverEvents = []string{
	"RDS-EVENT-0013", "RDS-EVENT-0015", "RDS-EVENT-0049", "RDS-EVENT-0034", "RDS-EVENT-0050", "RDS-EVENT-0051", "RDS-EVENT-0065", "KURABE-EVENT-0033",
	"RDS-EVENT-0069", "RDS-EVENT-0070", "RDS-EVENT-0071", "RDS-EVENT-0073", "RDS-EVENT-0024", "RDS-EVENT-0025", "RDS-EVENT-0029", "RDS-EVENT-0030",
}

// saga are the numbers of what was told of failovers and conversions since an event.
func (f *groupFleet) saga(since int) string {
	var ids []string
	for _, e := range f.events[since:] {
		if slices.Contains(failoverEvents, e.ID) {
			ids = append(ids, e.ID[len(e.ID)-4:])
		}
	}
	return strings.Join(ids, " ")
}

// checkTold: what was told to have begun has come to an end, in these words. What a
// conversion to one zone has ended is told of by that.
func (f *groupFleet) checkTold(t tester) {
	open := false
	for _, e := range f.events {
		switch e.ID {
		case "RDS-EVENT-0013":
			if open {
				t.Fatalf("a failover has no end before the next one: %s", f.saga(0))
			}
			open = true
		case "RDS-EVENT-0049", "RDS-EVENT-0065", "RDS-EVENT-0029":
			open = false
		}
	}
	for begun, ends := range map[string][]string{
		"RDS-EVENT-0013": {"RDS-EVENT-0049", "RDS-EVENT-0065", "RDS-EVENT-0029"},
		"RDS-EVENT-0050": {"RDS-EVENT-0051", "RDS-EVENT-0049", "RDS-EVENT-0029"},
		"RDS-EVENT-0073": {"RDS-EVENT-0071", "RDS-EVENT-0069", "RDS-EVENT-0029"},
		"RDS-EVENT-0070": {"RDS-EVENT-0071", "RDS-EVENT-0029"},
		"RDS-EVENT-0030": {"RDS-EVENT-0029", "RDS-EVENT-0025"}, // or the user has changed his mind
	} {
		last := func(ids ...string) int {
			for n := len(f.events) - 1; n >= 0; n-- {
				if slices.Contains(ids, f.events[n].ID) {
					return n
				}
			}
			return -1
		}
		if last(begun) > last(ends...) {
			t.Fatalf("%s has no end: %s", begun, f.saga(0))
		}
	}
}

// whole is a fleet with every standby, and how many events it has had.
func whole(t *testing.T, cluster bool) (*groupFleet, int) {
	t.Helper()
	f := newGroupFleet(kurabe.Postgres, cluster)
	for range 2 {
		f.calm(t)
	}
	if len(f.w.Group.SyncSet) != f.wanted() {
		t.Fatalf("%+v", f.w.Group)
	}
	return f, len(f.events)
}

func (f *groupFleet) rests(t *testing.T) {
	t.Helper()
	for range 3 {
		f.calm(t)
	}
}

func TestConversionsAreTold(t *testing.T) {
	f, from := whole(t, false)
	for _, c := range []struct {
		multiAZ     bool
		begun, done string
	}{{false, "0030", "0030 0029"}, {true, "0024", "0024 0025"}} {
		f.ask(func(s *kurabe.InstanceSpec) { s.Now.MultiAZ = c.multiAZ })
		if f.step(t); f.saga(from) != c.begun {
			t.Errorf("Multi-AZ %v: told are %q at the beginning", c.multiAZ, f.saga(from))
		}
		if f.rests(t); f.saga(from) != c.done {
			t.Errorf("Multi-AZ %v: told are %q in the end", c.multiAZ, f.saga(from))
		}
		from = len(f.events)
	}
}

func TestFailoversAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		cluster bool
		act     func(f *groupFleet)
		want    string
	}{
		"a death":                 {false, func(f *groupFleet) { f.servers[f.primary()].die() }, "0013 0015 0049"},
		"in order":                {false, func(f *groupFleet) { f.ask(func(s *kurabe.InstanceSpec) { s.FailoverSeq++ }) }, "0013 0015 0049"},
		"a death in a cluster":    {true, func(f *groupFleet) { f.servers[f.primary()].die() }, "0073 0071"},
		"in order in a cluster":   {true, func(f *groupFleet) { f.ask(func(s *kurabe.InstanceSpec) { s.FailoverSeq++ }) }, "0073 0071"},
		"one that comes too late": {false, (*groupFleet).askTooLate, "0013 0034 0015 0049"},
		"too late in a cluster":   {true, (*groupFleet).askTooLate, "0073 0034 0071"},
	} {
		t.Run(name, func(t *testing.T) {
			f, from := whole(t, c.cluster)
			c.act(f)
			if f.rests(t); f.saga(from) != c.want {
				t.Errorf("told are %q, want %q", f.saga(from), c.want)
			}
			to := ": " + kurabe.ServerName(f.w.Spec.Name, f.primary())
			for _, e := range f.events[from:] {
				named := e.ID == "RDS-EVENT-0073" || e.ID == "RDS-EVENT-0071"
				if named != strings.Contains(e.Message, to) || named != (e.SourceType == "db-cluster") {
					t.Errorf("%s writes: %+v", to, e)
				}
			}
		})
	}
}

// askTooLate asks for a failover at the moment at which the primary dies.
func (f *groupFleet) askTooLate() {
	f.servers[f.primary()].die()
	f.report(f.servers[f.primary()])
	f.deliver(f.servers[f.primary()])
	f.ask(func(s *kurabe.InstanceSpec) { s.FailoverSeq++ })
}

// A cluster's name is RDS's event, at once and in the maintenance window; an instance's is not.
func TestRenamesAreTold(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		f, from := whole(t, cluster)
		f.ask(func(s *kurabe.InstanceSpec) { s.Name = "till" })
		f.rests(t)
		f.window(false)
		f.ask(func(s *kurabe.InstanceSpec) { s.NextName, s.NextSeq = "shelf", s.NextSeq+1 })
		f.rests(t)
		f.window(true)
		f.rests(t)
		var said []string
		for _, e := range f.events[from:] {
			if e.ID == "RDS-EVENT-0172" {
				said = append(said, e.Message)
			}
		}
		want := []string(nil)
		if cluster {
			want = []string{"Renamed cluster from shop to till", "Renamed cluster from till to shelf"}
		}
		if !slices.Equal(said, want) {
			t.Errorf("cluster %v: %q, want %q", cluster, said, want)
		}
	}
}

// A start after a stop is no activation: nothing was lost, and it is told of as a start.
func TestStartIsNoActivation(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		f, from := whole(t, cluster)
		for _, stopped := range []bool{true, false} {
			f.ask(func(s *kurabe.InstanceSpec) {
				s.Power = kurabe.Power{Seq: s.Power.Seq + 1, Stopped: stopped, At: f.w.Now}
			})
			f.rests(t)
		}
		if f.saga(from) != "" || f.times("RDS-EVENT-0088") != 1 || len(f.w.Group.SyncSet) != f.wanted() {
			t.Errorf("cluster %v: told are %q, %+v", cluster, f.saga(from), f.w.Group)
		}
	}
}

// Who is to take over dies before the primary has yielded: that goes on, and it is told when it
// does.
func TestFailoverThatIsCalledOff(t *testing.T) {
	for cluster, want := range map[bool]struct{ soon, end string }{false: {"0013 0033", "0013 0033 0065"}, true: {"0073 0069", "0073 0069"}} {
		f, from := whole(t, cluster)
		f.ask(func(s *kurabe.InstanceSpec) { s.FailoverSeq++ })
		for n := 0; f.w.Group.HandoverTo == "" && n < 5; n++ {
			f.step(t, f.servers[f.primary()])
		}
		to := f.servers[f.w.Group.HandoverTo]
		if to == nil {
			t.Fatalf("cluster %v: nobody is to take over: %+v", cluster, f.w.Group)
		}
		primary := f.primary()
		to.die()
		f.report(to)
		f.deliver(to)
		if f.step(t); f.saga(from) != want.soon {
			t.Errorf("cluster %v: told are %q at first", cluster, f.saga(from))
		}
		if f.rests(t); f.saga(from) != want.end || f.primary() != primary {
			t.Errorf("cluster %v: told are %q in the end, and %s writes", cluster, f.saga(from), f.primary())
		}
	}
}
