package agent

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/account"
	"kurabe/internal/agent/endpoint"
	"kurabe/internal/agent/proxy"
	"kurabe/internal/agent/snapshot"
	"kurabe/internal/agent/unit"
	"kurabe/internal/cgroup"
	"kurabe/internal/engine"
	"kurabe/internal/hostlink"
	"kurabe/internal/logevents"
	"kurabe/internal/logkey"
	"kurabe/internal/proxy/process"
)

// Usage tells what an instance occupies on disk, in bytes.
type Usage func(id kurabe.InstanceID) (int64, error)

// Config is what an Agent needs.
type Config struct {
	Host    kurabe.HostID
	Link    hostlink.Link
	Engines map[kurabe.EngineName]engine.Engine
	// Homes holds the instances' folders, where assignments are saved.
	Homes string
	Usage Usage
	// Snapshots keeps the host's snapshots; nil: it keeps none, and says so when it is
	// to take one.
	Snapshots snapshot.Folders
	// Logs keeps the host's continuous logs; nil: it keeps none.
	Logs Logs
	// Deeds are the tasks that this host can do, by kind.
	Deeds map[kurabe.Kind]Deed
	// Endpoint is how endpoints and addresses are held; New sets the rest of it.
	Endpoint endpoint.Config
	// Filter enforces security groups; nil: this host cannot. Account is the user id that the server
	// of an assignment runs as, 0 where that is the service's own.
	Filter  Filter
	Account func(kurabe.Assignment) int
	// Leases and Guards are for writers that a server on another host may replace; nil: there
	// are none.
	Leases Leases
	Guards Guards
	// Boottime is the clock of leases, CLOCK_BOOTTIME in nanoseconds.
	Boottime func() int64
	// Free tells the free bytes of the disk that the instances are on, a negative
	// number when it cannot; then, and when it is nil, each look measures.
	Free func() int64
	// Series keeps what is measured of the servers, Levers finds their control groups; nil:
	// nothing is measured.
	Series Appender
	Levers cgroup.Levers
	// Load keeps the database load; nil: none is asked for.
	Load LoadKeeper
	// Events keeps the logs that are exported, and Enhanced Monitoring; nil: nothing is. LogLost is told of bytes of a log that
	// were removed before, 0 for an unknown number.
	Events  *logevents.Store
	LogLost func(server kurabe.InstanceID, log string, bytes int64)
	// Accounts gives proxies users of their own; nil: all are ours.
	Accounts *account.Book
	// Lost is what this host has lost of what it had measured of an instance; nil: nothing ever.
	Lost func(kurabe.InstanceID) []kurabe.LostMeasurements
	Log  *slog.Logger
	Now  func() time.Time
	// Look is how often each instance is looked at although nothing woke its
	// worker; 0 means the default.
	Look time.Duration
}

// defaultLook is the full scan of DESIGN.md: every 30 s even if nothing woke.
const defaultLook = 30 * time.Second

// Agent obeys assignments on one host.
type Agent struct {
	Config
	host      *unit.Host
	workers   *unit.Table[kurabe.InstanceID, kurabe.Assignment, *worker]
	snapshots *snapshot.Set
	proxies   *proxy.Set
	tasks     []*taskUnits
	endpoints *endpoint.Table
	exports   *logExports

	mu       sync.Mutex                 // guards unneeded
	unneeded map[kurabe.InstanceID]bool // logs that could not be removed
	loaded   chan struct{}              // closed when every saved assignment has its worker
}

// New returns an Agent; Run starts it.
func New(c Config) *Agent {
	if c.Look == 0 {
		c.Look = defaultLook
	}
	if c.Boottime == nil {
		c.Boottime = hostlink.Boottime
	}
	a := &Agent{
		Config: c, host: &unit.Host{ID: c.Host, Link: c.Link, Log: c.Log, Now: c.Now, Look: c.Look},
		unneeded: map[kurabe.InstanceID]bool{}, loaded: make(chan struct{}),
	}
	a.workers = unit.NewTable[kurabe.InstanceID, kurabe.Assignment](kurabe.KindServer, a.host, a.newWorker)
	sc := snapshot.Config{
		Host: a.host, Dir: filepath.Join(filepath.Dir(c.Homes), "snapshot-assignments"), Folders: c.Snapshots,
		Members: a.members, DropLog: a.removeLog, Free: c.Free,
	}
	if c.Logs != nil {
		sc.Logs = c.Logs
	}
	a.exports = newLogExports(a)
	a.snapshots, a.tasks = snapshot.New(sc), a.newTasks()
	c.Endpoint.Log, c.Endpoint.Now, c.Endpoint.Guarded = c.Log, c.Now, a.leaseHolds
	a.endpoints = endpoint.New(c.Endpoint)
	a.proxies = proxy.New(proxy.Config{
		Host: a.host, Dir: filepath.Join(filepath.Dir(c.Homes), "proxies"), Addresses: a.endpoints.Addresses, Accounts: c.Accounts, Levers: c.Levers, Series: c.Series,
	})
	return a
}

// Run obeys until ctx ends, then waits for the steps under way. Databases keep
// running.
func (a *Agent) Run(ctx context.Context) error {
	saved, err := a.loadSaved()
	if err != nil {
		return err
	}
	startSnapshots, err := a.snapshots.Load()
	if err != nil {
		return err
	}
	// Rules come before addresses: what an earlier life has left in the kernel holds until here.
	if err := a.loadFilter(saved); err != nil {
		a.Log.Error("security groups not enforced; what the kernel had before stays", logkey.Error, err)
	}
	startProxies, err := a.proxies.Load() // before addresses that nobody wants are given up
	if err != nil {
		return err
	}
	a.endpoints.Addresses.HoldSaved(saved)
	// Endpoints come before anything that is done to servers: clients wait for them.
	for _, s := range saved {
		a.endpoints.Claim(s)
	}
	a.host.Wait.Go(func() { a.endpoints.Run(ctx) })
	for _, s := range saved {
		a.workers.Get(ctx, s.Instance).Give(s)
	}
	startSnapshots(ctx)
	startProxies(ctx)
	close(a.loaded)
	a.host.Wait.Go(func() { a.watchMemory(ctx) })
	a.host.Wait.Go(func() { a.watchLogs(ctx) })
	if a.Series != nil {
		a.host.Wait.Go(func() { a.sampleServers(ctx) })
	}
	a.host.Wait.Go(func() { a.exports.run(ctx) })
	a.host.Wait.Go(func() { a.snapshots.WatchSpace(ctx) })
	for update := range a.Link.Assignments(ctx, a.Host) {
		// Servers come first: a snapshot is taken of one as its assignment says.
		a.workers.Obey(ctx, update)
		a.snapshots.Obey(ctx, update)
		a.proxies.Obey(ctx, update)
		for _, d := range a.tasks {
			d.Obey(ctx, update)
		}
	}
	a.host.Wait.Wait()
	return ctx.Err()
}

// WaitLooked waits until every instance that the host had before was looked at
// and reported: what an earlier service wrote of them may be stale since.
func (a *Agent) WaitLooked(ctx context.Context) error {
	select {
	case <-a.loaded:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, w := range a.workers.List() {
		if err := w.AwaitLook(ctx); err != nil {
			return err
		}
	}
	for _, u := range a.snapshots.List() {
		if err := u.AwaitLook(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ProxyStatus asks a proxy of this host how it is.
func (a *Agent) ProxyStatus(ctx context.Context, q process.StatusQuestion) (process.Status, error) {
	return a.proxies.Status(ctx, q)
}
