package endpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/agent/endpoint/endpointtest"
	"kurabe/internal/gateway"
)

// testPatience ends a test that hangs; nothing waits that long.
const testPatience = 20 * time.Second

// until waits for a condition that nothing announces.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(testPatience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in %v: %s", testPatience, what)
		}
	}
}

// freePort is one that is free on every address that a test uses.
func freePort(t *testing.T, addresses ...string) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", addresses[0]+":0")
		if err != nil {
			t.Skipf("no loopback address %s: %v", addresses[0], err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if !slices.ContainsFunc(addresses, func(a string) bool { return !isFree(a, port) }) {
			return port
		}
	}
	t.Skip("no port is free on all of " + strings.Join(addresses, ", "))
	return 0
}

func isFree(address string, port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, port))
	if err == nil {
		l.Close()
	}
	return err == nil
}

// serve is a server that answers each line with its name before it.
func serve(t *testing.T, name, address string, port int) {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, port))
	if err != nil {
		t.Skip(err) // somebody else has the port now
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintf(c, "%s %s\n", name, lines.Text())
				}
			}()
		}
	}()
}

// client is a session over an endpoint.
type client struct {
	net.Conn
	lines *bufio.Reader
}

func connect(address string, port int) (*client, error) {
	c, err := net.Dial("tcp", net.JoinHostPort(address, fmt.Sprint(port)))
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(testPatience))
	return &client{c, bufio.NewReader(c)}, nil
}

func (c *client) says(t *testing.T, word, want string) {
	t.Helper()
	fmt.Fprintln(c, word)
	if got, err := c.lines.ReadString('\n'); err != nil || strings.TrimSpace(got) != want {
		t.Fatalf("%q, %v; want %q", got, err, want)
	}
}

func (c *client) cut(t *testing.T) {
	t.Helper()
	if _, err := io.ReadAll(c.lines); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the session ended with %v, want a reset", err)
	}
}

const (
	endpointAddress = "127.66.0.1" // that of wanted
	secondAddress   = "127.66.9.2"
	firstAddress    = "127.66.9.1"
)

// beginEndpoints runs endpoints over real sockets.
func beginEndpoints(t *testing.T) *Table {
	t.Helper()
	e := New(Config{Log: slog.New(slog.DiscardHandler), Now: time.Now})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return e
}

// on gives an assignment a port and a generation.
func on(a kurabe.Assignment, port int, generation kurabe.Generation) kurabe.Assignment {
	a.Port, a.Generation = port, generation
	return a
}

// A client of the endpoint gets to the writer, through a planned failover and one after a
// death, and never to anybody else.
func TestEndpointFollowsTheWriter(t *testing.T) {
	port := freePort(t, endpointAddress, firstAddress, secondAddress)
	serve(t, "first", firstAddress, port)
	serve(t, "second", secondAddress, port)
	e := beginEndpoints(t)
	e.Claim(on(elsewhere(member(1, kurabe.DutyFenced, 2)), port, 1))
	e.Claim(on(member(2, kurabe.DutyWrite, 2), port, 1))
	var c *client
	until(t, "the endpoint is held", func() (ok bool) {
		var err error
		c, err = connect(endpointAddress, port)
		return err == nil
	})
	defer c.Close()
	fmt.Fprintln(c, "early") // before the writer takes clients
	e.Takes(second, 1, true, 0)
	if got, err := c.lines.ReadString('\n'); err != nil || got != "second early\n" {
		t.Fatalf("%q, %v", got, err)
	}

	// In order: sessions end when their server says so, new ones wait for the next writer.
	e.Claim(on(elsewhere(member(1, kurabe.DutyFollow, 2)), port, 2))
	e.Claim(on(member(2, kurabe.DutyStepDown, 2), port, 2))
	c.says(t, "still", "second still")
	waits, err := connect(endpointAddress, port)
	if err != nil {
		t.Fatal(err)
	}
	defer waits.Close()
	e.Claim(on(member(2, kurabe.DutyFollow, 3), port, 3))
	e.Claim(on(elsewhere(member(1, kurabe.DutyWrite, 3)), port, 3))
	e.Takes("db-1", 3, true, 0)
	c.cut(t)
	waits.says(t, "now", "first now")

	// After a death, and what was seen of the writer before counts no more.
	e.Claim(on(elsewhere(member(1, kurabe.DutyFenced, 4)), port, 4))
	e.Takes("db-1", 3, true, 0)
	waits.cut(t)
	e.Claim(on(member(2, kurabe.DutyWrite, 4), port, 4))
	e.Takes(second, 4, true, 0)
	last, err := connect(endpointAddress, port)
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	last.says(t, "again", "second again")

	// Another assignment of the same writer changes nothing.
	e.Claim(on(member(2, kurabe.DutyWrite, 4), port, 5))
	last.says(t, "on", "second on")
	fresh, err := connect(endpointAddress, port)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	fresh.says(t, "too", "second too")

	e.Drop(second)
	e.Drop("db-1")
	last.cut(t)
	until(t, "the endpoint is given up", func() bool { return isFree(endpointAddress, port) })
}

