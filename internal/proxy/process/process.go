package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/internal/faultpoint"
	"kurabe/internal/logkey"
	"kurabe/internal/proxy"
	"kurabe/internal/proxy/eventloop"
	"kurabe/internal/proxy/pool"
)

const (
	// processors: one for the loop, one for logins, handshakes and the garbage collector.
	processors = 2
	// memoryMax is where the garbage collector begins to work hard: ten thousand clients with
	// TLS have some 400 MiB.
	memoryMax = 768 << 20
	// drainTime bounds how long clients may finish their transactions when the proxy stops.
	drainTime = 30 * time.Second
)

// process is a running proxy. What is not said to be otherwise belongs to the loop's thread.
type process struct {
	dir     string
	began   time.Time
	log     *slog.Logger
	level   *slog.LevelVar
	loop    *eventloop.Loop
	speaks  protocol
	pool    *pool.Pool
	opener  *opener
	config  Config
	sum     string
	serving map[netip.AddrPort]*endpoint
	stops   bool

	reloading sync.Mutex // one reload at a time
}

// endpoint is one that is served.
type endpoint struct {
	name     string
	listener *eventloop.Listener
	frontend proxy.Frontend
}

// Run serves the proxy of a folder until it is told to stop.
func Run(dir string) error {
	runtime.GOMAXPROCS(processors)
	debug.SetMemoryLimit(memoryMax)
	file, err := openLog(filepath.Join(dir, runName, logName))
	if err != nil {
		return err
	}
	defer file.Close()
	p := &process{dir: dir, began: time.Now().UTC(), level: new(slog.LevelVar), serving: map[netip.AddrPort]*endpoint{}}
	p.log = slog.New(&handler{out: file, level: p.level})
	if err := p.start(); err != nil {
		p.log.Error("The proxy could not start.", logkey.Error, err)
		return err
	}
	control, err := p.listenControl()
	if err != nil {
		return err
	}
	server := &http.Server{Handler: p.control(), ReadHeaderTimeout: controlTime}
	go func() { _ = server.Serve(control) }()
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go p.opener.probe(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	go func() {
		<-signals
		p.stop()
		<-signals // twice: at once
		p.loop.Stop()
	}()
	p.loop.OnTick = p.tick
	p.log.Info("The proxy has started.", "pid", os.Getpid())
	faultpoint.Reach("proxy", "serving")
	err = p.loop.Run()
	p.log.Info("The proxy has ended.")
	return err
}

// start does what needs no loop that runs.
func (p *process) start() error {
	config, err := ReadConfig(p.dir)
	if err != nil {
		return err
	}
	var known bool
	if p.speaks, known = protocols[config.Engine]; !known {
		return fmt.Errorf("%s: no protocol for engine %q", configName, config.Engine)
	}
	if p.loop, err = eventloop.New(); err != nil {
		return err
	}
	all, err := config.settings(p.log)
	if err != nil {
		return err
	}
	p.opener = &opener{speaks: p.speaks, clients: p.speaks.opener(all[0]), mine: p.speaks.opener(all[0]), health: map[netip.AddrPort]Health{}}
	p.pool = pool.New(p.loop, p.opener, config.limits())
	if err := p.apply(config); err != nil {
		return err
	}
	route, err := ReadRoute(p.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	p.follow(route)
	return nil
}

// apply puts a configuration in force, as a whole or not at all.
func (p *process) apply(c Config) error {
	all, err := c.settings(p.log)
	if err != nil {
		return err
	}
	sum, err := c.Sum()
	if err != nil {
		return err
	}
	fresh := map[netip.AddrPort]*net.TCPListener{}
	defer func() {
		for _, socket := range fresh {
			_ = socket.Close() // the loop has a copy
		}
	}()
	for _, e := range c.Endpoints {
		if p.serving[e.Address] == nil {
			if fresh[e.Address], err = listen(e.Address); err != nil {
				return err
			}
		}
	}
	p.level.Set(slog.LevelInfo)
	if c.DebugLogging {
		p.level.Set(slog.LevelDebug)
	}
	p.opener.apply(all[0])
	wanted := map[netip.AddrPort]bool{}
	for n, e := range c.Endpoints {
		wanted[e.Address] = true
		if served := p.serving[e.Address]; served != nil {
			served.name = e.Name
			served.frontend.Apply(all[n])
			continue
		}
		frontend := p.speaks.frontend(p.loop, p.pool, all[n])
		listener, err := p.loop.Listen(fresh[e.Address], frontend.Accept)
		if err != nil {
			return err
		}
		p.serving[e.Address] = &endpoint{e.Name, listener, frontend}
	}
	for address, served := range p.serving {
		if !wanted[address] {
			delete(p.serving, address)
			served.listener.Close()
			served.frontend.Stop(func() {})
		}
	}
	p.pool.SetLimits(c.limits())
	p.config, p.sum = c, sum
	return nil
}

// listen takes an address that this machine may not have yet, or any more: it can move.
func listen(address netip.AddrPort) (*net.TCPListener, error) {
	free := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failure error
		err := c.Control(func(fd uintptr) { failure = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1) })
		return errors.Join(err, failure)
	}}
	free.SetMultipathTCP(false)
	socket, err := free.Listen(context.Background(), "tcp", address.String())
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", address, err)
	}
	return socket.(*net.TCPListener), nil
}

