//go:build integration

package proxy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	insecure "math/rand/v2"
	"net"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/internal/proxy"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/wire/pg"
	"kurabe/test/relay"
)

// raw is a client that has logged in and then says what it likes.
func raw(t *testing.T, x *through) net.Conn {
	t.Helper()
	c, err := pgconn.Connect(deadline(t), relay.URL(x.Address, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Conn.Close() })
	return h.Conn
}

func text(kind byte, s string) []byte { return pg.AppendText(nil, kind, s) }

func bare(kinds string) (b []byte) {
	for _, k := range []byte(kinds) {
		b = pg.AppendHeader(b, k, pg.HeaderBytes)
	}
	return b
}

func parsed(name, sql string) []byte {
	b, start := pg.Begin(nil, 'P')
	b = append(append(append(append(b, name...), 0), sql...), 0, 0, 0)
	return pg.End(b, start)
}

func boundAndRun() []byte {
	b, start := pg.Begin(nil, 'B')
	b = pg.End(append(b, 0, 0, 0, 0, 0, 0, 0, 0), start)
	e, start := pg.Begin(nil, 'E')
	return append(b, pg.End(append(e, 0, 0, 0, 0, 0), start)...)
}

// TestPostgresLeavesNothing: clients that go in the middle of something, or keep to no protocol,
// leave nothing that the next client of the connection would read or run into: no answer
// (PgBouncer's stray ReadyForQuery), no COPY, no transaction.
func TestPostgresLeavesNothing(t *testing.T) {
	s := server(t)
	x := start(t, s, 1, nil)
	good := x.connect(t, nil)
	exec(t, good, "CREATE TABLE IF NOT EXISTS leaves (n int)")
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	cases := map[string][]byte{
		"COPY begun":                    text('Q', "COPY leaves FROM STDIN"),
		"COPY data without COPY":        join(text('d', "1"), bare("c"), text('f', "x"), bare("S")),
		"COPY by the extended protocol": join(parsed("", "COPY leaves FROM STDIN"), boundAndRun(), bare("S"), text('d', "bad"), bare("cS")),
		"COPY with Syncs within":        join(parsed("", "COPY leaves FROM STDIN"), boundAndRun(), bare("SSSS")),
		"COPY and another statement":    join(parsed("", "COPY leaves FROM STDIN"), boundAndRun(), bare("S"), text('Q', "SELECT 1"), bare("SS")),
		"many Syncs":                    bare("SSSSSSSS"),
		"no Sync":                       join(parsed("", "SELECT 1"), boundAndRun(), bare("H")),
		"no Sync after an error":        join(parsed("", "SELECT nonsense"), boundAndRun(), bare("H")),
		"a query after an error":        join(parsed("", "SELECT nonsense"), text('Q', "SELECT 2"), bare("S"), text('Q', "SELECT 3")),
		"a transaction":                 text('Q', "BEGIN; INSERT INTO leaves VALUES (1)"),
		"a transaction in a pipeline":   join(text('Q', "BEGIN"), text('Q', "SELECT pg_sleep(0.2)"), text('Q', "SELECT 1")),
		"half a message":                text('Q', "SELECT 1")[:8],
		"half a long message":           append(pg.AppendHeader(nil, 'Q', 1<<20), make([]byte, 100<<10)...),
		"an impossible length":          {'Q', 0xff, 0xff, 0xff, 0xff},
		"a short length":                {'Q', 0, 0, 0, 1},
		"an unknown message":            text('y', "x"),
		"a login again":                 text('p', "x"),
		"a statement of another": join(func() []byte {
			b, at := pg.Begin(nil, 'B')
			return pg.End(append(append(b, 0), "kurabe_proxy_1\x00\x00\x00\x00\x00\x00\x00"...), at)
		}(), bare("S")),
		"a malformed Bind":               join(func() []byte { b, at := pg.Begin(nil, 'B'); return pg.End(append(b, 0, 0, 0xff, 0xff), at) }(), bare("S")),
		"a malformed Parse":              join(text('P', "no end"), bare("S")),
		"a malformed Describe":           join(text('D', "Q"), bare("S")),
		"Terminate in a transaction":     join(text('Q', "BEGIN"), bare("X")),
		"a query that is not terminated": append(pg.AppendHeader(nil, 'Q', 9), "SELE"...),
	}
	for name, bytes := range cases {
		for range 3 {
			c := raw(t, x)
			_, _ = c.Write(bytes)
			if insecure.IntN(2) == 0 { // some stay until they are answered
				_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
				_, _ = io.Copy(io.Discard, c)
			}
			_ = c.Close()
			if got := one[int](t, good, "SELECT $1::int", 17); got != 17 {
				t.Errorf("%s: the next client got %d", name, got)
			}
			if got := one[int](t, good, "SELECT count(*) FROM leaves"); got != 0 {
				t.Errorf("%s: %d rows", name, got)
			}
		}
	}
	if log := x.log.String(); strings.Contains(log, "not understood") {
		t.Error(log)
	}
}

