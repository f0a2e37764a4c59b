package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience ends a test that hangs; nothing waits that long.
const patience = 20 * time.Second

// backend is a server that answers each line with its name before it, and END when the
// client has said all.
func backend(t testing.TB, name string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
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
				lines := bufio.NewScanner(c)
				for lines.Scan() {
					fmt.Fprintf(c, "%s %s\n", name, lines.Text())
				}
				fmt.Fprintln(c, "END")
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func open(t testing.TB, o Options) *Endpoint {
	t.Helper()
	e, err := Open(netip.MustParseAddrPort("127.0.0.1:0"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func follow(t testing.TB, e *Endpoint, epoch int64, writer netip.AddrPort) {
	t.Helper()
	if err := e.Follow(Route{Epoch: epoch, Writer: writer}); err != nil {
		t.Fatal(err)
	}
}

type client struct {
	*net.TCPConn
	lines *bufio.Reader
}

func dial(t testing.TB, e *Endpoint) *client {
	t.Helper()
	c, err := net.Dial("tcp", e.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &client{c.(*net.TCPConn), bufio.NewReader(c)}
}

func (c *client) says(t testing.TB, word, want string) {
	t.Helper()
	fmt.Fprintln(c, word)
	if got, err := c.lines.ReadString('\n'); err != nil || strings.TrimSpace(got) != want {
		t.Fatalf("%q, %v; want %q", got, err, want)
	}
}

// refused demands that a client is sent away, which it may hear of before it knows that it
// was connected.
func refused(t testing.TB, e *Endpoint) {
	t.Helper()
	c, err := net.Dial("tcp", e.Address().String())
	if errors.Is(err, syscall.ECONNRESET) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	(&client{c.(*net.TCPConn), bufio.NewReader(c)}).gone(t)
}

// gone demands that the session was ended, and not by a mere end.
func (c *client) gone(t testing.TB) {
	t.Helper()
	if _, err := io.ReadAll(c.lines); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the session ended with %v, want a reset", err)
	}
}

func TestForwards(t *testing.T) {
	e := open(t, Options{})
	follow(t, e, 1, backend(t, "a"))
	c := dial(t, e)
	c.says(t, "one", "a one")
	c.says(t, "two", "a two")
	// The end of one direction leaves the other open.
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(c.lines); err != nil || string(rest) != "END\n" {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestForwardsMuch(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const size = 64 << 20
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, c)
	}()
	e := open(t, Options{})
	follow(t, e, 1, l.Addr().(*net.TCPAddr).AddrPort())
	c := dial(t, e)
	go func() {
		chunk := make([]byte, 1<<20)
		for n := 0; n < size; n += len(chunk) {
			for k := range chunk {
				chunk[k] = byte((n + k) * 7)
			}
			if _, err := c.Write(chunk); err != nil {
				return
			}
		}
		_ = c.CloseWrite()
	}()
	back, err := io.ReadAll(c.lines)
	if err != nil || len(back) != size {
		t.Fatalf("%d bytes, %v", len(back), err)
	}
	for k, b := range back {
		if b != byte(k*7) {
			t.Fatalf("byte %d is another one", k)
		}
	}
}

// A client that comes while there is no writer is held, with what it has said.
func TestHeldUntilThereIsAWriter(t *testing.T) {
	e := open(t, Options{})
	c := dial(t, e)
	fmt.Fprintln(c, "early")
	for e.Counts().Held == 0 {
		time.Sleep(time.Millisecond)
	}
	follow(t, e, 3, netip.AddrPort{})
	follow(t, e, 3, backend(t, "a"))
	if got, err := c.lines.ReadString('\n'); err != nil || got != "a early\n" {
		t.Errorf("%q, %v", got, err)
	}
	if n := e.Counts(); n.Held != 0 || n.Sessions != 1 || n.Epoch != 3 {
		t.Errorf("%+v", n)
	}
}

// A writer that does not answer yet is tried again.
func TestHeldUntilTheWriterAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().(*net.TCPAddr).AddrPort()
	l.Close()
	e := open(t, Options{})
	follow(t, e, 1, address)
	c := dial(t, e)
	for e.Counts().Held == 0 {
		time.Sleep(time.Millisecond)
	}
	again, err := net.Listen("tcp", address.String())
	if err != nil {
		t.Skip("somebody else has the port now")
	}
	defer again.Close()
	go func() {
		if s, err := again.Accept(); err == nil {
			fmt.Fprintln(s, "here")
		}
	}()
	if got, err := c.lines.ReadString('\n'); err != nil || got != "here\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestHoldIsBounded(t *testing.T) {
	e := open(t, Options{HoldTime: 30 * time.Millisecond})
	refused(t, e)
	few := open(t, Options{HeldMax: 1})
	kept := dial(t, few)
	for few.Counts().Held == 0 {
		time.Sleep(time.Millisecond)
	}
	refused(t, few)
	follow(t, few, 1, backend(t, "a"))
	kept.says(t, "x", "a x")
	if n := few.Counts(); n.Refused != 1 || n.Accepted != 2 {
		t.Errorf("%+v", n)
	}
}

func TestNewEpochCutsAndMoves(t *testing.T) {
	e := open(t, Options{})
	a, b := backend(t, "a"), backend(t, "b")
	follow(t, e, 1, a)
	old := dial(t, e)
	old.says(t, "x", "a x")
	follow(t, e, 2, netip.AddrPort{}) // a is deposed, nobody has taken over
	old.gone(t)
	held := dial(t, e)
	follow(t, e, 2, b)
	held.says(t, "y", "b y")
	if n := e.Counts(); n.Cut != 1 || n.Epoch != 2 {
		t.Errorf("%+v", n)
	}
}

// Within an epoch sessions go on while no new ones are taken.
func TestPauseKeepsSessions(t *testing.T) {
	e := open(t, Options{})
	a := backend(t, "a")
	follow(t, e, 1, a)
	c := dial(t, e)
	c.says(t, "x", "a x")
	follow(t, e, 1, netip.AddrPort{})
	c.says(t, "y", "a y")
	late := dial(t, e)
	follow(t, e, 1, a)
	late.says(t, "z", "a z")
}

func TestRoutesThatAreRefused(t *testing.T) {
	a, b := netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")
	nobody := netip.AddrPort{}
	for name, c := range map[string]struct {
		told []Route
		next Route
		want error
	}{
		"an older epoch":          {[]Route{{5, a, 0}}, Route{4, b, 0}, ErrDeposed},
		"the same again":          {[]Route{{5, a, 0}}, Route{5, a, 0}, nil},
		"another writer":          {[]Route{{5, a, 0}}, Route{5, b, 0}, ErrTwoWriters},
		"another after a pause":   {[]Route{{5, a, 0}, {5, nobody, 0}}, Route{5, b, 0}, ErrTwoWriters},
		"the same after a pause":  {[]Route{{5, a, 0}, {5, nobody, 0}}, Route{5, a, 0}, nil},
		"the first of an epoch":   {[]Route{{5, a, 0}, {6, nobody, 0}}, Route{6, b, 0}, nil},
		"a newer epoch":           {[]Route{{5, a, 0}}, Route{9, b, 0}, nil},
		"an old one, then nobody": {[]Route{{5, a, 0}}, Route{4, nobody, 0}, ErrDeposed},
	} {
		t.Run(name, func(t *testing.T) {
			var r routed
			for _, told := range c.told {
				next, err := r.follow(told)
				if err != nil {
					t.Fatal(err)
				}
				r = next
			}
			after, err := r.follow(c.next)
			if !errors.Is(err, c.want) || err != nil && after != r || err == nil && after.Route != c.next {
				t.Errorf("%+v, %v", after, err)
			}
		})
	}
}

// TestNobodyReachesTheDeposed: clients come all the time while epochs change. None that
// came after an epoch was followed may get to a writer of an older one.
func TestNobodyReachesTheDeposed(t *testing.T) {
	const epochs, clients = 60, 4
	e := open(t, Options{})
	writers := make([]netip.AddrPort, epochs+1)
	for n := range writers {
		writers[n] = backend(t, fmt.Sprint(n))
	}
	follow(t, e, 0, writers[0])
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := e.Counts().Epoch
				c, err := net.Dial("tcp", e.Address().String())
				if errors.Is(err, syscall.ECONNRESET) {
					continue // cut before it knew that it was connected
				}
				if err != nil {
					t.Error(err)
					return
				}
				_ = c.SetDeadline(time.Now().Add(patience))
				fmt.Fprintln(c, "x")
				var by int64
				if _, err := fmt.Fscanf(c, "%d x\n", &by); err == nil && by < least {
					t.Errorf("epoch %d was followed, and a client got to the writer of %d", least, by)
				}
				c.Close()
			}
		})
	}
	for n := 1; n <= epochs; n++ {
		follow(t, e, int64(n), writers[n])
		time.Sleep(2 * time.Millisecond)
	}
	close(stop)
	all.Wait()
	if err := e.Follow(Route{Epoch: epochs - 1, Writer: writers[epochs-1]}); !errors.Is(err, ErrDeposed) {
		t.Error(err)
	}
}

