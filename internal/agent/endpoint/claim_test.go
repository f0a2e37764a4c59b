package endpoint

import (
	"net/netip"
	"testing"

	"kurabe"
	"kurabe/internal/gateway"
)

const (
	second = kurabe.InstanceID("db-1~2")
	third  = kurabe.InstanceID("db-1~3")
)

func wanted(generation kurabe.Generation) kurabe.Assignment {
	return kurabe.Assignment{Host: "h", Instance: "db-1", Name: "shop", Generation: generation, Goal: kurabe.GoalRunning, Engine: kurabe.Postgres, Address: "127.66.0.1", Port: 5432}
}

// member is an assignment of a server of instance db-1, which listens at 127.66.9.NUMBER
// unless it is the first. The first two follow each other.
func member(number int, duty kurabe.Duty, epoch kurabe.Epoch) kurabe.Assignment {
	a := wanted(1)
	a.Instance = a.Instance.Member(number)
	a.Role = &kurabe.Role{Epoch: epoch, Duty: duty}
	if number > 1 {
		a.ListensAt = netip.AddrFrom4([4]byte{127, 66, 9, byte(number)}).String()
	}
	if duty == kurabe.DutyFollow {
		a.Role.Source = &kurabe.Source{ID: a.Instance.Member(3 - min(number, 2)), Address: a.Address, Port: a.Port}
	}
	return a
}

// elsewhere has a server listen at an address of its own.
func elsewhere(a kurabe.Assignment) kurabe.Assignment {
	a.ListensAt = netip.AddrFrom4([4]byte{127, 66, 9, byte(a.Instance.Number())}).String()
	return a
}

// with is an assignment of another goal.
func with(a kurabe.Assignment, goal kurabe.Goal) kurabe.Assignment {
	a.Goal = goal
	return a
}

func TestWantHeld(t *testing.T) {
	endpoint := netip.MustParseAddrPort("127.66.0.1:5432")
	server2, server3 := netip.MustParseAddrPort("127.66.9.2:5432"), netip.MustParseAddrPort("127.66.9.3:5432")
	const w, f, y, r = kurabe.DutyWrite, kurabe.DutyFollow, kurabe.DutyStepDown, kurabe.DutyFenced
	alone := wanted(1)
	aloneElsewhere := wanted(1)
	aloneElsewhere.ListensAt = "127.66.9.2"
	lingers := func(epoch int64) held { return held{keep: true, linger: true, route: gateway.Route{Epoch: epoch}} }
	leads := func(epoch int64, to netip.AddrPort) held {
		return held{keep: true, address: endpoint, route: gateway.Route{Epoch: epoch, Writer: to}}
	}
	for _, c := range []struct {
		name     string
		members  []kurabe.Assignment
		open     kurabe.InstanceID // takes clients
		followed kurabe.Epoch
		want     held
	}{
		{"nobody is left", nil, "", 3, held{}},
		{"a server without a group", []kurabe.Assignment{alone}, "db-1", 0, held{}},
		{"one that was a group and listens elsewhere", []kurabe.Assignment{aloneElsewhere}, "db-1", 7, leads(7, server2)},
		{"the writer holds the endpoint itself", []kurabe.Assignment{member(1, w, 1), member(2, f, 1)}, "db-1", 0, held{}},
		{"the writer listens elsewhere", []kurabe.Assignment{elsewhere(member(1, f, 2)), member(2, w, 2)}, second, 0, leads(2, server2)},
		{"and takes no clients yet", []kurabe.Assignment{elsewhere(member(1, r, 2)), member(2, w, 2)}, "", 0, leads(2, netip.AddrPort{})},
		{"the first one writes again", []kurabe.Assignment{elsewhere(member(1, w, 3)), member(2, f, 3)}, "db-1", 2, leads(3, netip.MustParseAddrPort("127.66.9.1:5432"))},
		{"it hands over", []kurabe.Assignment{elsewhere(member(1, f, 2)), member(2, y, 2)}, "", 2, lingers(2)},
		{"it was deposed, and nobody here writes", []kurabe.Assignment{elsewhere(member(1, f, 3)), member(2, r, 3)}, "", 2, lingers(3)},
		{"it has not heard that it was deposed", []kurabe.Assignment{elsewhere(member(1, f, 3)), member(2, w, 2)}, second, 2, lingers(3)},
		{"its epoch is over", []kurabe.Assignment{member(2, w, 2)}, second, 3, lingers(3)},
		{"the one before has not heard of the writer", []kurabe.Assignment{member(2, w, 2), member(3, w, 3)}, third, 2, leads(3, server3)},
		{"the first one has not heard of the writer", []kurabe.Assignment{member(1, w, 1), member(2, w, 2)}, second, 1, leads(2, server2)},
		{"two writers of one epoch", []kurabe.Assignment{member(2, w, 2), member(3, w, 2)}, second, 2, lingers(2)},
		{"two of an epoch that is over", []kurabe.Assignment{elsewhere(member(1, w, 3)), member(2, w, 2), member(3, w, 2)}, "db-1", 2, leads(3, netip.MustParseAddrPort("127.66.9.1:5432"))},
		{"it is stopped", []kurabe.Assignment{with(member(2, w, 2), kurabe.GoalStopped)}, second, 2, held{}},
		{"it goes", []kurabe.Assignment{with(member(2, w, 2), kurabe.GoalAbsent), with(member(1, f, 2), kurabe.GoalAbsent)}, second, 2, held{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 20 { // in any order
				claims := map[kurabe.InstanceID]claim{}
				for _, m := range c.members {
					of, err := claimOf(m)
					if err != nil {
						t.Fatal(err)
					}
					if of != nil {
						of.open = m.Instance == c.open
						claims[m.Instance] = *of
					}
				}
				if got := wantHeld(claims, c.followed); got != c.want {
					t.Fatalf("%+v, want %+v", got, c.want)
				}
			}
		})
	}
}

