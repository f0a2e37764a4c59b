package connlimit

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestAttackConnections(t *testing.T) {
	const most = 20
	l := New(most)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	server.Config.ConnState = l.Watch
	server.Start()
	defer server.Close()
	var open []net.Conn
	ended := make(chan struct{}, 10*most)
	for range 10 * most {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		go func() {
			_, _ = c.Read(make([]byte, 1)) // nothing is said: it returns when the connection ends
			ended <- struct{}{}
		}()
	}
	for range 9 * most {
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatal("connections beyond the limit stay open")
		}
	}
	other, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}).Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := ask(other); err != nil {
		t.Errorf("another address: %v", err)
	}
	for _, c := range open {
		c.Close()
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err == nil {
			err = ask(c)
			c.Close()
		}
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("when the others are gone: %v", err)
		}
	}
	other.Close()
	for deadline := time.Now().Add(30 * time.Second); ; {
		l.mu.Lock()
		left := len(l.open)
		l.mu.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d addresses are remembered", left)
		}
		<-time.After(time.Millisecond)
	}
}

func ask(c net.Conn) error {
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200 OK")))
	return err
}
