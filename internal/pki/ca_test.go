package pki

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func mustOpen(t *testing.T, dir string) *CA {
	t.Helper()
	ca, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func TestAuthorityIsMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	first := mustOpen(t, dir)
	if again := mustOpen(t, dir); !bytes.Equal(first.PEM(), again.PEM()) || first.Info() != again.Info() {
		t.Error("another authority after the restart")
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, keyFile): 0o600, filepath.Join(dir, certFile): 0o644} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v; want mode %04o", path, info.Mode(), err, mode)
		}
	}
	info := first.Info()
	if info.Identifier != Identifier || len(info.Thumbprint) != 40 || !info.ValidFrom.Before(time.Now()) ||
		info.ValidTill.Before(time.Now().Add(caValidity-time.Hour)) {
		t.Errorf("info %+v", info)
	}
}

func TestDamagedAuthorityIsNotReplaced(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(dir string) error
	}{
		{"key gone", func(dir string) error { return os.Remove(filepath.Join(dir, keyFile)) }},
		{"key readable by others", func(dir string) error { return os.Chmod(filepath.Join(dir, keyFile), 0o644) }},
		{"key cut", func(dir string) error { return os.Truncate(filepath.Join(dir, keyFile), 50) }},
		{"certificate cut", func(dir string) error { return os.Truncate(filepath.Join(dir, certFile), 50) }},
		{"certificate of another", func(dir string) error {
			other := mustOpen(t, t.TempDir())
			return os.WriteFile(filepath.Join(dir, certFile), other.PEM(), 0o644)
		}},
	} {
		dir := t.TempDir()
		mustOpen(t, dir)
		if err := c.damage(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil {
			t.Errorf("%s: it opened", c.name)
		}
	}
}

func TestCutFirstStartIsFinished(t *testing.T) {
	dir := t.TempDir()
	mustOpen(t, dir)
	if err := os.Remove(filepath.Join(dir, certFile)); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir)
}

func TestServerCertificateWorksForClients(t *testing.T) {
	ca := mustOpen(t, t.TempDir())
	keyPEM, csrPEM, err := NewKeyAndCSR(strings.Repeat("long-name-", 20))
	if err != nil {
		t.Fatal(err)
	}
	certPEM, err := ca.Sign(csrPEM, []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"db.example"}, ValidityMax)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	if period := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore); period > ValidityMax || pair.Leaf.NotBefore.After(time.Now().Add(-12*time.Hour)) {
		t.Errorf("valid for %s from %s", period, pair.Leaf.NotBefore)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM())
	for name, works := range map[string]bool{"127.0.0.1": true, "db.example": true, "other.example": false, "127.0.0.2": false} {
		client, server := connect(t)
		go tls.Server(server, &tls.Config{Certificates: []tls.Certificate{pair}}).Handshake() // the client judges
		err := tls.Client(client, &tls.Config{RootCAs: roots, ServerName: name}).Handshake()
		if (err == nil) != works {
			t.Errorf("client of %s: %v", name, err)
		}
	}
}