// An address that the deposed server still holds is taken as soon as it is free.
func TestEndpointWaitsForTheAddress(t *testing.T) {
	port := freePort(t, endpointAddress, secondAddress)
	serve(t, "second", secondAddress, port)
	deposed, err := net.Listen("tcp", fmt.Sprintf("%s:%d", endpointAddress, port))
	if err != nil {
		t.Skip(err)
	}
	defer deposed.Close()
	e := beginEndpoints(t)
	e.Claim(on(member(2, kurabe.DutyWrite, 2), port, 1))
	e.Takes(second, 1, true, 0)
	if _, err := gateway.Open(netip.MustParseAddrPort(fmt.Sprintf("%s:%d", endpointAddress, port)), gateway.Options{}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("the address is not in use: %v", err)
	}
	deposed.Close()
	until(t, "a client gets to the writer", func() bool {
		c, err := connect(endpointAddress, port)
		if err != nil {
			return false
		}
		defer c.Close()
		c.says(t, "x", "second x")
		return true
	})
}

// notedEndpoints are endpoints that are held by the test's own hand, at its own time.
type notedEndpoints struct {
	*Table
	time   time.Time
	refuse error
	opened []*endpointtest.Endpoint
}

func newNotedEndpoints() *notedEndpoints {
	n := &notedEndpoints{time: time.Unix(1000, 0)}
	n.Table = New(Config{
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return n.time },
		Open: func(netip.AddrPort) (Endpoint, error) {
			if n.refuse != nil {
				return nil, n.refuse
			}
			n.opened = append(n.opened, &endpointtest.Endpoint{})
			return n.opened[len(n.opened)-1], nil
		},
	})
	return n
}

// An endpoint outlives its writer for as long as its clients wait, and no longer.
func TestEndpointLingers(t *testing.T) {
	n := newNotedEndpoints()
	n.Claim(member(2, kurabe.DutyWrite, 2))
	n.Claim(elsewhere(member(1, kurabe.DutyFenced, 2)))
	if again := n.hold(); again != 0 || len(n.opened) != 1 {
		t.Fatalf("%v, %d opened", again, len(n.opened))
	}
	n.Claim(member(2, kurabe.DutyFenced, 3))
	if again := n.hold(); again != Linger || n.opened[0].Closed {
		t.Errorf("looks again after %v, closed %v", again, n.opened[0].Closed)
	}
	n.time = n.time.Add(Linger - time.Second)
	if again := n.hold(); again != time.Second || n.opened[0].Closed {
		t.Errorf("looks again after %v, closed %v", again, n.opened[0].Closed)
	}
	// A writer in time finds it.
	n.Claim(elsewhere(member(1, kurabe.DutyWrite, 3)))
	n.hold()
	n.Claim(elsewhere(member(1, kurabe.DutyFenced, 4)))
	if again := n.hold(); again != Linger || len(n.opened) != 1 || n.opened[0].Closed {
		t.Errorf("looks again after %v, %d opened, closed %v", again, len(n.opened), n.opened[0].Closed)
	}
	n.time = n.time.Add(Linger)
	if again := n.hold(); again != 0 || !n.opened[0].Closed || len(n.held) != 0 {
		t.Errorf("looks again after %v, closed %v, %d held", again, n.opened[0].Closed, len(n.held))
	}
	want := []gateway.Route{{Epoch: 2}, {Epoch: 3}, {Epoch: 3}, {Epoch: 3}, {Epoch: 4}}
	if !slices.Equal(n.opened[0].Routes, want) {
		t.Errorf("%+v, want %+v", n.opened[0].Routes, want)
	}
}

