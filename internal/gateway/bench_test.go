package gateway

import (
	"io"
	"net"
	"testing"
)

// BenchmarkRoundTrip is a request and an answer of 100 bytes, direct and through an
// endpoint: what the endpoint adds is the difference.
func BenchmarkRoundTrip(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	e := open(b, Options{})
	follow(b, e, 1, l.Addr().(*net.TCPAddr).AddrPort())
	for name, address := range map[string]string{"direct": l.Addr().String(), "gateway": e.Address().String()} {
		b.Run(name, func(b *testing.B) {
			c, err := net.Dial("tcp", address)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			message := make([]byte, 100)
			for b.Loop() {
				if _, err := c.Write(message); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
