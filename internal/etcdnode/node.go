package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

const (
	// tickMs and electionMs: a lone member elects itself after at most
	// electionMs (it skips all ticks but one, then raft waits from 1 to
	// electionMs/tickMs more). Shorter ticks start faster and cost idle CPU:
	// 20 ms ticks cost 1.4 % of a core, 50 ms ones 0.66 %, these 0.44 % and up to
	// 560 ms at the start.
	tickMs     = 100
	electionMs = 500
	// electionMsMultiNode is for nodes with others beside them: a disk that stalls for half
	// a second must not make them elect another leader.
	electionMsMultiNode = 1000
	// segmentBytes is the size of one log file; two are made ahead. etcd's own
	// 64 MB would take 128 MB of disk for a state of 5 MB.
	segmentBytes = 16 << 20
	// quotaBytes is where etcd stops to accept writes. 1000 instances hold
	// about 10 MB; the rest is history between two compactions.
	quotaBytes = 1 << 30
	// historyRevisions stay after a compaction, which runs every five minutes:
	// enough for a watcher that was away for a moment.
	historyRevisions = "10000"
	// snapshotEntries of log are kept in memory until the database has them for
	// good; catchUpEntries stay after that, for members that lag.
	snapshotEntries = 2000
	catchUpEntries  = 500
	// flushEvery is how often the database file follows the log. What is
	// acknowledged is in the log already; etcd's own 100 ms cost 0.3 % of a core
	// more when idle.
	flushEvery = 500 * time.Millisecond
	// closeTimeout is how long Close waits for etcd.
	closeTimeout = 2 * time.Second
)

// Options say where a node lives and whom it tells.
type Options struct {
	Dir string // made with mode 0700 if absent
	Log *slog.Logger
	// Backup is the file that Maintain writes the whole state to once a day; the
	// one before gets the ending .1. "" makes none.
	Backup string
	// Peers lets there be other nodes, nil for never. MultiNode says that there are some
	// already: the start then listens for them, and waits for a majority.
	Peers     *Peers
	MultiNode bool
}

// Node is a running etcd.
type Node struct {
	dir     string
	backup  string
	peers   *Peers
	several bool
	etcd    *embed.Etcd
	client  *clientv3.Client
	lock    *os.File
	log     *slog.Logger
	fatal   *fatalHook
	stuck   bool // etcd's own start has not returned

	peersMu    sync.Mutex // guards peerServer
	peerServer *http.Server

	closeOnce sync.Once
	closeErr  error
}

// segmentOnce guards etcd's package variable for the segment size.
var segmentOnce sync.Once

// Start opens the node in a folder, making it when it is new, and returns when
// it answers. When ctx ends before that, the start is given up.
func Start(ctx context.Context, o Options) (*Node, error) {
	segmentOnce.Do(func() { wal.SegmentSizeBytes = segmentBytes })
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	n := &Node{dir: o.Dir, backup: o.Backup, lock: lock, log: o.Log, fatal: newFatalHook(), peers: o.Peers, several: o.MultiNode}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	if err := checkSpace(n.dir); err != nil {
		return err
	}
	if err := checkFiles(n.dir); err != nil {
		return err
	}
	started := make(chan startResult, 1)
	go func() { started <- startEtcd(n.config()) }()
	select {
	case r := <-started:
		if r.err != nil {
			return fmt.Errorf("start etcd in %s: %w", n.dir, r.err)
		}
		n.etcd = r.etcd
	case <-n.fatal.fired:
		return fmt.Errorf("start etcd in %s: %w", n.dir, n.fatal.err())
	case <-ctx.Done():
		n.stuck = true
		return fmt.Errorf("start etcd in %s: %w", n.dir, ctx.Err())
	}
	n.client = v3client.New(n.etcd.Server)
	go n.watchEnd()
	if n.several {
		// Before it is ready: the others may wait for this one.
		n.peersMu.Lock()
		err := n.listen()
		n.peersMu.Unlock()
		if err != nil {
			return err
		}
	}
	select {
	case <-n.etcd.Server.ReadyNotify():
	case <-n.fatal.fired:
		return fmt.Errorf("start etcd in %s: %w", n.dir, n.fatal.err())
	case <-ctx.Done():
		return fmt.Errorf("start etcd in %s: %w", n.dir, ctx.Err())
	}
	return nil
}

