//go:build integration

package mariadb

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"kurabe/internal/proxy"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/wire/my"
)

// certificate is one for itself.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"proxy"}, IsCA: true, BasicConstraintsValid: true,
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

func TestTLSOfClients(t *testing.T) {
	mine, roots := certificate(t)
	b := newBed(t, 1, func(s *proxy.Settings) {
		s.RequireTLS, s.ClientTLS = true, &tls.Config{Certificates: []tls.Certificate{mine}}
	})
	if err := driver.RegisterTLSConfig("proxy", &tls.Config{RootCAs: roots, ServerName: "proxy"}); err != nil {
		t.Fatal(err)
	}
	db := b.open("tls=proxy")
	if got := value(t, db, "SELECT REPEAT('x', 3000000)"); len(got) != 3_000_000 {
		t.Errorf("%d bytes", len(got))
	}
	if err := b.open("").Ping(); err == nil || !strings.Contains(err.Error(), "3159") {
		t.Errorf("without TLS: %v", err)
	}
}

// TestLogins says the same of an unknown user and of a wrong password, and names a schema
// that does not exist.
func TestLogins(t *testing.T) {
	b := newBed(t, 1)
	said := map[string]string{}
	for name, source := range map[string]string{
		"right":          "app:" + password + "@tcp(" + b.address + ")/shop",
		"no schema":      "app:" + password + "@tcp(" + b.address + ")/",
		"wrong password": "app:wrong@tcp(" + b.address + ")/shop",
		"unknown":        "nobody:wrong@tcp(" + b.address + ")/shop",
		"no password":    "app@tcp(" + b.address + ")/shop",
		"unknown schema": "app:" + password + "@tcp(" + b.address + ")/nowhere",
		"denied schema":  "reader:" + password + "@tcp(" + b.address + ")/depot",
	} {
		db, err := sql.Open("mysql", source)
		if err != nil {
			t.Fatal(err)
		}
		said[name] = fmt.Sprint(db.Ping())
		_ = db.Close()
	}
	for name, want := range map[string]string{
		"right": "<nil>", "no schema": "<nil>",
		"wrong password": "Error 1045 (28000): Access denied for user 'app'@'127.0.0.1' (using password: YES)",
		"unknown":        "Error 1045 (28000): Access denied for user 'nobody'@'127.0.0.1' (using password: YES)",
		"no password":    "Error 1045 (28000): Access denied for user 'app'@'127.0.0.1' (using password: NO)",
		"unknown schema": "Error 1049 (42000): Unknown database 'nowhere'",
		"denied schema":  "Error 1044 (42000): Access denied for user 'reader'@'%' to database 'depot'",
	} {
		if said[name] != want {
			t.Errorf("%s: %s", name, said[name])
		}
	}
}

// raw is a client that speaks the protocol by hand.
type raw struct {
	t *testing.T
	net.Conn
	id uint32
}

// dialRaw logs in by a plugin.
func dialRaw(t *testing.T, address, plugin string, capabilities uint64) *raw {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	r := &raw{t: t, Conn: conn}
	p, _ := r.read()
	g, err := my.ReadGreeting(p)
	if err != nil {
		t.Fatal(err)
	}
	r.id = g.ThreadID
	l := my.Login{Capabilities: always&^my.SessionTrack | my.ConnectWithDB | capabilities, Collation: 45, User: []byte("app"), Database: []byte("shop"), Plugin: []byte(plugin)}
	l.Answer, _ = my.Prove(plugin, g.Scramble[:], password)
	r.send(1, l.Append(nil))
	p, sequence := r.read()
	if p[0] == my.MarkEOF {
		plugin, scramble, err := my.ReadAuthSwitch(p)
		if err != nil {
			t.Fatal(err)
		}
		proof, err := my.Prove(plugin, scramble, password)
		if err != nil {
			t.Fatal(err)
		}
		r.send(sequence+1, proof)
		p, _ = r.read()
	}
	if p[0] != my.MarkOK {
		t.Fatalf("the login: %v", my.ReadError(p))
	}
	return r
}

func (r *raw) send(sequence byte, payload ...[]byte) {
	if _, err := r.Write(my.AppendPacket(nil, sequence, payload...)); err != nil {
		r.t.Error(err)
	}
}

func (r *raw) read() ([]byte, byte) {
	var header [my.HeaderBytes]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		r.t.Fatal(err)
	}
	length, sequence := my.Header(header[:])
	p := make([]byte, length)
	if _, err := io.ReadFull(r, p); err != nil {
		r.t.Fatal(err)
	}
	return p, sequence
}

