package relay

import (
	"net"
	"net/netip"
	"time"

	"kurabe/internal/proxy"
	"kurabe/internal/proxy/eventloop"
	"kurabe/internal/proxy/mariadb"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/proxy/postgres"
)

// Relay serves the clients of an endpoint.
type Relay struct {
	Address  netip.AddrPort
	Loop     *eventloop.Loop
	Pool     *pool.Pool
	Frontend proxy.Frontend

	ended chan error
}

// Postgres starts a relay to a server. Its caller calls Close.
func Postgres(writer netip.AddrPort, settings *proxy.Settings, limits pool.Limits) (*Relay, error) {
	return start(writer, postgres.NewOpener(settings), limits, func(l *eventloop.Loop, p *pool.Pool) proxy.Frontend { return postgres.New(l, p, settings) })
}

// MariaDB is Postgres for the other engine.
func MariaDB(writer netip.AddrPort, settings *proxy.Settings, limits pool.Limits) (*Relay, error) {
	return start(writer, mariadb.NewOpener(settings), limits, func(l *eventloop.Loop, p *pool.Pool) proxy.Frontend { return mariadb.New(l, p, settings) })
}

func start(writer netip.AddrPort, opener pool.Opener, limits pool.Limits, frontend func(*eventloop.Loop, *pool.Pool) proxy.Frontend) (*Relay, error) {
	loop, err := eventloop.New()
	if err != nil {
		return nil, err
	}
	r := &Relay{Loop: loop, Pool: pool.New(loop, opener, limits), ended: make(chan error, 1)}
	r.Pool.SetRoute(pool.Route{Epoch: 1, Writer: writer})
	r.Frontend = frontend(loop, r.Pool)
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	if _, err := loop.Listen(listener, r.Frontend.Accept); err != nil {
		return nil, err
	}
	r.Address = listener.Addr().(*net.TCPAddr).AddrPort()
	loop.OnTick = func(now time.Time) {
		r.Pool.Tick(now)
		r.Frontend.Tick(now)
	}
	go func() { r.ended <- loop.Run() }()
	return r, nil
}

// Do calls f on the loop's thread and waits for it.
func (r *Relay) Do(f func()) {
	done := make(chan struct{})
	if r.Loop.Do(func() { f(); close(done) }) {
		<-done
	}
}

// Close ends all clients.
func (r *Relay) Close() error {
	r.Loop.Stop()
	return <-r.ended
}
