package gateway

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

// noting is a shortcut that leads nobody: it may be impossible to have, or to end.
type noting struct {
	set, clear error
	calls      []string
}

func (n *noting) note(call string, err error) error {
	n.calls = append(n.calls, call)
	return err
}
func (n *noting) Set(_, _ netip.AddrPort, pid int) error {
	return n.note(fmt.Sprint("set ", pid), n.set)
}
func (n *noting) Clear(netip.AddrPort) error { return n.note("clear", n.clear) }
func (n *noting) Cut(netip.AddrPort)         { _ = n.note("cut", nil) }
func (n *noting) Has(netip.AddrPort) bool    { return n.set == nil }

// TestShortcutAtEpochs: sessions of an older epoch are cut before any of the newer one can
// begin, and those that an earlier process has left are not taken for old ones.
func TestShortcutAtEpochs(t *testing.T) {
	n := &noting{}
	e := open(t, Options{Shortcut: n})
	writer := backend(t, "a")
	for _, c := range []struct {
		route Route
		want  []string
	}{
		{Route{Epoch: 5, Writer: writer, PID: 7}, []string{"set 7"}},
		{Route{Epoch: 5, Writer: writer, PID: 7}, nil},
		{Route{Epoch: 5, Writer: writer, PID: 8}, []string{"set 8"}}, // it began anew
		{Route{Epoch: 5}, []string{"clear"}},
		{Route{Epoch: 6}, []string{"clear", "cut", "clear"}},
		{Route{Epoch: 7, Writer: writer, PID: 9}, []string{"clear", "cut", "set 9"}},
		{Route{Epoch: 8, Writer: writer}, []string{"clear", "cut", "clear"}}, // whose process is not known
	} {
		n.calls = nil
		if err := e.Follow(c.route); err != nil || !slices.Equal(n.calls, c.want) {
			t.Errorf("%+v: %v, %v; want %v", c.route, n.calls, err, c.want)
		}
	}
}

// Where there is no shortcut, clients pass through here.
func TestNoShortcut(t *testing.T) {
	e := open(t, Options{Shortcut: &noting{set: errors.New("not allowed")}})
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
	s := &noting{}
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
