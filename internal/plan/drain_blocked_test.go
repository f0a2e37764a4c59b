package plan_test

import (
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/plan"
)

// stay is what cannot leave, and why.
func (f *groupFleet) stay() map[kurabe.InstanceID]string {
	f.read()
	return plan.Next(*f.planned).CannotLeave
}

func TestWhatStaysOnADrainedHost(t *testing.T) {
	other := func(f *groupFleet) kurabe.HostID {
		for _, h := range f.w.Hosts {
			if h.Host != f.where() {
				return h.Host
			}
		}
		return ""
	}
	state := func(s kurabe.State) func(*groupFleet) {
		return func(f *groupFleet) {
			status := *f.w.Status
			status.State = s
			f.w.Status = &status
		}
	}
	for _, c := range []struct {
		name   string
		engine kurabe.EngineName
		hosts  int
		days   int
		change func(*groupFleet)
		wants  string // "": it leaves
	}{
		{"another host", kurabe.Postgres, 2, 1, nil, ""},
		{"no other host", kurabe.Postgres, 1, 1, nil, "no other host"},
		{"the other host is drained too", kurabe.Postgres, 2, 1, func(f *groupFleet) { f.drain(f.where(), other(f)) }, "is drained"},
		{"MariaDB without backups", kurabe.MariaDB, 2, 0, nil, "without automated backups"},
		{"it is being changed", kurabe.Postgres, 2, 1, state(kurabe.StateModifying), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := aloneFleet(t, c.engine, c.hosts, c.days)
			if why := f.stay()[f.primary()]; why != "" {
				t.Fatalf("it stays where it may be: %s", why)
			}
			f.drain(f.where())
			if c.change != nil {
				c.change(f)
			}
			if why := f.stay()[f.primary()]; (why == "") != (c.wants == "") || !strings.Contains(why, c.wants) {
				t.Errorf("it stays because %q; it wants %q", why, c.wants)
			}
		})
	}
}

// Of a pair without a third host each server stays, once no other one can take its place.
func TestPairThatStaysOnADrainedHost(t *testing.T) {
	f := newGroupFleet(kurabe.Postgres, false)
	f.spread(2)
	f.calm(t)
	f.available()
	from := f.w.Members[f.primary()].Host
	f.drain(from)
	if why := f.stay()[f.primary()]; why != "" {
		t.Errorf("a writer whose standby can take over stays: %s", why)
	}
	for range 4 {
		f.calm(t)
		f.available()
	}
	stay := f.stay()
	for id := range stay {
		if id == f.primary() || f.w.Members[id].Host != from {
			t.Errorf("%s is said to stay", id)
		}
	}
	if len(stay) != 1 || f.w.Members[f.primary()].Host == from {
		t.Errorf("the writer is on %s; %v stay", f.w.Members[f.primary()].Host, stay)
	}
	f.drain(f.w.Hosts[0].Host, f.w.Hosts[1].Host)
	f.calm(t)
	f.available()
	if why := f.stay()[f.primary()]; why == "" {
		t.Error("a writer that nobody can replace is said to leave")
	}
}