// watchEnd notes the end of a node that others have taken out.
func (n *Node) watchEnd() {
	<-n.etcd.Server.StopNotify()
	n.fatal.fail(ErrRemoved) // nobody looks any more where Close was the reason
}

type startResult struct {
	etcd *embed.Etcd
	err  error
}

// startEtcd turns a panic into an error: etcd panics on files that it cannot
// read. A fatal log line ends the goroutine instead, and the hook says why.
func startEtcd(c *embed.Config) (r startResult) {
	defer func() {
		if p := recover(); p != nil {
			r.err = fmt.Errorf("etcd: %v", p)
		}
	}()
	r.etcd, r.err = embed.StartEtcd(c)
	return r
}

func (n *Node) config() *embed.Config {
	c := embed.NewConfig()
	c.Name, c.Dir = "kurabe", n.dir
	// Nothing listens; a member still has to have an address for the books.
	nowhere := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c.ListenPeerUrls, c.ListenClientUrls = nil, nil
	c.AdvertisePeerUrls, c.AdvertiseClientUrls = []url.URL{nowhere}, []url.URL{nowhere}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.EnableGRPCGateway = false
	c.TickMs, c.ElectionMs = tickMs, electionMs
	if n.peers != nil {
		n.peers.join(c)
	}
	if n.several {
		self := url.URL{Scheme: "https", Host: n.peers.Address}
		c.AdvertisePeerUrls, c.ElectionMs = []url.URL{self}, electionMsMultiNode
		if n.peers.Cluster == "" {
			c.InitialCluster = c.InitialClusterFromName(c.Name)
		}
	}
	c.BackendBatchInterval = flushEvery
	c.SnapshotCount, c.SnapshotCatchUpEntries = snapshotEntries, catchUpEntries
	c.QuotaBackendBytes = quotaBytes
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModeRevision, historyRevisions
	c.BootstrapDefragThresholdMegabytes = defragFreeBytesMin >> 20
	c.WarningApplyDuration, c.WarningUnaryRequestDuration = time.Second, time.Second
	// Both watch over other members; a lone one has none.
	c.CorruptCheckTime, c.DowngradeCheckTime = 0, time.Hour
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLogger(n.log, n.fatal))
	return c
}

// Client returns the client of the node. The node closes it.
func (n *Node) Client() *clientv3.Client { return n.client }

// Failed closes when etcd cannot go on: disk full, disk broken. The process
// should say Err and end; nothing acknowledged is lost.
func (n *Node) Failed() <-chan struct{} { return n.fatal.fired }

// Err says why the node failed.
func (n *Node) Err() error { return n.fatal.err() }

// Close stops the node. It gives up waiting after closeTimeout: what was
// acknowledged is on disk whether or not etcd ends in order.
func (n *Node) Close() error {
	n.closeOnce.Do(func() {
		if n.stuck {
			return // the lock stays: etcd may go on and take its files
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if n.client != nil {
				n.client.Close() // only ever returns the reason of its own context
			}
			if n.etcd != nil {
				n.etcd.Close() // with the others still heard: it hands its leadership on
			}
			n.peersMu.Lock()
			defer n.peersMu.Unlock()
			if n.peerServer != nil {
				n.peerServer.Close() // no listener's error matters any more
			}
		}()
		select {
		case <-done:
			n.closeErr = n.lock.Close()
		case <-time.After(closeTimeout):
			// The lock stays: etcd may still hold its files.
			n.closeErr = fmt.Errorf("close etcd in %s: still running after %s", n.dir, closeTimeout)
		}
	})
	return n.closeErr
}