// query sends a statement and gives the marks of the answer's packets.
func (r *raw) query(text string) (packets [][]byte) {
	r.send(0, []byte{my.ComQuery}, []byte(text))
	a := answer{}
	a.begin(my.ComQuery)
	for {
		p, sequence := r.read()
		packets = append(packets, p)
		if a.passes(len(p), p[0]) {
			a.passed(len(p), sequence)
			continue
		}
		if what, err := a.packet(p, sequence); err != nil {
			r.t.Fatal(err)
		} else if what != goesOn {
			return packets
		}
	}
}

func TestClientsOfEachPlugin(t *testing.T) {
	b := newBed(t, 1)
	for _, plugin := range []string{my.NativePassword, my.Ed25519, "caching_sha2_password"} {
		if got := dialRaw(t, b.address, plugin, 0).query("SELECT 1"); len(got) != 5 {
			t.Errorf("%s: %q", plugin, got)
		}
	}
}

func TestCommands(t *testing.T) {
	b := newBed(t, 1)
	r := dialRaw(t, b.address, my.NativePassword, 0)
	r.query("CREATE OR REPLACE TABLE listed (a INT, b TEXT)")
	for name, c := range map[string]struct {
		command []byte
		packets int
		mark    byte // of the first
	}{
		"ping":           {[]byte{my.ComPing}, 1, my.MarkOK},
		"schema":         {append([]byte{my.ComInitDB}, "depot"...), 1, my.MarkOK},
		"no schema":      {append([]byte{my.ComInitDB}, "nowhere"...), 1, my.MarkError},
		"statistics":     {[]byte{my.ComStatistics}, 1, 'U'},
		"set option":     {[]byte{my.ComSetOption, 0, 0}, 1, my.MarkEOF},
		"reset":          {[]byte{my.ComResetConnection}, 1, my.MarkOK},
		"replication":    {[]byte{my.ComBinlogDump, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0}, 1, my.MarkError},
		"register":       {[]byte{my.ComRegisterSlave}, 1, my.MarkError},
		"unknown":        {[]byte{0x77}, 1, my.MarkError},
		"no statement":   {[]byte{my.ComStmtExecute, 9, 0, 0, 0, 0, 1, 0, 0, 0}, 1, my.MarkError},
		"short execute":  {[]byte{my.ComStmtExecute}, 1, my.MarkError},
		"fields":         {append([]byte{my.ComFieldList}, "listed\x00"...), 3, 3},
		"kill of nobody": {append([]byte{my.ComQuery}, "KILL QUERY 77"...), 1, my.MarkError},
	} {
		t.Run(name, func(t *testing.T) {
			r := dialRaw(t, b.address, my.NativePassword, 0)
			r.send(0, c.command)
			for i := range c.packets {
				if p, _ := r.read(); i == 0 && p[0] != c.mark {
					t.Errorf("%q", p)
				}
			}
			if got := r.query("SELECT 1"); len(got) != 5 {
				t.Errorf("afterwards %q", got)
			}
		})
	}
}

// TestOptionsAreTheClients refuses two statements at once from a client that has not asked
// for them, on the connection of one that has.
func TestOptionsAreTheClients(t *testing.T) {
	b := newBed(t, 1)
	several := dialRaw(t, b.address, my.NativePassword, my.MultiStatements)
	if got := several.query("SELECT 1; SELECT 2"); len(got) != 10 {
		t.Errorf("%q", got)
	}
	one := dialRaw(t, b.address, my.NativePassword, 0)
	if got := one.query("SELECT 1; SELECT 2"); len(got) != 1 || got[0][0] != my.MarkError {
		t.Errorf("%q", got)
	}
	one.send(0, []byte{my.ComSetOption, 0, 0})
	one.read()
	if got := one.query("SELECT 1; SELECT 2"); len(got) != 10 {
		t.Errorf("%q", got)
	}
}