// A server shows its certificate also when it is the client, as a follower does to its
// source: a server that asks for one accepts it, and none of another authority.
func TestServerCertificateWorksAsAClients(t *testing.T) {
	ours, theirs := mustOpen(t, t.TempDir()), mustOpen(t, t.TempDir())
	for name, c := range map[string]struct {
		signer *CA
		works  bool
	}{"ours": {ours, true}, "another authority's": {theirs, false}} {
		keyPEM, csrPEM, err := NewKeyAndCSR("db-1~2")
		if err != nil {
			t.Fatal(err)
		}
		certPEM, err := c.signer.Sign(csrPEM, []net.IP{net.IPv4(127, 0, 0, 1)}, nil, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			t.Fatal(err)
		}
		if pair.Leaf.Subject.CommonName != "db-1~2" {
			t.Errorf("it is the certificate of %q", pair.Leaf.Subject.CommonName)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ours.PEM())
		client, server := connect(t)
		go tls.Client(client, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}).Handshake() // the server judges
		err = tls.Server(server, &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots,
		}).Handshake()
		if (err == nil) != c.works {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// connect returns the two ends of a TCP connection. An in-memory pipe will not
// do: without a buffer a client that refuses the certificate and a server that
// still sends it wait for each other.
func connect(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{client, server} {
		c.SetDeadline(time.Now().Add(30 * time.Second)) // fails on closed ones only
		t.Cleanup(func() { c.Close() })
	}
	return client, server
}

func TestSignRefuses(t *testing.T) {
	ca := mustOpen(t, t.TempDir())
	_, csrPEM, err := NewKeyAndCSR("n")
	if err != nil {
		t.Fatal(err)
	}
	ip := []net.IP{net.IPv4(127, 0, 0, 1)}
	forged := forge(t, csrPEM)
	for _, c := range []struct {
		name     string
		csr      []byte
		ips      []net.IP
		validity time.Duration
	}{
		{"no address", csrPEM, nil, time.Hour},
		{"too long a validity", csrPEM, ip, ValidityMax + 1},
		{"no validity", csrPEM, ip, 0},
		{"not PEM", []byte("x"), ip, time.Hour},
		{"huge", bytes.Repeat([]byte("x"), csrBytesMax+1), ip, time.Hour},
		{"a certificate instead", ca.PEM(), ip, time.Hour},
		{"broken signature", forged, ip, time.Hour},
	} {
		if _, err := ca.Sign(c.csr, c.ips, nil, c.validity); err == nil {
			t.Errorf("%s: signed", c.name)
		}
	}
}

// forge breaks a request's signature.
func forge(t *testing.T, csrPEM []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(csrPEM)
	rand.Read(block.Bytes[len(block.Bytes)-8:])
	return pem.EncodeToMemory(block)
}

func FuzzParseRequest(f *testing.F) {
	_, csrPEM, err := NewKeyAndCSR("n")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(csrPEM)
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if csr, err := parseRequest(text); err == nil && csr.PublicKey == nil {
			t.Error("a request without a key")
		}
	})
}

// A host whose clock is behind accepts what was made just now; one whose clock is ahead
// refuses what has ended by it.
func TestCertificateForAClockThatIsWrong(t *testing.T) {
	ca := mustOpen(t, t.TempDir())
	_, csrPEM, err := NewKeyAndCSR("host-1")
	if err != nil {
		t.Fatal(err)
	}
	party, err := ca.SignParty(csrPEM, Party{PartyAgent, "host-1"}, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	database, err := ca.Sign(csrPEM, nil, []string{"db.example"}, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM())
	for by, good := range map[time.Duration]bool{-12 * time.Hour: true, -3 * time.Hour: true, 0: true, 12 * time.Hour: true, 25 * time.Hour: false, -48 * time.Hour: false} {
		for what, certPEM := range map[string][]byte{"a host's": party, "a database's": database} {
			_, err := leaf(t, certPEM).Verify(x509.VerifyOptions{Roots: roots, CurrentTime: time.Now().Add(by), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			if (err == nil) != good {
				t.Errorf("%s, by a clock that is off by %v: %v", what, by, err)
			}
		}
	}
}

func TestDerivedKeyIsTheServices(t *testing.T) {
	dir, joined := t.TempDir(), t.TempDir()
	ca := mustOpen(t, dir)
	keyPEM, err := ca.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	if err := Adopt(joined, keyPEM, ca.PEM()); err != nil {
		t.Fatal(err)
	}
	derive := func(ca *CA, purpose string) [32]byte {
		key, err := ca.Derive(purpose)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	want := derive(ca, "a")
	if derive(mustOpen(t, dir), "a") != want || derive(mustOpen(t, joined), "a") != want {
		t.Error("another key after a restart or at another server")
	}
	if derive(ca, "b") == want || derive(mustOpen(t, t.TempDir()), "a") == want {
		t.Error("the same key for another purpose or of another authority")
	}
}