func TestClaimOfNoAddress(t *testing.T) {
	for _, spoil := range []func(*kurabe.Assignment){
		func(a *kurabe.Assignment) { a.Address = "" },
		func(a *kurabe.Assignment) { a.ListensAt = "here" },
	} {
		a := member(2, kurabe.DutyWrite, 2)
		spoil(&a)
		if c, err := claimOf(a); err == nil || c != nil {
			t.Errorf("%q and %q: %+v, %v", a.Address, a.ListensAt, c, err)
		}
	}
}

// An endpoint that other hosts hold as well is here under a lease alone, and goes when the
// writer is known to be elsewhere.
func TestWantHeldOverHosts(t *testing.T) {
	far := func(a kurabe.Assignment) kurabe.Assignment {
		a.Host, a.Role.Source.Host = "here", "there"
		return a
	}
	near := far(member(2, kurabe.DutyFollow, 3))
	near.Role.Source.Host = "here"
	leased := member(2, kurabe.DutyWrite, 2)
	leased.Role.Leased = true
	for _, c := range []struct {
		name    string
		members []kurabe.Assignment
		lease   LeaseState
		want    func(held) bool
	}{
		{"it follows a writer elsewhere", []kurabe.Assignment{far(member(2, kurabe.DutyFollow, 3))}, LeaseUnknown, func(h held) bool { return h == held{} }},
		{"and another one here does not know", []kurabe.Assignment{far(member(2, kurabe.DutyFollow, 3)), member(3, kurabe.DutyWrite, 2)}, LeaseUnknown, func(h held) bool { return h == held{} }},
		{"it follows one on this host", []kurabe.Assignment{near}, LeaseUnknown, func(h held) bool { return h.keep && h.linger }},
		{"its lease holds", []kurabe.Assignment{leased}, LeaseHolds, func(h held) bool { return h.keep && !h.asItIs && h.address.IsValid() }},
		{"its lease has ended", []kurabe.Assignment{leased}, LeaseOver, func(h held) bool { return h == held{} }},
		{"it is not known", []kurabe.Assignment{leased}, LeaseUnknown, func(h held) bool { return h.keep && h.asItIs }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 20 { // in any order
				claims := map[kurabe.InstanceID]claim{}
				for _, m := range c.members {
					of, err := claimOf(m)
					if err != nil {
						t.Fatal(err)
					}
					if of.leased {
						of.lease = c.lease
					}
					claims[m.Instance] = *of
				}
				if got := wantHeld(claims, 2); !c.want(got) {
					t.Fatalf("%+v", got)
				}
			}
		})
	}
}
