package agent

import (
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"kurabe"
)

// fakeAddresses is an interface of a machine.
type fakeAddresses struct {
	held    []netip.Addr
	failing error
}

func (f *fakeAddresses) Hold(a netip.Addr) error {
	if f.failing == nil && !slices.Contains(f.held, a) {
		f.held = append(f.held, a)
	}
	return f.failing
}

func (f *fakeAddresses) Drop(a netip.Addr) error {
	if f.failing == nil {
		f.held = slices.DeleteFunc(f.held, func(h netip.Addr) bool { return h == a })
	}
	return f.failing
}

func (f *fakeAddresses) Held() ([]netip.Addr, error) { return f.held, f.failing }

func TestAddressesAreHeldWhileTheyAreNeeded(t *testing.T) {
	f := &fakeAddresses{held: []netip.Addr{netip.MustParseAddr("10.0.0.99")}} // of an earlier life
	a := New(Config{Addresses: f, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	single := kurabe.Assignment{Instance: "db-1", Goal: kurabe.GoalRunning, Address: "10.0.0.1"}
	writer := kurabe.Assignment{Instance: "db-2", Goal: kurabe.GoalRunning, Address: "10.0.0.2", ListensAt: "10.0.0.3", Role: &kurabe.Role{Duty: kurabe.DutyWrite}}
	standby := kurabe.Assignment{Instance: "db-2~2", Goal: kurabe.GoalRunning, Address: "10.0.0.2", ListensAt: "10.0.0.4", Role: &kurabe.Role{Duty: kurabe.DutyFollow}}
	expect := func(what string, want ...string) {
		t.Helper()
		var have []string
		for _, h := range f.held {
			have = append(have, h.String())
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%s: held %v, want %v", what, have, want)
		}
	}
	a.holdAddresses([]kurabe.Assignment{single, writer, standby})
	expect("at the start", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
	need := func(as kurabe.Assignment) {
		t.Helper()
		if err := a.addresses.need(as); err != nil {
			t.Fatal(err)
		}
	}
	// Roles change at different moments; the endpoint stays while either has it.
	promoted, deposed := standby, writer
	promoted.Role, deposed.Role = writer.Role, standby.Role
	need(promoted)
	need(deposed)
	expect("after a failover", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
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
	f.failing = errors.New("no")
	if err := a.addresses.need(single); err == nil {
		t.Error("a server is started at an address that cannot be held")
	}
}
