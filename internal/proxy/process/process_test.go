package process

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/daemon"
	"kurabe/internal/pki"
	"kurabe/internal/proc"
	"kurabe/internal/proxy"
	"kurabe/internal/proxy/eventloop"
	"kurabe/internal/proxy/pool"
)

const patience = time.Minute

// lines is a protocol of its own: a server greets with a line, and a client is told by which
// connection it is served.
const lines kurabe.EngineName = "lines"

func TestMain(m *testing.M) {
	if proc.IsShim() {
		proc.ShimMain()
	}
	protocols[lines] = protocol{
		opener: func(*proxy.Settings) loginOpener { return lineOpener{} },
		frontend: func(l *eventloop.Loop, p *pool.Pool, s *proxy.Settings) proxy.Frontend {
			return &lineFrontend{loop: l, pool: p, settings: s}
		},
		goodbye: []byte("bye\n"),
	}
	if len(os.Args) == 3 && os.Args[1] == "be-a-proxy" {
		if err := Run(os.Args[2]); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// lineOpener logs in where the server greets with "hello"; it is refused by any other greeting.
type lineOpener struct{}

func (lineOpener) Apply(*proxy.Settings) {}

func (lineOpener) Open(_ pool.Key, address netip.AddrPort, deadline time.Time) (*pool.Opened, error) {
	socket, err := net.DialTimeout("tcp", address.String(), time.Until(deadline))
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(socket).ReadString('\n')
	if err == nil && strings.TrimSpace(line) != "hello" {
		err = &pool.Refused{Err: errors.New(line)}
	}
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	return &pool.Opened{Dialed: eventloop.NewDialed(socket.(*net.TCPConn)), Handler: func(s *pool.Server) eventloop.Handler { return lineServer{s} }}, nil
}

type lineServer struct{ *pool.Server }

func (s lineServer) Data(*eventloop.Conn, []byte) int { return 0 }
func (s lineServer) Drained(*eventloop.Conn)          {}
func (s lineServer) Closed(*eventloop.Conn, error)    { s.Pool().Gone(s.Server) }

// lineFrontend answers each line with the address that a connection of the pool leads to.
type lineFrontend struct {
	loop     *eventloop.Loop
	pool     *pool.Pool
	settings *proxy.Settings
	counts   proxy.Counters
}

type lineClient struct {
	frontend *lineFrontend
	conn     *eventloop.Conn
	waiter   pool.Waiter
}

func (f *lineFrontend) Accept(fd int, _ netip.AddrPort) {
	c := &lineClient{frontend: f}
	c.waiter.Borrower = c
	if conn, err := f.loop.Adopt(fd, c); err == nil {
		c.conn = conn
		f.counts.ClientsReceived++
	}
}
func (f *lineFrontend) Apply(s *proxy.Settings)      { f.settings = s }
func (f *lineFrontend) Tick(time.Time)               {}
func (f *lineFrontend) Count() proxy.Counters        { return f.counts }
func (f *lineFrontend) Sessions(int) []proxy.Session { return nil }
func (f *lineFrontend) Stop(left func())             { left() }

func (c *lineClient) Data(_ *eventloop.Conn, data []byte) int {
	if s := c.frontend.pool.Borrow(pool.Key{User: "u", Reads: c.frontend.settings.Reads}, nil, &c.waiter); s != nil {
		c.Borrowed(s)
	}
	return len(data)
}
func (c *lineClient) Borrowed(s *pool.Server) {
	c.conn.Write([]byte(c.frontend.settings.Endpoint + " " + s.Address.String() + "\n"))
	s.Pool().Return(s)
}
func (c *lineClient) BorrowFailed(err error)        { c.conn.Write([]byte(err.Error() + "\n")) }
func (c *lineClient) Drained(*eventloop.Conn)       {}
func (c *lineClient) Closed(*eventloop.Conn, error) { c.frontend.pool.Leave(&c.waiter) }

// lineDatabase is a server that greets its clients.
func lineDatabase(t *testing.T, greeting string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
			_, _ = c.Write([]byte(greeting + "\n"))
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// folder is one with the files of a proxy.
type folder struct {
	t      *testing.T
	dir    string
	config Config
	client *Client
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	ca, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	key, csr, err := pki.NewKeyAndCSR("prx-1")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Sign(csr, []net.IP{net.IPv4(127, 0, 0, 1)}, nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{t: t, dir: t.TempDir(), config: Config{
		Name: "p", Engine: lines, CertificatePEM: string(cert), KeyPEM: string(key), AuthorityPEM: string(ca.PEM()),
		Endpoints: []Endpoint{{Name: "default", Address: f0(t)}}, Users: []User{{"u", "secret-of-u"}},
		MaxServers: 1, MaxIdle: 1, BorrowTimeout: 2 * patience,
	}}
	f.client = NewClient(f.dir)
	if err := os.Mkdir(RunDir(f.dir), 0o700); err != nil {
		t.Fatal(err)
	}
	f.write(pool.Route{Epoch: 1})
	return f
}

// f0 is a free address.
func f0(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func (f *folder) write(r pool.Route) {
	f.t.Helper()
	if err := errors.Join(f.config.Write(f.dir, nil), WriteRoute(f.dir, r, nil)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *folder) daemon() daemon.Daemon {
	in := func(name string) string { return filepath.Join(f.dir, name) }
	return daemon.Daemon{Work: RunDir(f.dir), Lock: in("lock"), Record: in("process.json"), Log: in("start.log")}
}

// start starts the process as an agent does.
func (f *folder) start() proc.Process {
	f.t.Helper()
	d := f.daemon()
	p, err := d.Start(f.t.Context(), proc.Spec{Name: "proxy", Argv: []string{"/proc/self/exe", "be-a-proxy", f.dir}, Env: []string{}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = d.Kill(context.Background(), syscall.SIGKILL, patience, nil) })
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	if err := daemon.Await(ctx, p, func() (bool, error) { _, err := f.client.Status(ctx, 0); return err == nil, nil }); err != nil {
		words, _ := os.ReadFile(d.Log)
		f.t.Fatal(err, string(words))
	}
	return p
}

func (f *folder) reload(r pool.Route) {
	f.t.Helper()
	f.write(r)
	if err := f.client.Reload(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *folder) status() Status {
	f.t.Helper()
	s, err := f.client.Status(f.t.Context(), 10)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// ask is what a client of an endpoint is told.
func ask(t *testing.T, at netip.AddrPort) string {
	t.Helper()
	c, err := net.DialTimeout("tcp", at.String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	_, _ = c.Write([]byte("where\n"))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func (f *folder) awaitHealth(of netip.AddrPort, want kurabe.ProxyHealth, reason kurabe.ProxyHealthReason) {
	f.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		s := f.status()
		for _, h := range s.Health {
			if h.Address == of && h.State == want && h.Reason == reason {
				return
			}
		}
		if time.Now().After(end) {
			f.t.Fatalf("the health is %+v; want %s %s of %s", s.Health, want, reason, of)
		}
	}
}

// TestServesByItsFiles: a proxy follows its route and its configuration, tells of the health of
// its servers, and serves again from its files alone when it was killed.
func TestServesByItsFiles(t *testing.T) {
	f := newFolder(t)
	first, second := lineDatabase(t, "hello"), lineDatabase(t, "hello")
	p := f.start()
	answer := make(chan string, 1)
	go func() { answer <- ask(t, f.config.Endpoints[0].Address) }() // there is no server yet
	f.reload(pool.Route{Epoch: 1, Writer: first})
	if got := <-answer; got != "default "+first.String() {
		t.Errorf("a client that came before the server was told %q", got)
	}
	f.awaitHealth(first, kurabe.TargetAvailable, "")

	f.reload(pool.Route{Epoch: 2, Writer: second})
	if got := ask(t, f.config.Endpoints[0].Address); got != "default "+second.String() {
		t.Errorf("after a failover: %q", got)
	}
	f.reload(pool.Route{Epoch: 1, Writer: first})
	if got := ask(t, f.config.Endpoints[0].Address); got != "default "+second.String() {
		t.Errorf("an older route: %q", got)
	}

	f.config.Endpoints = append(f.config.Endpoints, Endpoint{Name: "ro", Address: f0(t), Reads: true})
	f.reload(pool.Route{Epoch: 2, Writer: second, Readers: []netip.AddrPort{first}})
	if got := ask(t, f.config.Endpoints[1].Address); got != "ro "+first.String() {
		t.Errorf("a reader: %q", got)
	}
	sum, err := f.config.Sum()
	if s := f.status(); err != nil || s.Version != sum || s.Route.Epoch != 2 || len(s.Endpoints) != 2 || s.PID != p.PID {
		t.Errorf("status %+v, sum %s, %v", s, sum, err)
	}

	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait(t.Context())
	f.start()
	for n, want := range []string{"default " + second.String(), "ro " + first.String()} {
		if got := ask(t, f.config.Endpoints[n].Address); got != want {
			t.Errorf("after a kill: %q; want %q", got, want)
		}
	}
}

// TestHealth tells in RDS's words why a server cannot be used.
func TestHealth(t *testing.T) {
	f := newFolder(t)
	refuses, unreachable, breaks := lineDatabase(t, "go away"), f0(t), lineDatabase(t, "hello")
	f.start()
	f.reload(pool.Route{Epoch: 2, Writer: unreachable})
	f.awaitHealth(unreachable, kurabe.TargetUnavailable, kurabe.TargetUnreachable)
	f.reload(pool.Route{Epoch: 3, Writer: refuses})
	f.awaitHealth(refuses, kurabe.TargetUnavailable, kurabe.TargetAuthFailure)
	f.config.Users = nil
	f.reload(pool.Route{Epoch: 4, Writer: breaks})
	f.awaitHealth(breaks, kurabe.TargetUnavailable, kurabe.TargetAuthFailure)
}

// TestBadFilesChangeNothing: what cannot be read or served leaves in force what was.
func TestBadFilesChangeNothing(t *testing.T) {
	f := newFolder(t)
	server := lineDatabase(t, "hello")
	f.start()
	f.reload(pool.Route{Epoch: 2, Writer: server})
	before := f.status().Version
	good := f.config
	for name, spoil := range map[string]func(){
		"no endpoint":       func() { f.config.Endpoints = nil },
		"another engine":    func() { f.config.Engine = kurabe.Postgres },
		"no certificate":    func() { f.config.CertificatePEM = "" },
		"no address to get": func() { f.config.Endpoints = append(f.config.Endpoints, Endpoint{Name: "x", Address: server}) },
	} {
		f.config = good
		f.config.Endpoints = append([]Endpoint{}, good.Endpoints...)
		spoil()
		f.write(pool.Route{Epoch: 2, Writer: server})
		if err := f.client.Reload(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
		if s := f.status(); s.Version != before || ask(t, good.Endpoints[0].Address) != "default "+server.String() {
			t.Errorf("%s: status %+v", name, s)
		}
	}
}

// TestStops ends the process, and leaves no password in its log.
func TestStops(t *testing.T) {
	f := newFolder(t)
	p := f.start()
	if err := f.client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(RunDir(f.dir), logName))
	if err != nil || !strings.Contains(string(text), "[INFO]") || strings.Contains(string(text), "secret-of-u") {
		t.Errorf("the log: %s, %v", text, err)
	}
}
