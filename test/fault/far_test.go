//go:build fault

package fault

import (
	"fmt"
	"net"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// farLink is a machine that is near and one that is far, with a socket on each.
type farLink struct {
	near, far         *net.UDPConn
	nearAt, farAt     net.Addr
	machine, neighbor *harness.Machine
}

func newFarLink(t *testing.T) *farLink {
	t.Helper()
	n := harness.NewNetwork(t)
	l := &farLink{machine: n.FarMachine(t), neighbor: n.Machine(t)}
	open := func(m *harness.Machine) (conn *net.UDPConn) {
		m.Inside(t, func() {
			var err error
			if conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(m.Address), Port: 7000}); err != nil {
				t.Fatal(err)
			}
		})
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	l.far, l.near = open(l.machine), open(l.neighbor)
	l.farAt, l.nearAt = l.far.LocalAddr(), l.near.LocalAddr()
	// The first word has to find out where the other one is.
	harness.Wait(t, settleTime, "the machines hear each other", func() string {
		if n, _ := carry(t, l.near, l.far, l.farAt, 1, 1); n == 0 {
			return "near to far"
		}
		if n, _ := carry(t, l.far, l.near, l.nearAt, 1, 1); n == 0 {
			return "far to near"
		}
		return ""
	})
	return l
}

// carry sends words and says how many arrive, and how long the first one took. It waits for as
// many as are expected, and a moment for more.
func carry(t *testing.T, from, to *net.UDPConn, at net.Addr, words, want int) (arrived int, first time.Duration) {
	t.Helper()
	for drain(t, to, time.Millisecond) { // what is left of before
	}
	began := time.Now()
	for range words {
		if _, err := from.WriteTo([]byte("word"), at); err != nil {
			return 0, 0
		}
	}
	const patience, moment = 5 * time.Second, 100 * time.Millisecond
	for limit := patience; arrived < 2*words; {
		if arrived >= want {
			limit = moment
		}
		if !drain(t, to, limit) {
			break
		}
		if arrived++; arrived == 1 {
			first = time.Since(began)
		}
	}
	return arrived, first
}

func drain(t *testing.T, conn *net.UDPConn, within time.Duration) bool {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	_, _, err := conn.ReadFrom(make([]byte, 16))
	return err == nil
}

// TestFarMachine: a cable delays, doubles and loses what it is told to, each way by itself.
func TestFarMachine(t *testing.T) {
	l := newFarLink(t)
	const delay = 300 * time.Millisecond
	into := func() (int, time.Duration) { return carry(t, l.near, l.far, l.farAt, 20, 20) }
	out := func() (int, time.Duration) { return carry(t, l.far, l.near, l.nearAt, 20, 20) }
	quick := func(when string, way func() (int, time.Duration)) {
		t.Helper()
		harness.Wait(t, settleTime, when+": nothing is late", func() string { // the machine may be busy
			if n, took := way(); n != 20 || took >= delay {
				return fmt.Sprint(n, " words, the first after ", took)
			}
			return ""
		})
	}
	late := func(when string, way func() (int, time.Duration)) {
		t.Helper()
		if n, took := way(); n != 20 || took < delay {
			t.Errorf("%s: %d words of 20, the first after %v", when, n, took)
		}
	}
	quick("at first", into)
	quick("at first", out)
	l.machine.Stretch(harness.Way{Delay: delay}, harness.Way{})
	late("into it is far", into)
	quick("into it is far", out)
	l.machine.Stretch(harness.Way{}, harness.Way{Delay: delay, Jitter: 100 * time.Millisecond})
	quick("out of it is far", into)
	late("out of it is far", out)
	l.machine.Stretch(harness.Way{Twice: 1}, harness.Way{Lost: 1})
	if n, _ := carry(t, l.near, l.far, l.farAt, 20, 40); n != 40 {
		t.Errorf("20 words arrive as %d", n)
	}
	if n, _ := carry(t, l.far, l.near, l.nearAt, 20, 0); n != 0 {
		t.Errorf("%d words arrive that are lost", n)
	}
	l.machine.Stretch(harness.Way{}, harness.Way{})
	quick("in the end", into)
	quick("in the end", out)
	l.machine.Plug(t, false)
	if n, _ := carry(t, l.near, l.far, l.farAt, 20, 0); n != 0 {
		t.Errorf("%d words arrive without a cable", n)
	}
	l.machine.Plug(t, true)
	quick("plugged again", into)
}