// A session is not made with a server that was dialled for a route which is over by now.
func TestJoinsOnlyTheRouteOfNow(t *testing.T) {
	a, b := netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")
	nobody := netip.AddrPort{}
	for name, c := range map[string]struct {
		told    []Route
		dialled Route
		joins   bool
	}{
		"it is the route":           {[]Route{{5, a, 0}}, Route{5, a, 0}, true},
		"the writer was deposed":    {[]Route{{5, a, 0}, {6, b, 0}}, Route{5, a, 0}, false},
		"it takes no new sessions":  {[]Route{{5, a, 0}, {5, nobody, 0}}, Route{5, a, 0}, false},
		"it takes new ones again":   {[]Route{{5, a, 0}, {5, nobody, 0}, {5, a, 0}}, Route{5, a, 0}, true},
		"nobody follows it so far":  {[]Route{{5, a, 0}, {6, nobody, 0}}, Route{5, a, 0}, false},
		"it writes for a new epoch": {[]Route{{5, a, 0}, {6, a, 0}}, Route{5, a, 0}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, Options{})
			for _, r := range c.told {
				follow(t, e, r.Epoch, r.Writer)
			}
			s := e.join(nil, nil, c.dialled)
			if (s != nil) != c.joins {
				t.Errorf("joined: %v", s != nil)
			}
			e.mu.Lock()
			clear(e.sessions) // they have no ends that could be closed
			e.mu.Unlock()
		})
	}
}

