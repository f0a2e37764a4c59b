//go:build fault

package fault

import (
	"net"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// TestCuts: what is cut in one direction arrives in the other.
func TestCuts(t *testing.T) {
	n := harness.NewNetwork(t)
	first, second, third := n.Machine(t), n.Machine(t), n.Machine(t)
	c := n.Cuts(t, first, second, third)
	receiver := func(m *harness.Machine) (conn *net.UDPConn) {
		m.Inside(t, func() {
			var err error
			conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(m.Address), Port: 7000})
			if err != nil {
				t.Fatal(err)
			}
		})
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	at := map[*harness.Machine]*net.UDPConn{first: receiver(first), second: receiver(second), third: receiver(third)}
	arrives := func(from, to *harness.Machine) bool {
		for range 20 {
			if _, err := at[from].WriteTo([]byte("x"), &net.UDPAddr{IP: net.ParseIP(to.Address), Port: 7000}); err != nil {
				return false
			}
			if err := at[to].SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := at[to].ReadFrom(make([]byte, 1)); err == nil {
				return true
			}
		}
		return false
	}
	demand := func(when string, from, to *harness.Machine, want bool) {
		t.Helper()
		if got := arrives(from, to); got != want {
			t.Errorf("%s: from %s to %s: %v, want %v", when, from.Address, to.Address, got, want)
		}
	}
	for _, from := range []*harness.Machine{first, second, third} {
		for _, to := range []*harness.Machine{first, second, third} {
			if from != to {
				demand("nothing is cut", from, to, true)
			}
		}
	}
	c.Lose(t, first, second, 1)
	demand("first to second is cut", first, second, false)
	demand("first to second is cut", second, first, true)
	demand("first to second is cut", first, third, true)
	c.Lose(t, first, second, 0)
	demand("all is well again", first, second, true)
	c.Mute(t, third, 1)
	demand("third is mute", third, first, false)
	demand("third is mute", first, third, true)
	c.Mute(t, third, 0.5)
	demand("third stutters", third, first, true)
}
