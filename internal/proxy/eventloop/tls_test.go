package eventloop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"
)

// certificate is one for itself.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"loop"}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

func TestEchoesEncrypted(t *testing.T) {
	mine, roots := certificate(t)
	for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			l, e := running(t), &echo{frame: 1, closed: make(chan error, 1)}
			shaken := make(chan tls.ConnectionState, 1)
			address := serving(t, l, func(c *Conn) {
				c.StartTLS(&tls.Config{Certificates: []tls.Certificate{mine}, MinVersion: version, MaxVersion: version},
					func(s tls.ConnectionState) { shaken <- s })
			}, func() Handler { return e })
			c := tls.Client(dial(t, address), &tls.Config{RootCAs: roots, ServerName: "loop"})
			says(t, c, 100)
			says(t, c, 3_000_000)
			if s := <-shaken; s.Version != version {
				t.Errorf("version %x", s.Version)
			}
			c.Close()
			<-e.closed
		})
	}
}

// TestTLSThatFails ends the connection: a client of another kind, one that goes away, and
// one that says nothing more.
func TestTLSThatFails(t *testing.T) {
	mine, _ := certificate(t)
	for name, said := range map[string][]byte{"rubbish": []byte("GET / HTTP/1.1\r\n\r\n"), "half a hello": {22, 3, 1, 0, 200, 1}} {
		t.Run(name, func(t *testing.T) {
			l, e := running(t), &echo{frame: 1, closed: make(chan error, 1)}
			c := dial(t, serving(t, l, func(c *Conn) {
				c.StartTLS(&tls.Config{Certificates: []tls.Certificate{mine}}, func(tls.ConnectionState) { t.Error("a handshake") })
			}, func() Handler { return e }))
			_, _ = c.Write(said)
			_ = c.(*net.TCPConn).CloseWrite()
			if err := <-e.closed; err == nil {
				t.Error("closed without a reason")
			}
		})
	}
}

func TestTakesOverWhatWasDialled(t *testing.T) {
	mine, roots := certificate(t)
	for _, encrypted := range []bool{false, true} {
		l := running(t)
		w := &waiter{got: make(chan []byte, 1), closed: make(chan error, 1)}
		w.ready.Store(true)
		e := &echo{frame: 1, closed: make(chan error, 1)}
		address := serving(t, l, func(c *Conn) {
			if encrypted {
				c.StartTLS(&tls.Config{Certificates: []tls.Certificate{mine}}, func(tls.ConnectionState) {})
			}
		}, func() Handler { return e })
		socket, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		d := NewDialed(socket.(*net.TCPConn))
		var outer net.Conn = d
		var client *tls.Conn
		if encrypted {
			client = tls.Client(d, &tls.Config{RootCAs: roots, ServerName: "loop"})
			outer = client
		}
		says(t, outer, 100_000)
		l.Do(func() {
			c, err := l.AdoptDialed(d, client, w)
			if err != nil {
				t.Error(err)
				return
			}
			c.Write([]byte("taken over"))
		})
		got := ""
		for len(got) < len("taken over") {
			got += string(<-w.got)
		}
		if got != "taken over" {
			t.Errorf("the echo is %q", got)
		}
	}
}