// slowness is longer than any time limit that a session could have by mistake.
const slowness = 3 * time.Second

// TestSlowServerKeepsItsSession: a server that does not read for a while, since it waits
// for a lock or a disk, gets the rest when it reads again.
func TestSlowServerKeepsItsSession(t *testing.T) {
	if testing.Short() {
		t.Skip("it is slow by intent")
	}
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const size = 64 << 20 // more than all buffers on the way
	got := make(chan int64, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- -1
			return
		}
		defer c.Close()
		time.Sleep(slowness) // what is tested
		n, _ := io.Copy(io.Discard, c)
		got <- n
	}()
	e := open(t, Options{})
	follow(t, e, 1, l.Addr().(*net.TCPAddr).AddrPort())
	c := dial(t, e)
	chunk := make([]byte, 1<<20)
	for n := 0; n < size; n += len(chunk) {
		if _, err := c.Write(chunk); err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n := <-got; n != size {
		t.Errorf("%d bytes of %d arrived", n, size)
	}
}

// An address that somebody else holds is no endpoint, until it is free.
func TestOpenWhatIsBound(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().(*net.TCPAddr).AddrPort()
	if e, err := Open(address, Options{}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("%v, %v", e, err)
	}
	l.Close()
	e, err := Open(address, Options{})
	if errors.Is(err, syscall.EADDRINUSE) {
		t.Skip("somebody else has the port now")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestCloseEndsAll(t *testing.T) {
	e := open(t, Options{})
	follow(t, e, 1, backend(t, "a"))
	c := dial(t, e)
	c.says(t, "x", "a x")
	idle := open(t, Options{})
	held := dial(t, idle)
	if err := errors.Join(e.Close(), idle.Close()); err != nil {
		t.Fatal(err)
	}
	c.gone(t)
	held.gone(t)
}
