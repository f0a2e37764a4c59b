package gateway

import (
	"errors"
	"net/netip"
	"testing"
)

// refusing is a shortcut that can never be had, or never be ended.
type refusing struct{ set, clear error }

func (r *refusing) Set(_, _ netip.AddrPort, _ int) error { return r.set }
func (r *refusing) Clear(netip.AddrPort) error           { return r.clear }
func (r *refusing) Has(netip.AddrPort) bool              { return r.set == nil }

// Where there is no shortcut, clients pass through here.
func TestNoShortcut(t *testing.T) {
	e := open(t, Options{Shortcut: &refusing{set: errors.New("not allowed")}})
	if err := e.Follow(Route{Epoch: 1, Writer: backend(t, "a"), PID: 1}); err != nil {
		t.Fatal(err)
	}
	c := dial(t, e)
	c.says(t, "hello", "a hello")
	if counts := e.Counts(); counts.Sessions != 1 || counts.Shortcut {
		t.Errorf("%+v", counts)
	}
}

// A shortcut that stays might lead to a deposed writer: that the epoch is followed is
// not said.
func TestShortcutThatStays(t *testing.T) {
	s := &refusing{}
	e := open(t, Options{Shortcut: s})
	first, second := Route{Epoch: 1, Writer: backend(t, "a"), PID: 1}, Route{Epoch: 2}
	if err := e.Follow(first); err != nil {
		t.Fatal(err)
	}
	s.clear = errors.New("it stays")
	if err := e.Follow(second); !errors.Is(err, s.clear) {
		t.Errorf("%v, want %v", err, s.clear)
	}
	if e.Counts().Epoch != 1 {
		t.Errorf("%+v", e.Counts())
	}
	s.clear = nil
	if err := e.Follow(second); err != nil || e.Counts().Epoch != 2 {
		t.Errorf("%v, %+v", err, e.Counts())
	}
}
