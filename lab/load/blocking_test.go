package load

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// blockingPair is a connection that waits in the kernel, and its other end.
func blockingPair(t *testing.T) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	here, err = dialBlocking((&net.Dialer{}).DialContext)(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

func TestBlockingConnCarriesBytes(t *testing.T) {
	here, there := blockingPair(t)
	const many = 4 << 20 // more than the kernel keeps
	go func() {
		_, _ = io.CopyN(there, there, many)
		there.Close()
	}()
	go func() { _, _ = here.Write(make([]byte, many)) }()
	if n, err := io.Copy(io.Discard, here); n != many || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if here.LocalAddr().String() != there.RemoteAddr().String() {
		t.Error(here.LocalAddr(), there.RemoteAddr())
	}
}

// TestBlockingConnCanBeBrokenOff: nobody waits longer than whoever closes the connection,
// or than a deadline, also one that is set to the past meanwhile.
func TestBlockingConnCanBeBrokenOff(t *testing.T) {
	for name, end := range map[string]func(c net.Conn) error{
		"closed":         net.Conn.Close,
		"a past moment":  func(c net.Conn) error { return c.SetDeadline(time.Unix(1, 0)) },
		"its other end":  func(net.Conn) error { return nil },
		"a time of 20ms": func(net.Conn) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			here, there := blockingPair(t)
			if name == "a time of 20ms" {
				if err := here.SetDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
					t.Fatal(err)
				}
			}
			read := make(chan error, 1)
			go func() {
				_, err := here.Read(make([]byte, 1))
				read <- err
			}()
			if name == "its other end" {
				there.Close()
			} else if err := end(here); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-read:
				if err == nil || name == "a time of 20ms" && !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%v", err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("the reader still waits")
			}
			if err := here.SetDeadline(time.Time{}); name == "a time of 20ms" && err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBlockingConnAfterItsEnd(t *testing.T) {
	here, _ := blockingPair(t)
	if err := here.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := here.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if err := here.Close(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dialBlocking((&net.Dialer{}).DialContext)(ctx, "tcp", "127.0.0.1:1"); err == nil {
		t.Error("it dialled with a context that has ended")
	}
}
