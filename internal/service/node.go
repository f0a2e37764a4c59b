package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/agent"
	"kurabe/internal/agent/endpoint"
	"kurabe/internal/engine"
	"kurabe/internal/gateway"
	"kurabe/internal/hostlink"
	"kurabe/internal/hostread"
	"kurabe/internal/load"
	"kurabe/internal/logkey"
	"kurabe/internal/metrics/series"
	"kurabe/internal/packetfilter"
	"kurabe/internal/proc"
	"kurabe/internal/sklookup"
	"kurabe/internal/snapshot"
	"kurabe/internal/volume"
)

// hostFlags are the flags of every program that runs databases: a service, which has the
// agent of its own machine in it, and an agent of another one.
type HostConfig struct {
	Data, AddressPool, LogFormat, LogLevel string
	CopyRate                               int64 // MiB/s
	LogEvents                              int64 // GiB
	AccountIDs                             string
	StopDatabases, MaskStatements          bool
	Backups                                RepositoryConfig
	Pool                                   PoolConfig
}

func (f *HostConfig) check() error {
	if f.CopyRate < 0 || f.CopyRate > 1<<20 {
		return fmt.Errorf("--copy-rate %d is not from 0 to %d MiB/s", f.CopyRate, 1<<20)
	}
	if f.LogEvents < 1 || f.LogEvents > 1<<20 {
		return fmt.Errorf("--log-events %d is not from 1 to %d GiB", f.LogEvents, 1<<20)
	}
	return nil
}

func (f *HostConfig) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	options := &slog.HandlerOptions{Level: level}
	switch f.LogFormat {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, options)), nil
	}
	return nil, fmt.Errorf("--log-format %q is neither text nor json", f.LogFormat)
}

// enter makes the data folder, and returns its path. Links that lead to it are followed here,
// and none is from there on: whoever owns a folder further down could have made it.
func (f *HostConfig) enter() (string, error) {
	data, err := volume.Resolve(f.Data)
	if err != nil {
		return "", fmt.Errorf("data folder %s: %w", f.Data, err)
	}
	return data, enterData(data)
}

// pathMost is how long the path of a data folder may be for the engines. MariaDB has 512 bytes
// for a path (FN_REFLEN), and folders and files below take their part of them: with longer ones
// it starts at times, and at times it ends without a reason.
const pathMost = 300

// enterData makes the data folder. As root, where a parent bars the engines' users or the path
// is too long for them, it starts the program again so that they see the folder elsewhere.
func enterData(data string) error {
	mode := os.FileMode(0o700)
	if os.Getuid() == 0 {
		mode = 0o711 // engines' users pass through to their own folders
	}
	if err := os.MkdirAll(data, mode); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	if err := os.Chmod(data, mode); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	const nobody = 65534
	if os.Getuid() != 0 || proc.Bound() != "" || len(data) <= pathMost && proc.Traversable(data, nobody, nobody) {
		return nil
	}
	h, err := loadHostFile(data, "")
	if err != nil {
		return err
	}
	err = proc.ReexecBound(data, filepath.Join("/run/kurabe", string(h.ID)))
	why := "the engines' users may not enter a parent of " + data
	if len(data) > pathMost {
		why = fmt.Sprintf("the path %s has %d bytes, and the engines have room for %d", data, len(data), pathMost)
	}
	return fmt.Errorf("%s, and it cannot be shown to them elsewhere (%w); choose another folder with --data, for example /var/lib/kurabe", why, err)
}

// node is one host: what runs databases on a machine, with or without a service around it.
type node struct {
	flags *HostConfig
	log   *slog.Logger
	lock  *volume.Lock
	base  string // folder of the databases, as their servers see it
	pool  *pool  // nil without one
	repo  *repository
	// archive keeps snapshots in repo too, nil where that would only double them.
	archive *snapshot.Archive
	agent   *agent.Agent
	host    *agent.Host
	sockets *sklookup.Table
	leases  *hostlink.Leases
	reads   *hostread.Handlers
	series  *series.Store // of what is measured here
	load    *load.Store
	events  *logEvents
	lost    *losses
	// say tells the service that this host is there.
	say func(context.Context, hostlink.Alive) (hostlink.AliveAnswer, error)

	cancel context.CancelFunc      // ends every loop
	abort  context.CancelCauseFunc // ends a start under way
	loops  sync.WaitGroup
	failed chan error // first failure of a part
}

// standing is what a host is in the service.
type standing struct {
	zones  []string
	server bool // a server of the service runs on it
}

