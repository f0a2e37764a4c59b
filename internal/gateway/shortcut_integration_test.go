//go:build integration

package gateway

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"testing"

	"kurabe/internal/sklookup"
)

// plainBackend is a server with plain sockets, as a database's, which says who connects.
func plainBackend(t *testing.T, name, address string) net.Listener {
	t.Helper()
	var plain net.ListenConfig
	plain.SetMultipathTCP(false)
	l, err := plain.Listen(t.Context(), "tcp4", address)
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
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintf(c, "%s for %s\n", name, c.RemoteAddr())
				}
			}()
		}
	}()
	return l
}

// shortened is an endpoint with the kernel's shortcut.
type shortened struct {
	*Endpoint
	table  *sklookup.Table
	folder string
}

func newShortened(t *testing.T) *shortened {
	t.Helper()
	if err := errors.Join(sklookup.Available(), sklookup.Pinnable()); err != nil {
		t.Skip(err)
	}
	folder := sklookup.PinFolder("test-" + rand.Text())
	t.Cleanup(func() { sklookup.Remove(folder) })
	table := sklookup.New(folder, slog.New(slog.DiscardHandler))
	return &shortened{open(t, Options{Shortcut: table}), table, folder}
}

// lead tells a route to a server of this process, or to nobody.
func (e *shortened) lead(t *testing.T, epoch int64, to net.Listener) {
	t.Helper()
	r := Route{Epoch: epoch}
	if to != nil {
		r.Writer, r.PID = to.Addr().(*net.TCPAddr).AddrPort(), os.Getpid()
	}
	if err := e.Follow(r); err != nil {
		t.Fatal(err)
	}
}

// own is a client whose session is the server's own.
func (e *shortened) own(t *testing.T, name string) *client {
	t.Helper()
	c := dial(t, e.Endpoint)
	c.says(t, "hello", name+" for "+c.LocalAddr().String())
	return c
}

// through checks that what a client has said comes from the gateway.
func (c *client) through(t *testing.T, name string) {
	t.Helper()
	var got, from string
	if _, err := fmt.Fscanf(c.lines, "%s for %s\n", &got, &from); err != nil || got != name || from == c.LocalAddr().String() {
		t.Errorf("%q for %q, %v: want %s, for the gateway", got, from, err, name)
	}
}

// TestShortcut: a client's session is the writer's own, and whoever comes while there is
// none waits here.
func TestShortcut(t *testing.T) {
	e := newShortened(t)
	a, b := plainBackend(t, "a", "127.0.0.1:0"), plainBackend(t, "b", "127.0.0.1:0")
	e.lead(t, 1, a)
	e.own(t, "a")
	e.lead(t, 1, nil)
	waits := dial(t, e.Endpoint)
	fmt.Fprintln(waits, "hello")
	e.lead(t, 2, b)
	waits.through(t, "b")
	last := e.own(t, "b")
	if counts := e.Counts(); counts.Sessions != 1 || !counts.Shortcut {
		t.Errorf("%+v", counts)
	}

	// A server that begins anew: the first client finds it through here.
	address := b.Addr().String()
	b.Close()
	plainBackend(t, "again", address)
	first := dial(t, e.Endpoint)
	fmt.Fprintln(first, "hello")
	first.through(t, "again")
	e.own(t, "again")
	last.says(t, "still", "b for "+last.LocalAddr().String())
}

// TestShortcutOutlivesUs: clients find the writer without us, and as the next of us says.
func TestShortcutOutlivesUs(t *testing.T) {
	e := newShortened(t)
	a, b := plainBackend(t, "a", "127.0.0.1:0"), plainBackend(t, "b", "127.0.0.1:0")
	e.lead(t, 1, a)
	place := e.Address()
	if err := errors.Join(e.Leave(), e.table.Close()); err != nil {
		t.Fatal(err)
	}
	e.own(t, "a")
	e.table = sklookup.New(e.folder, slog.New(slog.DiscardHandler))
	var err error
	if e.Endpoint, err = Open(place, Options{Shortcut: e.table}); err != nil {
		t.Fatal(err)
	}
	e.own(t, "a")
	e.lead(t, 2, b)
	e.own(t, "b")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp4", place.String()); err == nil {
		c.Close()
		t.Error("an endpoint that was given up leads somewhere")
	}
	if err := e.table.Close(); err != nil {
		t.Fatal(err)
	}
}
