package tcpbytes

import (
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"
)

// exchange has a client send and get so many bytes, over a session that ends.
func exchange(t *testing.T, at string, sends, gets int64, hold <-chan struct{}) {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	if _, err := conn.Write(make([]byte, sends)); err != nil {
		t.Error(err)
	}
	if n, err := io.CopyN(io.Discard, conn, gets); err != nil {
		t.Errorf("%d bytes: %v", n, err)
	}
	<-hold
}

// Sessions that last, and such as are over between two looks: every byte is counted, and none of
// others'.
func TestCount(t *testing.T) {
	c, err := Open()
	if err != nil {
		t.Skip(err)
	}
	defer c.Close()
	const sends, gets, short, lasting = 3000, 200_000, 200, 5
	listener := serve(t, sends, gets)
	stranger := serve(t, sends, gets)
	at := netip.MustParseAddrPort(listener.Addr().String())
	servers := map[string]Server{"a": {At: []netip.AddrPort{at}, UID: uint32(os.Getuid()), Sole: true}, "other": {At: []netip.AddrPort{at}[:0]}}
	if got, err := c.Read(servers); err != nil || got["a"] != (Count{}) {
		t.Fatalf("%+v, %v", got, err)
	}
	gone, hold := make(chan struct{}), make(chan struct{})
	close(gone)
	for range short {
		exchange(t, listener.Addr().String(), sends, gets, gone)
		exchange(t, stranger.Addr().String(), sends, gets, gone)
	}
	var held sync.WaitGroup
	for range lasting {
		held.Go(func() { exchange(t, listener.Addr().String(), sends, gets, hold) })
	}
	const all = short + lasting
	var got map[string]Count
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if got, err = c.Read(servers); err != nil {
			t.Fatal(err)
		}
		// A byte for each SYN and FIN may count as well.
		sent, received := int64(got["a"].SentBytes), int64(got["a"].ReceivedBytes)
		if sent >= all*gets && sent <= all*(gets+2) && received >= all*sends && received <= all*(sends+2) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v, want %d sent and %d received", got, all*gets, all*sends)
		}
	}
	if got["other"].SentBytes != 0 || got["a"].Lost != 0 {
		t.Errorf("%+v", got)
	}
	close(hold)
	held.Wait()
	if got, err = c.Read(map[string]Server{}); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for end := time.Now().Add(time.Minute); len(c.known) > 0; time.Sleep(10 * time.Millisecond) {
		if _, err := c.Read(servers); err != nil || time.Now().After(end) {
			t.Fatalf("%d sessions are remembered: %v", len(c.known), err)
		}
	}
}

// serve takes and gives so many bytes in each session.
func serve(t *testing.T, takes, gives int64) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := io.CopyN(io.Discard, conn, takes); err != nil {
					return
				}
				_, _ = conn.Write(make([]byte, gives))
				_, _ = conn.Read(make([]byte, 1))
			}()
		}
	}()
	return listener
}

func FuzzEach(f *testing.F) {
	f.Add([]byte{20, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _ = each(raw, func(_ message, info []byte) { _ = len(info) })
	})
}