func TestLocalFile(t *testing.T) {
	b := newBed(t, 1)
	db, other := b.open(""), b.open("")
	content := strings.Repeat("7\n", 1_500_000)
	driver.RegisterReaderHandler("numbers", func() io.Reader { return strings.NewReader(content) })
	must(t, db, "CREATE OR REPLACE TABLE loaded (a INT)", "LOAD DATA LOCAL INFILE 'Reader::numbers' INTO TABLE loaded")
	if got := value(t, other, "SELECT SUM(a) FROM loaded"); got != "10500000" {
		t.Errorf("the sum is %s", got)
	}
	if _, err := db.Exec("LOAD DATA LOCAL INFILE 'Reader::numbers' INTO TABLE nowhere"); err == nil {
		t.Error("loaded into no table")
	}
	if got := value(t, db, "SELECT 1"); got != "1" {
		t.Errorf("afterwards %s", got)
	}
}

// TestPreparedStatements holds that statements go on over other clients' use of the only
// connection, over changes of tables, and with the types of their own parameters.
func TestPreparedStatements(t *testing.T) {
	b := newBed(t, 1)
	one, other := b.open(""), b.open("")
	must(t, one, "CREATE OR REPLACE TABLE changes (a INT)", "INSERT INTO changes VALUES (1)")
	first, err := one.Prepare("SELECT *, ? FROM changes")
	if err != nil {
		t.Fatal(err)
	}
	second, err := other.Prepare("SELECT *, ? FROM changes")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		var a int
		var text string
		if err := first.QueryRow(i).Scan(&a, &text); err != nil || text != fmt.Sprint(i) {
			t.Errorf("%q, %v", text, err)
		}
		if err := second.QueryRow("x").Scan(&a, &text); err != nil || text != "x" {
			t.Errorf("%q, %v", text, err)
		}
	}
	must(t, other, "ALTER TABLE changes ADD b INT DEFAULT 5", "USE depot")
	var a, added int
	var text string
	if err := first.QueryRow("y").Scan(&a, &added, &text); err != nil || added != 5 || text != "y" {
		t.Errorf("%d %q, %v", added, text, err)
	}
	if err := second.QueryRow("z").Scan(&a, &added, &text); err != nil || text != "z" {
		t.Errorf("in another schema: %q, %v", text, err)
	}
	if got := value(t, other, "SELECT DATABASE()"); got != "depot" {
		t.Errorf("the schema is %s", got)
	}
	long := strings.Repeat("l", 3<<20)
	if err := one.QueryRow("SELECT LENGTH(?), ?", long, 1).Scan(&a, &added); err != nil || a != len(long) {
		t.Errorf("long data: %d, %v", a, err)
	}
	if n := b.pins(); n != 0 {
		t.Errorf("%d pins", n)
	}
}

// awaitBusy waits until a client's statement runs at the server.
func (b *bed) awaitBusy(id uint32) {
	b.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for busy := false; !busy; time.Sleep(time.Millisecond) {
		b.on(func() { c := b.frontend.byID[id]; busy = c.busy && c.server != nil && c.server.own == nil })
		if time.Now().After(deadline) {
			b.t.Fatal("the statement does not run after a minute")
		}
	}
}

// TestKillHitsTheRightOne is a fault that other proxies have had: a cancellation that ends
// somebody else's query.
func TestKillHitsTheRightOne(t *testing.T) {
	b := newBed(t, 1)
	victim := dialRaw(t, b.address, my.NativePassword, 0)
	victim.send(0, []byte{my.ComQuery}, []byte("SELECT SLEEP(100)"))
	b.awaitBusy(victim.id)
	// It comes while there is no connection left, as a driver does that cancels.
	killer := dialRaw(t, b.address, my.NativePassword, 0)
	if got := killer.query(fmt.Sprintf("KILL QUERY %d", victim.id)); got[0][0] != my.MarkOK {
		t.Fatalf("%q", got)
	}
	for p, _ := victim.read(); ; p, _ = victim.read() { // SLEEP gives 1 or an error
		if p[0] == my.MarkError || len(p) == 2 && p[1] == '1' {
			break
		}
	}
	for range 20 {
		if got := killer.query("SELECT 1"); len(got) != 5 {
			t.Errorf("the killer's own query: %q", got)
		}
		if got := killer.query(fmt.Sprintf("KILL QUERY %d", victim.id)); got[0][0] != my.MarkOK {
			t.Errorf("a KILL of who is idle: %q", got)
		}
	}
}