// follow leads to other servers, unless the route is of an epoch that is over.
func (p *process) follow(r pool.Route) {
	before := p.pool.Route()
	p.pool.SetRoute(r)
	now := p.pool.Route()
	p.opener.route.Store(&now)
	if before.Epoch != now.Epoch || before.Writer != now.Writer {
		p.log.Info("The proxy leads to another server.", "epoch", now.Epoch, "writer", words(now.Writer))
	}
}

func words(at netip.AddrPort) string {
	if !at.IsValid() {
		return "none"
	}
	return at.String()
}

// reload reads both files again.
func (p *process) reload() error {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	route, routeErr := ReadRoute(p.dir)
	config, err := ReadConfig(p.dir)
	return errors.Join(p.inLoop(func() error {
		// The route first: it may be that of a failover.
		if routeErr == nil {
			p.follow(route)
		}
		if err != nil || p.stops {
			return err
		}
		if config.Engine != p.config.Engine {
			return fmt.Errorf("%s: a proxy keeps its engine", configName)
		}
		return p.apply(config)
	}), routeErr)
}

// errEnded says that the loop has stopped.
var errEnded = errors.New("the proxy has ended")

// inLoop does something on the loop's thread and waits for it.
func (p *process) inLoop(do func() error) error {
	done := make(chan error, 1)
	if !p.loop.Do(func() { done <- do() }) {
		return errEnded
	}
	return <-done
}

// stop takes no more clients, lets those that are there finish their transactions, and ends.
func (p *process) stop() {
	p.loop.Do(func() {
		if p.stops {
			return
		}
		p.stops = true
		p.log.Info("The proxy stops.")
		left := len(p.serving)
		for _, e := range p.serving {
			e.listener.Close()
			e.frontend.Stop(func() {
				if left--; left == 0 {
					p.loop.Stop()
				}
			})
		}
	})
	time.AfterFunc(drainTime, p.loop.Stop)
}

func (p *process) tick(now time.Time) {
	p.pool.Tick(now)
	for _, e := range p.serving {
		e.frontend.Tick(now)
	}
}

// opener opens connections, and keeps how that went.
type opener struct {
	speaks        protocol
	clients, mine loginOpener // mine is for logins that are not for a client
	settings      atomic.Pointer[proxy.Settings]
	route         atomic.Pointer[pool.Route]

	mu     sync.Mutex // guards health
	health map[netip.AddrPort]Health
}

func (o *opener) apply(s *proxy.Settings) {
	plain := *s
	plain.InitQuery = ""
	o.clients.Apply(s)
	o.mine.Apply(&plain)
	o.settings.Store(s)
}

// Open implements pool.Opener.
func (o *opener) Open(key pool.Key, address netip.AddrPort, deadline time.Time) (*pool.Opened, error) {
	opened, err := o.clients.Open(key, address, deadline)
	if refused := (*pool.Refused)(nil); !errors.As(err, &refused) {
		o.note(address, err) // what a server refuses to one client says nothing of it
	}
	return opened, err
}