// TestPostgresNoise: whatever valid and invalid messages a client mixes, others are served.
func TestPostgresNoise(t *testing.T) {
	x := start(t, server(t), 1, nil)
	good := x.connect(t, nil)
	pieces := [][]byte{text('Q', "SELECT 1"), text('Q', "BEGIN"), text('Q', "COMMIT"), text('Q', "COPY (SELECT 1) TO STDOUT"), text('Q', "SELEC"), parsed("", "SELECT 1"), parsed("a", "SELECT 1"),
		parsed("a", "SELECT 1/0"), boundAndRun(), bare("S"), bare("H"), bare("c"), text('d', "x"), text('f', "x"), text('D', "S"), text('D', "Sa"), text('D', "P"), text('C', "Sa"), text('C', "P"),
		text('Q', "COPY pg_temp.x FROM STDIN"), parsed("", "COPY nowhere FROM STDIN"), text('Q', "DISCARD ALL"), text('Q', "DEALLOCATE ALL"), text('Q', "SET work_mem = '5MB'"), text('Q', "")}
	for round := range 60 {
		seed := insecure.Uint64()
		r := insecure.New(insecure.NewPCG(seed, 2))
		c := raw(t, x)
		go func() { _, _ = io.Copy(io.Discard, c) }()
		for range 40 {
			_, _ = c.Write(pieces[r.IntN(len(pieces))])
		}
		_ = c.Close()
		if got := one[int](t, good, "SELECT $1::int", round); got != round || strings.Contains(x.log.String(), "not understood") {
			t.Fatalf("seed %d: %d\n%s", seed, got, x.log.String())
		}
	}
}

// TestPostgresRefuses: who may not log in.
func TestPostgresRefuses(t *testing.T) {
	x := start(t, server(t), 1, func(s *proxy.Settings, _ *pool.Limits) { s.ClientsMax = 2 })
	for name, change := range map[string]func(*pgx.ConnConfig){
		"wrong password": func(c *pgx.ConnConfig) { c.Password = "wrong" }, "unknown user": func(c *pgx.ConnConfig) { c.User = "nobody" },
	} {
		config, err := pgx.ParseConfig(relay.URL(x.Address, "postgres"))
		if err != nil {
			t.Fatal(err)
		}
		change(config)
		_, err = pgx.ConnectConfig(deadline(t), config)
		if !is(err, "28P01") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, first := range map[string][]byte{
		"an endless startup": {0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0}, "no startup": []byte("GET / HTTP/1.1\r\n\r\n"), "version 2": {0, 0, 0, 8, 0, 2, 0, 0},
		"a SCRAM message that is too long": append(pg.AppendStartup(nil, pg.Setting{Name: "user", Value: "app"}), append(pg.AppendHeader(nil, 'p', 1<<20), make([]byte, 4096)...)...),
		"bytes before the handshake":       append(pg.AppendSSLRequest(nil), "SELECT"...),
	} {
		c, err := net.Dial("tcp", x.Address.String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(first)
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
		_ = c.Close()
	}
	a, _ := x.connect(t, nil), x.connect(t, nil)
	if _, err := pgx.Connect(deadline(t), relay.URL(x.Address, "postgres")); !is(err, "53300") {
		t.Errorf("one too many: %v", err)
	}
	// Who says nothing, before the login or after it.
	silent, err := net.Dial("tcp", x.Address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var clients int
		x.Do(func() {
			clients = x.Frontend.Count().Clients
			if clients == 3 {
				for range 100 {
					x.Frontend.Tick(time.Now().Add(2 * time.Hour))
				}
			}
		})
		if clients == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%d clients are left", clients)
		}
	}
	if _, err := a.Exec(deadline(t), "SELECT 1"); err == nil {
		t.Error("an idle client is still there")
	}
}

// TestPostgresWaits: a client that waits for a connection can be cancelled, and waits no longer
// than it should; both times it lives on.
func TestPostgresWaits(t *testing.T) {
	x := start(t, server(t), 1, nil)
	holder, waiter := x.connect(t, simple), x.connect(t, nil)
	exec(t, holder, "BEGIN")
	waits := func(query string) error {
		failed := make(chan error, 1)
		go func() { _, err := waiter.Exec(deadline(t), query, 1); failed <- err }()
		for {
			var waiting int
			x.Do(func() { waiting = x.Pool.Stats().Waiting })
			if waiting == 1 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if strings.Contains(query, "cancel") {
			if err := waiter.PgConn().CancelRequest(deadline(t)); err != nil {
				t.Error(err)
			}
		} else {
			x.Do(func() { x.Pool.Tick(time.Now().Add(time.Hour)) })
		}
		return <-failed
	}
	if err := waits("SELECT $1::int /* cancel */"); !is(err, "57014") {
		t.Errorf("cancelled: %v", err)
	}
	if err := waits("SELECT $1::int"); !is(err, "53300") {
		t.Errorf("waited too long: %v", err)
	}
	exec(t, holder, "COMMIT")
	if got := one[int](t, waiter, "SELECT $1::int", 5); got != 5 {
		t.Error(got)
	}
}

// TestPostgresTLS: clients with TLS, also bound to the certificate, and refused without.
func TestPostgresTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	x := start(t, server(t), 1, func(s *proxy.Settings, _ *pool.Limits) {
		s.RequireTLS, s.ClientTLS = true, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}}}
	})
	if _, err := pgx.Connect(deadline(t), relay.URL(x.Address, "postgres")); !is(err, "28000") {
		t.Errorf("without TLS: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	config, err := pgx.ParseConfig(relay.URL(x.Address, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	config.TLSConfig = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
	c, err := pgx.ConnectConfig(deadline(t), config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	big := strings.Repeat("tls", 1<<20)
	if got := one[string](t, c, "SELECT $1::text", big); got != big {
		t.Errorf("%d bytes", len(got))
	}
	psql, err := osexec.LookPath("psql")
	if err != nil {
		t.Skip("psql is not installed")
	}
	url := strings.Replace(relay.URL(x.Address, "postgres"), "disable", "require", 1)
	for _, binding := range []string{"require", "prefer", "disable"} {
		out, err := osexec.CommandContext(deadline(t), psql, url+"&channel_binding="+binding, "-Atc", "SELECT 6 * 7").CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "42" {
			t.Errorf("channel_binding=%s: %v %s", binding, err, out)
		}
	}
}