// startHost brings up the agent: from here on the databases are watched.
func (n *node) startHost(ctx, loopCtx context.Context, data string, at standing, link hostlink.Link) error {
	h, err := loadHostFile(data, n.flags.AddressPool)
	if err != nil {
		return err
	}
	addresses, err := h.addresses()
	if err != nil {
		return err
	}
	seen := n.base
	// No log is followed before there is an agent to follow it.
	logs, err := newLogs(h.ID, seen, n.repo, func(id kurabe.InstanceID) { n.agent.LogChanged(id) }, n.log)
	if err != nil {
		return err
	}
	accounts, err := openAccounts(seen, n.flags.AccountIDs)
	if err != nil {
		return err
	}
	host, engines, err := newHost(ctx, h, at, hostParts{seen, link, logs.fetch, accounts}, n.flags.CopyRate, n.log)
	if err != nil {
		return err
	}
	n.host = host
	n.archive = archive(n.repo, snapshotsOf(seen), n.flags.CopyRate)
	n.leases = hostlink.NewLeases(hostlink.Boottime)
	n.sockets = sklookup.New(sklookup.PinFolder(string(h.ID)), n.log)
	var filter agent.Filter
	if host.NoFilter == nil {
		filter = packetfilter.New(h.ID, n.log)
	}
	n.agent = agent.New(agent.Config{
		Filter: filter, Account: accountOf(host),
		Host: h.ID, Link: link, Engines: engines, Homes: placeIn(seen, "instances"),
		Usage: func(id kurabe.InstanceID) (int64, error) {
			return engine.Home{Dir: filepath.Join(placeIn(seen, "instances"), string(id))}.Used()
		},
		Free:      func() int64 { return freeBytes(seen) },
		Snapshots: snapshots(host, seen, n.flags.CopyRate, n.archive), Logs: logs, Deeds: map[kurabe.Kind]agent.Deed{kurabe.KindLogCheck: logs.Check}, Endpoint: endpoint.Config{Open: endpoint.Gateway(n.sockets), Reserve: gateway.Reserve, Network: addresses},
		Series: n.series, Load: n.load, Lost: n.lost.of, Accounts: accounts, Events: n.events.Store, LogLost: n.logLost, Levers: host.Levers, Leases: n.leases, Guards: wardens{placeIn(seen, "instances"), host.Levers}, Log: n.log.With(logkey.Host, h.ID), Now: time.Now,
	})
	n.loop("word to the service", func() error { return n.leases.Beat(loopCtx, n.say) })
	n.loop("metrics", func() error { return n.series.Run(loopCtx) })
	n.loop("log events", func() error { return n.sweepLogEvents(loopCtx) })
	n.loop("database load", func() error {
		return n.load.Run(loopCtx, time.Now, func(err error) { n.log.Warn("database load not swept", logkey.Error, err) })
	})
	n.loop("logs", func() error { return logs.Run(loopCtx) })
	n.loop("agent", func() error { return n.agent.Run(loopCtx) })
	if err := host.Announce(ctx); err != nil && !errors.Is(err, agent.ErrUnreported) {
		return fmt.Errorf("announce this host: %w", err)
	}
	return nil
}

// logLost notes that a part of a server's log could not be exported.
func (n *node) logLost(server kurabe.InstanceID, name string, bytes int64) {
	size := "an unknown number of"
	if bytes > 0 {
		size = strconv.FormatInt(bytes, 10)
	}
	n.lost.note("a part of the log "+name, size+" bytes were removed before they were exported", server)
}

// freeBytes is the free space of a folder's disk, -1 when that is not known.
func freeBytes(dir string) int64 {
	free, err := volume.FreeBytes(dir)
	if err != nil {
		return -1
	}
	return free
}

// prepareHost makes the engines' versions ready. Most requests need to know their
// parameters, and only a first start waits here for long.
func (n *node) prepareHost(ctx, loopCtx context.Context) {
	n.host.Prepare(ctx)
	n.loop("host", func() error { return n.host.Run(loopCtx) })
}

// loop runs a part; its failure ends all.
func (n *node) loop(name string, run func() error) {
	n.loops.Add(1)
	go func() {
		defer n.loops.Done()
		err := run()
		if err == nil || errors.Is(err, context.Canceled) {
			return
		}
		select {
		case n.failed <- fmt.Errorf("%s: %w", name, err):
		default:
		}
		n.abort(err)
	}()
}

// Time limits of an end: SIGTERM ends the loops within 5 s and the rest in as long, whatever
// hangs; with a full disk a loop can wait for a state store that waits for itself.
// databases that are to stop get as long as a checkpoint may take.
const (
	endLimit          = 4500 * time.Millisecond
	stopDatabasesTime = 5 * time.Minute
)

// end ends what runs: stopLoops, then the databases if they are to stop, then closeRest.
func (n *node) end(failure error, stopLoops, closeRest func()) error {
	n.log.Info("it ends", "databases", map[bool]string{false: "keep running", true: "are stopped"}[n.flags.StopDatabases])
	n.inTime(func() {
		n.announceLeave()
		stopLoops()
	})
	if n.flags.StopDatabases {
		stopCtx, cancel := context.WithTimeout(context.Background(), stopDatabasesTime)
		defer cancel()
		if err := n.agent.StopAll(stopCtx); err != nil && failure == nil {
			failure = fmt.Errorf("stop databases: %w", err)
		}
	}
	n.inTime(closeRest)
	return failure
}

// inTime ends the process when a part of its end hangs. There is no other way to end a
// goroutine, and nothing is lost: databases run on, and the state is written as it goes.
func (n *node) inTime(part func()) {
	hardStop := time.AfterFunc(endLimit, func() {
		n.log.Error("the shutdown took too long; databases keep running")
		os.Exit(3)
	})
	defer hardStop.Stop()
	part()
}

// stop ends the loops; databases keep running.
func (n *node) stop() {
	if n.cancel != nil {
		n.cancel()
	}
	n.loops.Wait()
}

// closeHost ends what is the host's own.
func (n *node) closeHost() {
	if n.host != nil {
		n.host.Levers.Prune()
	}
	if n.sockets != nil {
		if err := n.sockets.Close(); err != nil {
			n.log.Error("socket lookup not ended cleanly", logkey.Error, err)
		}
	}
}

// leave gives the data folder up.
func (n *node) leave() {
	if n.pool != nil {
		n.pool.leave()
	}
	if n.lock != nil {
		n.lock.Close()
	}
}
