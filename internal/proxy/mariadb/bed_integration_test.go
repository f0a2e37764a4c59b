//go:build integration

package mariadb

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"kurabe/internal/logkey"
	"kurabe/internal/proxy"
	"kurabe/internal/proxy/eventloop"
	"kurabe/internal/proxy/pool"
)

const password = "a secret of the app"

// database is a server for all tests of the package, which TestMain ends.
var database struct {
	once    sync.Once
	err     error
	folder  string
	address netip.AddrPort
	process *exec.Cmd
}

func TestMain(m *testing.M) {
	driver.SetLogger(driver.Logger(quietLog{}))
	code := m.Run()
	stopDatabase()
	os.Exit(code)
}

type quietLog struct{}

func (quietLog) Print(...any) {}

// realServer starts MariaDB once and gives its address.
func realServer(t testing.TB) netip.AddrPort {
	t.Helper()
	database.once.Do(func() { database.err = startDatabase() })
	if database.err != nil {
		t.Fatal(database.err)
	}
	return database.address
}

// asRoot is what a server demands of root, and refuses of others.
func asRoot(args ...string) []string {
	if os.Getuid() == 0 {
		args = append(args, "--user=root")
	}
	return args
}

func startDatabase() error {
	folder, err := os.MkdirTemp("", "proxy-mariadb-")
	if err != nil {
		return err
	}
	database.folder = folder
	data := filepath.Join(folder, "data")
	if out, err := exec.Command("mariadb-install-db", asRoot("--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")...).CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	database.address = free.Addr().(*net.TCPAddr).AddrPort()
	_ = free.Close()
	if err := launchDatabase(); err != nil {
		return err
	}
	root, err := sql.Open("mysql", "root@unix("+filepath.Join(folder, "s")+")/")
	if err != nil {
		return err
	}
	defer root.Close()
	for _, statement := range []string{
		"CREATE DATABASE shop", "CREATE DATABASE depot",
		"CREATE USER app@'%' IDENTIFIED BY '" + password + "'", "GRANT ALL ON *.* TO app@'%'",
		"CREATE USER reader@'%' IDENTIFIED BY '" + password + "'", "GRANT SELECT ON shop.* TO reader@'%'",
	} {
		if _, err := root.Exec(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func launchDatabase() error {
	folder := database.folder
	database.process = exec.Command("mariadbd", asRoot("--no-defaults", "--datadir="+filepath.Join(folder, "data"), "--socket="+filepath.Join(folder, "s"),
		"--port="+fmt.Sprint(database.address.Port()), "--bind-address=127.0.0.1", "--local-infile=1", "--skip-name-resolve",
		"--max-allowed-packet=64M", "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0")...)
	var log bytes.Buffer
	database.process.Stderr = &log
	if err := database.process.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", database.address.String())
		if err == nil {
			_ = c.Close()
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("mariadbd does not listen: %w: %s", err, log.String())
		}
	}
}

func stopDatabase() {
	if database.process != nil {
		_ = database.process.Process.Kill()
		_ = database.process.Wait()
	}
	if database.folder != "" {
		_ = os.RemoveAll(database.folder)
	}
}

// bed is a proxy before a server.
type bed struct {
	t        testing.TB
	loop     *eventloop.Loop
	pool     *pool.Pool
	frontend *Frontend
	address  string
	settings proxy.Settings
}

// newBed starts a proxy with at most so many connections to the server.
func newBed(t testing.TB, servers int, changes ...func(*proxy.Settings)) *bed {
	t.Helper()
	server := realServer(t)
	var log io.Writer = io.Discard
	if testing.Verbose() {
		log = os.Stderr
	}
	b := &bed{t: t, settings: proxy.Settings{
		Endpoint: "default", ClientsMax: 1000, IdleClientTimeout: 30 * time.Minute, Log: slog.New(slog.NewTextHandler(log, nil)),
		Users: map[string]proxy.User{"app": {Name: "app", Password: password}, "reader": {Name: "reader", Password: logkey.Secret(password)}},
	}}
	for _, change := range changes {
		change(&b.settings)
	}
	loop, err := eventloop.New()
	if err != nil {
		t.Fatal(err)
	}
	b.loop = loop
	b.pool = pool.New(loop, NewOpener(&b.settings), pool.Limits{MaxServers: servers, MaxIdle: servers, BorrowTimeout: time.Minute})
	b.frontend = New(loop, b.pool, &b.settings)
	loop.OnTick = func(now time.Time) { b.pool.Tick(now); b.frontend.Tick(now) }
	socket, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	b.address = socket.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- loop.Run() }()
	t.Cleanup(func() {
		loop.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	b.on(func() {
		if _, err := loop.Listen(socket, b.frontend.Accept); err != nil {
			t.Error(err)
		}
		b.pool.SetRoute(pool.Route{Epoch: 1, Writer: server})
	})
	_ = socket.Close()
	return b
}

// on runs f on the loop's thread and waits for it.
func (b *bed) on(f func()) {
	done := make(chan struct{})
	if b.loop.Do(func() { f(); close(done) }) {
		<-done
	}
}

// open gives one session through the proxy.
func (b *bed) open(parameters string) *sql.DB {
	b.t.Helper()
	return session(b.t, b.address, parameters)
}

// session gives one session at an address, whose driver does not open another by itself.
func session(t testing.TB, address, parameters string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", "app:"+password+"@tcp("+address+")/shop?timeout=60s&readTimeout=120s&"+parameters)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// must runs statements.
func must(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// value gives the only value of a query.
func value(t testing.TB, db *sql.DB, query string, arguments ...any) string {
	t.Helper()
	var v sql.NullString
	if err := db.QueryRow(query, arguments...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v.String
}

// pins gives how often clients were pinned.
func (b *bed) pins() (n uint64) {
	b.on(func() {
		for _, count := range b.frontend.Count().Pins {
			n += count
		}
	})
	return n
}