func TestCancelledQueryOfADriver(t *testing.T) {
	b := newBed(t, 1)
	db := b.open("")
	within, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, err := db.ExecContext(within, "DO SLEEP(2)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
	if got := value(t, db, "SELECT 1"); got != "1" {
		t.Errorf("afterwards %s", got)
	}
}

func TestChangeOfUserAndReset(t *testing.T) {
	b := newBed(t, 1)
	r := dialRaw(t, b.address, my.NativePassword, 0)
	r.query("SET @a = 1")
	r.query("BEGIN")
	r.send(0, []byte{my.ComResetConnection})
	if p, _ := r.read(); p[0] != my.MarkOK {
		t.Fatalf("%q", p)
	}
	if got := dialRaw(t, b.address, my.NativePassword, 0).query("SELECT 1"); len(got) != 5 {
		t.Errorf("the only connection is not free: %q", got)
	}
	r.query("SET @a = 1")
	r.send(0, []byte{my.ComChangeUser}, []byte("reader\x00\x00shop\x00\x2d\x00mysql_clear_password\x00"))
	p, sequence := r.read()
	plugin, scramble, err := my.ReadAuthSwitch(p)
	if err != nil {
		t.Fatal(err)
	}
	proof, _ := my.Prove(plugin, scramble, password)
	r.send(sequence+1, proof)
	if p, _ := r.read(); p[0] != my.MarkOK {
		t.Fatalf("%q", p)
	}
	if got := r.query("SELECT CURRENT_USER(), @a"); !strings.Contains(string(got[4]), "reader@%") {
		t.Errorf("%q", got)
	}
}

// TestHostileClients bounds those that send rubbish, or nothing.
func TestHostileClients(t *testing.T) {
	b := newBed(t, 1)
	for name, said := range map[string][]byte{
		"http":            []byte("GET / HTTP/1.1\r\n\r\n"),
		"a long login":    append([]byte{0xff, 0xff, 0xff, 1}, make([]byte, 200_000)...),
		"an empty login":  {0, 0, 0, 1},
		"TLS unasked":     {32, 0, 0, 1, 0, 0x8a, 0, 0},
		"a command early": {1, 0, 0, 0, my.ComPing},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", b.address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			_, _ = conn.Write(said)
			if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Errorf("the connection stays: %v", err)
			}
		})
	}
	r := dialRaw(t, b.address, my.NativePassword, 0)
	r.send(7, []byte{my.ComPing})
	if p, _ := r.read(); p[0] != my.MarkError {
		t.Errorf("a packet out of order: %q", p)
	}
	if got := dialRaw(t, b.address, my.NativePassword, 0).query("SELECT 1"); len(got) != 5 {
		t.Errorf("afterwards %q", got)
	}
}

// cut ends all connections to the server.
func (b *bed) cut() {
	b.on(func() {
		r := b.pool.Route()
		writer := r.Writer
		r.Epoch++
		r.Writer = netip0
		b.pool.SetRoute(r)
		r.Epoch++
		r.Writer = writer
		b.pool.SetRoute(r)
	})
}

var netip0 = pool.Route{}.Writer

// TestServersEnd keeps idle clients, tells of a broken transaction once, and of an outcome
// that is not known.
func TestServersEnd(t *testing.T) {
	b := newBed(t, 2)
	idle, within := dialRaw(t, b.address, my.NativePassword, 0), dialRaw(t, b.address, my.NativePassword, 0)
	idle.query("SET time_zone='+03:00'")
	within.query("CREATE OR REPLACE TABLE cut (a INT)")
	within.query("BEGIN")
	within.query("INSERT INTO cut VALUES (1)")
	b.cut()
	if got := within.query("COMMIT"); got[0][0] != my.MarkError || !strings.Contains(string(got[0]), "40001") {
		t.Errorf("the COMMIT: %q", got)
	}
	if got := within.query("SELECT COUNT(*) FROM cut"); string(got[3]) != "\x010" {
		t.Errorf("%q", got)
	}
	if got := idle.query("SELECT @@time_zone"); string(got[3]) != "\x06+03:00" {
		t.Errorf("the idle client: %q", got)
	}
	for statement, state := range map[string]string{"DO SLEEP(100)": "08007", "SELECT SLEEP(100)": "40001"} {
		idle.send(0, []byte{my.ComQuery}, []byte(statement))
		b.awaitBusy(idle.id)
		b.cut()
		p, _ := idle.read()
		for p[0] != my.MarkError {
			p, _ = idle.read()
		}
		if !strings.Contains(string(p), state) {
			t.Errorf("%s: %q", statement, p)
		}
		if got := idle.query("SELECT 1"); len(got) != 5 {
			t.Errorf("afterwards %q", got)
		}
	}
}
