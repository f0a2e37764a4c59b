package gateway

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func openReaders(t *testing.T, o Options) *Readers {
	t.Helper()
	r, err := OpenReaders(netip.MustParseAddrPort("127.0.0.1:0"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// readAt is a session through a reader endpoint, and the name of the server that answers.
func readAt(t *testing.T, r *Readers) (*client, string) {
	t.Helper()
	conn, err := net.Dial("tcp", r.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	c := &client{conn.(*net.TCPConn), bufio.NewReader(conn)}
	fmt.Fprintln(c, "who")
	line, err := c.lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return c, strings.TrimSuffix(strings.TrimSpace(line), " who")
}

// nobody is an address at which nobody listens.
func nobody(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr).AddrPort()
	l.Close()
	return at
}

// Sessions are spread over the readers; the writer takes none while one of them does.
func TestReadersShare(t *testing.T) {
	r := openReaders(t, Options{})
	a, b, w := backend(t, "a"), backend(t, "b"), backend(t, "w")
	r.Lead(Spread{Readers: []netip.AddrPort{a, b}, Otherwise: w})
	count := map[string]int{}
	for range 10 {
		_, who := readAt(t, r)
		count[who]++
	}
	if count["a"] != 5 || count["b"] != 5 {
		t.Errorf("%v", count)
	}
	r.Lead(Spread{Readers: []netip.AddrPort{nobody(t), b}, Otherwise: w})
	for range 4 {
		if _, who := readAt(t, r); who != "b" {
			t.Errorf("%s answers while b can", who)
		}
	}
	// Without a reader that can be reached clients read at the writer.
	r.Lead(Spread{Readers: []netip.AddrPort{nobody(t)}, Otherwise: w})
	if _, who := readAt(t, r); who != "w" {
		t.Errorf("%s answers", who)
	}
	r.Lead(Spread{Otherwise: w})
	old, who := readAt(t, r)
	if who != "w" {
		t.Errorf("%s answers", who)
	}
	r.Lead(Spread{Readers: []netip.AddrPort{a}, Otherwise: w})
	old.gone(t)
}

// A reader that becomes the writer ends the sessions that came to read; those of a reader
// that is only late go on.
func TestReaderIsPromoted(t *testing.T) {
	r := openReaders(t, Options{})
	a, b := backend(t, "a"), backend(t, "b")
	r.Lead(Spread{Readers: []netip.AddrPort{a}})
	at, _ := readAt(t, r)
	r.Lead(Spread{Readers: []netip.AddrPort{b}})
	at.says(t, "still", "a still")
	r.Lead(Spread{Otherwise: a})
	at.says(t, "on", "a on") // it is all there is
	r.Lead(Spread{Readers: []netip.AddrPort{b}, Otherwise: a})
	at.gone(t)
	if _, who := readAt(t, r); who != "b" {
		t.Errorf("%s answers", who)
	}
}

// A client that comes while nobody is there is held, and sent away when that takes too long.
func TestReadersHold(t *testing.T) {
	r := openReaders(t, Options{HoldTime: 200 * time.Millisecond})
	conn, err := net.Dial("tcp", r.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	(&client{conn.(*net.TCPConn), bufio.NewReader(conn)}).gone(t)

	patient := openReaders(t, Options{HoldTime: patience})
	waits, err := net.Dial("tcp", patient.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	defer waits.Close()
	_ = waits.SetDeadline(time.Now().Add(patience))
	patient.Lead(Spread{Readers: []netip.AddrPort{backend(t, "a")}})
	(&client{waits.(*net.TCPConn), bufio.NewReader(waits)}).says(t, "now", "a now")
}