// The first writer of a group holds the endpoint itself: nobody tries to take it.
func TestEndpointIsLeftToWhoHoldsIt(t *testing.T) {
	n := newNotedEndpoints()
	n.Claim(wanted(1))
	n.Claim(member(1, kurabe.DutyWrite, 1))
	n.Claim(member(2, kurabe.DutyFollow, 1))
	if again := n.hold(); again != 0 || len(n.opened) != 0 {
		t.Errorf("looks again after %v, %d opened", again, len(n.opened))
	}
}

// What cannot be held is tried again soon, and another address is another endpoint.
func TestEndpointIsTriedAgain(t *testing.T) {
	n := newNotedEndpoints()
	n.refuse = errors.New("test")
	a := member(2, kurabe.DutyWrite, 2)
	n.Claim(a)
	for range 3 {
		if again := n.hold(); again != retryPause {
			t.Errorf("looks again after %v", again)
		}
		n.time = n.time.Add(patience)
	}
	n.refuse = nil
	if again := n.hold(); again != 0 || len(n.opened) != 1 {
		t.Errorf("looks again after %v, %d opened", again, len(n.opened))
	}
	a.Generation, a.Address = 2, "127.66.0.2"
	n.Claim(a)
	if n.hold(); len(n.opened) != 2 || !n.opened[0].Closed || n.opened[1].Closed {
		t.Errorf("%d opened", len(n.opened))
	}
}

// The reader endpoint of a cluster leads to the standbys, wherever the writer is; between two
// writers its clients stay.
func TestReaderEndpoint(t *testing.T) {
	const readerAddress, thirdAddress = "127.66.9.40", "127.66.9.3"
	port := freePort(t, endpointAddress, readerAddress, firstAddress, secondAddress, thirdAddress)
	serve(t, "first", firstAddress, port)
	serve(t, "second", secondAddress, port)
	serve(t, "third", thirdAddress, port)
	e := beginEndpoints(t)
	cluster := func(a kurabe.Assignment, generation kurabe.Generation, readers ...string) kurabe.Assignment {
		a = on(elsewhere(a), port, generation)
		a.ReaderAddress, a.Role.Readers = readerAddress, readers
		return a
	}
	read := func(want string) (c *client) {
		t.Helper()
		until(t, want+" answers at the reader endpoint", func() bool {
			var err error
			if c, err = connect(readerAddress, port); err != nil {
				return false
			}
			fmt.Fprintln(c, "hello")
			line, _ := c.lines.ReadString('\n')
			if line != want+" hello\n" {
				c.Close()
			}
			return line == want+" hello\n"
		})
		return c
	}
	e.Claim(cluster(member(1, kurabe.DutyWrite, 1), 1, secondAddress, thirdAddress))
	e.Claim(cluster(member(2, kurabe.DutyFollow, 1), 1))
	e.Takes("db-1", 1, true, 0)
	stays, ends := read("third"), read("second")

	e.Claim(cluster(member(1, kurabe.DutyFenced, 2), 2))
	e.Claim(cluster(member(2, kurabe.DutyWrite, 3), 3, thirdAddress))
	e.Takes(second, 3, true, 0)
	ends.cut(t)
	stays.says(t, "on", "third on")
	e.Claim(cluster(member(1, kurabe.DutyFollow, 3), 4))
	e.Claim(cluster(member(2, kurabe.DutyWrite, 3), 5))
	read("second") // for want of readers
	e.Claim(cluster(member(2, kurabe.DutyWrite, 3), 6, firstAddress))
	read("first")

	e.Drop(second)
	e.Drop("db-1")
	stays.cut(t)
	until(t, "the reader endpoint is given up", func() bool { return isFree(readerAddress, port) })
}
