package endpoint

import (
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"kurabe"
	"kurabe/internal/agent/endpoint/endpointtest"
)

func TestAddressesAreHeldWhileTheyAreNeeded(t *testing.T) {
	f := &endpointtest.Network{Here: []netip.Addr{netip.MustParseAddr("10.0.0.99")}} // of an earlier life
	a := New(Config{Network: f, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}).Addresses
	single := kurabe.Assignment{Instance: "db-1", Goal: kurabe.GoalRunning, Address: "10.0.0.1"}
	writer := kurabe.Assignment{Instance: "db-2", Goal: kurabe.GoalRunning, Address: "10.0.0.2", ListensAt: "10.0.0.3", Role: &kurabe.Role{Duty: kurabe.DutyWrite}}
	standby := kurabe.Assignment{Instance: "db-2~2", Goal: kurabe.GoalRunning, Address: "10.0.0.2", ListensAt: "10.0.0.4", Role: &kurabe.Role{Duty: kurabe.DutyFollow}}
	expect := func(what string, want ...string) {
		t.Helper()
		var have []string
		for _, h := range f.Here {
			have = append(have, h.String())
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%s: held %v, want %v", what, have, want)
		}
	}
	a.HoldSaved([]kurabe.Assignment{single, writer, standby})
	expect("at the start", "10.0.0.1", "10.0.0.3", "10.0.0.4")
	if err := a.Hold(endpointOf("db-2"), []netip.Addr{netip.MustParseAddr("10.0.0.2")}); err != nil {
		t.Fatal(err)
	}
	expect("with its endpoint", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
	need := func(as kurabe.Assignment) {
		t.Helper()
		if err := a.Need(as, true); err != nil {
			t.Fatal(err)
		}
	}
	// Roles change at different moments; the endpoint stays while either has it.
	promoted, deposed := standby, writer
	promoted.Role, deposed.Role = writer.Role, standby.Role
	need(promoted)
	need(deposed)
	expect("after a failover", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
	if once := slices.Compact(slices.SortedFunc(slices.Values(f.Announced), netip.Addr.Compare)); len(once) != 4 || len(f.Announced) > 5 {
		t.Errorf("the neighbours were told of %v", f.Announced) // of each when it is new to a server
	}
	stopped := single
	stopped.Goal = kurabe.GoalStopped
	need(stopped)
	expect("while it is stopped", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
	moved := single
	moved.Address = "10.0.0.5"
	need(moved)
	expect("after the port was taken", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5")
	deposed.Goal, moved.Goal = kurabe.GoalAbsent, kurabe.GoalAbsent
	need(deposed)
	need(moved)
	expect("after two have gone", "10.0.0.2", "10.0.0.4")
	f.Failing = errors.New("no")
	if err := a.Need(single, true); err == nil {
		t.Error("a server is started at an address that cannot be held")
	}
}

// An endpoint that may be another host's by now is held only under a lease; one that is there
// when the agent starts stays until that is known.
func TestAddressOfALease(t *testing.T) {
	endpoint, own := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	role := &kurabe.Role{Duty: kurabe.DutyWrite, Leased: true, Epoch: 3}
	for _, c := range []struct {
		name  string
		a     kurabe.Assignment
		whose string
	}{
		{"it listens there", kurabe.Assignment{Instance: "db-2", Goal: kurabe.GoalRunning, Address: "10.0.0.2", Role: role}, "db-2"},
		{"it listens elsewhere", kurabe.Assignment{Instance: "db-2", Goal: kurabe.GoalRunning, Address: "10.0.0.2", ListensAt: "10.0.0.3", Role: role}, endpointOf("db-2")},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &endpointtest.Network{Here: []netip.Addr{endpoint}}
			a := New(Config{Network: f, Log: slog.New(slog.DiscardHandler)}).Addresses
			a.HoldSaved([]kurabe.Assignment{c.a})
			if !slices.Contains(f.Here, endpoint) {
				t.Fatalf("its clients are cut off by a restart of the agent: %v", f.Here)
			}
			if err := a.Hold(c.whose, nil); err != nil || slices.Contains(f.Here, endpoint) {
				t.Errorf("without a lease it is held on: %v, %v", f.Here, err)
			}
			if err := a.Hold(c.whose, []netip.Addr{endpoint}); err != nil {
				t.Fatal(err)
			}
			f.Here = nil // a warden has taken it away
			if err := a.Again("db-2"); err != nil || !slices.Contains(f.Here, endpoint) {
				t.Errorf("under the next lease it is not held: %v, %v", f.Here, err)
			}
			f.Here = nil
			again := New(Config{Network: f, Log: slog.New(slog.DiscardHandler)}).Addresses
			again.HoldSaved([]kurabe.Assignment{c.a})
			if err := again.Need(c.a, false); err != nil || slices.Contains(f.Here, endpoint) {
				t.Errorf("it is taken by a host that has no lease: %v, %v", f.Here, err)
			}
			if err := again.Need(c.a, true); err != nil || c.a.ListensAt == "" && !slices.Contains(f.Here, endpoint) {
				t.Errorf("under a lease: %v, %v", f.Here, err)
			}
			if c.a.ListensAt != "" && !slices.Contains(f.Here, own) {
				t.Errorf("its own address is not held: %v", f.Here)
			}
		})
	}
}
