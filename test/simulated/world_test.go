package simulated

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine/fake"
	"kurabe/internal/hostlink"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

// shape is what a world is made of.
type shape struct {
	engine  kurabe.EngineName
	hosts   int
	cluster bool
	block   bool // what becomes of commits without a standby
}

func (s shape) String() string {
	where, what, policy := fmt.Sprintf("%d hosts", s.hosts), "pair", "degrade"
	if s.hosts == 1 {
		where = "one host"
	}
	if s.cluster {
		what = "cluster"
	}
	if s.block {
		policy = "block"
	}
	return fmt.Sprintf("%s %s, %s, %s", s.engine, what, where, policy)
}

// database is the only instance of a world.
const database = kurabe.InstanceID("db-AAAAAAAAAAAAAAAAAAAAAAAAAA")

// world is everything of one run.
type world struct {
	t     *testing.T
	shape shape
	seed  uint64
	rand  *rand.Rand // of the nemesis
	kv    *store.Memory
	ca    *pki.CA
	log   *slog.Logger
	wire  *wire
	hosts []*host
	began time.Time
	// filled is when a disk that had been full had room again.
	filled time.Time
	// flawed: something of it is broken on purpose, and what fails is no failure of the test.
	flawed bool

	service *service // nil while it is down
	group   kurabe.ParameterGroup
	groupAt int64 // its revision in the store
	history *history

	mu       sync.Mutex // guards the rest
	arp      map[netip.Addr]*host
	endpoint netip.AddrPort           // of the instance, once it has one
	ahead    map[string]time.Duration // of each node's clock
	lines    []string                 // what has happened
	moment   time.Time                // of the newest, and how many are of it
	same     int
}

func isDouble(err error) bool { return errors.Is(err, hostlink.ErrDouble) }

// linesMost bounds what is remembered of what happened.
const linesMost = 4000

// sameMost bounds what happens at one moment: what is done again at once whenever it fails has
// no pause, and would keep two processors busy for ever.
const sameMost = 2000

// logf notes what has happened, for whoever reads why a run has failed.
func (w *world) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Equal(w.moment) {
		w.same++
	} else {
		w.moment, w.same = now, 0
	}
	if w.same > sameMost {
		again(w.t, w.seed, 0, w.lines)
		panic("something goes round and round in no time: the end of the log says what")
	}
	if w.lines = append(w.lines, fmt.Sprintf("%10.3fs ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...)); len(w.lines) > linesMost {
		w.lines = append(w.lines[:0], w.lines[linesMost/2:]...)
	}
}

// Write implements io.Writer: the log of everybody is among what has happened.
func (w *world) Write(line []byte) (int, error) {
	w.logf("%s", strings.TrimSpace(string(line)))
	return len(line), nil
}

func (w *world) announce(a netip.Addr, h *host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arp[a] = h
}

// clockOf is a node's clock.
func (w *world) clockOf(node string) func() time.Time {
	return func() time.Time {
		w.mu.Lock()
		ahead := w.ahead[node]
		w.mu.Unlock()
		return time.Now().Add(ahead)
	}
}

// newWorld makes hosts, a service and an instance, and waits until that is whole.
func newWorld(t *testing.T, s shape, seed uint64, dir string) *world {
	w := &world{
		t: t, shape: s, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), kv: store.NewMemory(), wire: newWire(), began: time.Now(),
		arp: map[netip.Addr]*host{}, ahead: map[string]time.Duration{},
	}
	w.log = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	var err error
	if w.ca, err = pki.Open(filepath.Join(dir, "pki")); err != nil {
		t.Fatal(err)
	}
	first := fake.New()
	first.SetReach(func(from, to kurabe.HostID) (time.Duration, bool) { return w.wire.reaches(string(from), string(to)) })
	for n := range s.hosts {
		e := first
		if n > 0 {
			e = first.Beside()
		}
		w.addHost(n, e, filepath.Join(dir, fmt.Sprint(n)))
	}
	w.group = kurabe.ParameterGroup{Name: "policy", Family: families[s.engine], CreatedAt: time.Now()}
	w.policy(s.block)
	w.startService()
	for _, h := range w.hosts {
		h.startAgent()
	}
	w.create()
	return w
}

var (
	versions = map[kurabe.EngineName]string{kurabe.Postgres: "15.18", kurabe.MariaDB: "10.11.19"}
	families = map[kurabe.EngineName]string{kurabe.Postgres: "postgres15", kurabe.MariaDB: "mariadb10.11"}
	zones    = []string{"us-east-1a", "us-east-1b", "us-east-1c"}
)

func (w *world) addHost(n int, e *fake.Engine, dir string) {
	h := &host{
		w: w, id: kurabe.HostID(fmt.Sprintf("host-%d", n+1)), homes: filepath.Join(dir, "instances"), engine: e, rate: 0.97 + 0.06*w.rand.Float64(),
		booted: time.Now(), boot: 1, held: map[netip.Addr]bool{}, endpoints: map[netip.AddrPort]*heldEndpoint{}, listens: map[kurabe.InstanceID]string{},
	}
	h.guards = h.newGuards(e)
	e.Host, e.Boottime, e.Full = h.id, h.boottime, h.isFull
	cert, key, err := w.ca.Identity(pki.Party{Kind: pki.PartyAgent, ID: string(h.id)}, 800*24*time.Hour)
	if err == nil {
		h.identity, err = tls.X509KeyPair(cert, key)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	report := kurabe.HostReport{
		Host: h.id, Zones: zones[n : n+1], CPUs: 8, MemoryBytes: 100 * gib, StorageBytes: 200 * gib, FreeBytes: 100 * gib, StartedAt: time.Now(),
		AddressPool: fmt.Sprintf("10.0.0.%d/27", 32*(n+1)), Network: "10.0.0.0/24",
		Levers: []kurabe.Lever{{Name: "cpu", Available: true}, {Name: "memory", Available: true}, {Name: "io", Available: true}},
		Engines: []kurabe.EngineVersion{
			{Engine: w.shape.engine, Version: versions[w.shape.engine], Family: families[w.shape.engine], Default: true, Ready: true, Locales: []string{"C"}},
		},
	}
	if w.shape.hosts == 1 {
		report.Zones, report.AddressPool, report.Network = zones, "127.66.0.0/16", ""
	}
	catalog := kurabe.Catalog{Engine: w.shape.engine, Version: versions[w.shape.engine], Family: families[w.shape.engine], Parameters: append(kurabe.ServiceParameters(),
		kurabe.Parameter{Name: "shared_buffers", Type: "integer", Apply: kurabe.ApplyStatic, Modifiable: true, System: true, HasDefault: true, Default: "{DBInstanceClassMemory/32768}"})}
	w.commit(store.NewChange().PutJoinedHost(kurabe.JoinedHost{ID: h.id, Zones: report.Zones, JoinedAt: time.Now()}, 0).PutHost(report).PutCatalog(h.id, catalog))
	w.hosts = append(w.hosts, h)
}

// commit writes what nobody else does.
func (w *world) commit(c *store.Change) int64 {
	revision, err := c.Commit(context.Background(), w.kv)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		w.t.Fatal(err)
	}
	return revision
}

// policy says what becomes of commits when no standby answers.
func (w *world) policy(block bool) {
	value := map[bool]string{true: kurabe.StandbyLostBlock, false: kurabe.StandbyLostDegrade}[block]
	w.group.Revision++
	w.group.Values = map[string]kurabe.ParameterValue{kurabe.ParameterStandbyLost: {Value: value, Method: kurabe.ApplyImmediate}}
	w.groupAt = w.commit(store.NewChange().PutParameterGroup(w.group, w.groupAt))
}

func (w *world) create() {
	w.commit(store.NewChange().CreateInstance(kurabe.InstanceSpec{
		ID: database, Name: "shop", Revision: 1, CreatedAt: time.Now(), Engine: w.shape.engine, Action: kurabe.StateCreating, Cluster: w.shape.cluster,
		MasterUsername: "boss", Password: kurabe.Password{Seq: 1, Verifier: "v"}, Locale: "C", ParameterGroup: "policy", ParameterGroupSeq: 1,
		Now:          kurabe.InstanceSettings{EngineVersion: versions[w.shape.engine], Class: "db.t3.micro", StorageGiB: 20, StorageType: "local", Port: 5432, MultiAZ: true},
		BackupWindow: "03:00-03:30", MaintenanceWindow: "sun:05:00-sun:05:30",
	}))
}

// edit changes the spec as a request of the API would. It says whether that came through.
func (w *world) edit(change func(*kurabe.InstanceSpec)) bool {
	i, ok := w.instance()
	if !ok || i.Spec == nil {
		return false
	}
	s := *i.Spec
	s.Revision++
	change(&s)
	_, err := store.NewChange().PutInstance(s, i.SpecMod).Commit(context.Background(), w.kv)
	return err == nil
}

// instance is what the service knows, nothing while it is down.
func (w *world) instance() (*store.Instance, bool) {
	if w.service == nil {
		return nil, false
	}
	return w.service.view.Instance(database)
}

// whole says what the instance lacks to be as the user wants it.
func (w *world) whole() string {
	i, ok := w.instance()
	want := 1
	if w.shape.cluster {
		want = 2
	}
	switch {
	case !ok || i.Status == nil:
		return "it is not planned"
	case i.Status.State != kurabe.StateAvailable || i.Status.SpecRevision != i.Spec.Revision:
		return fmt.Sprintf("it is %s at revision %d of %d (%s)", i.Status.State, i.Status.SpecRevision, i.Spec.Revision, i.Status.Reason)
	case i.Spec.FailoverSeq > i.Status.FailoverSeq:
		return "a failover in order is under way"
	case i.Group == nil || len(i.Group.SyncSet) != want || i.Group.HandoverTo != "" || i.Group.Electing:
		return fmt.Sprintf("its record is %+v", i.Group)
	}
	return ""
}

// wait waits until missing says "", in simulated time.
func (w *world) wait(limit time.Duration, what string, missing func() string) bool {
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		text := missing()
		if text == "" {
			return true
		}
		if time.Since(start) > limit {
			w.failf("not within %v: %s: %s", limit, what, text)
			return false
		}
	}
}

func (w *world) failf(format string, args ...any) {
	w.logf("FAILED: "+format, args...)
	if i, ok := w.instance(); ok {
		for _, r := range i.Reports {
			w.logf("reported: %+v, role %+v", r.Value, r.Value.Role)
		}
		for _, a := range i.Assignments {
			w.logf("assigned: generation %d, goal %s, role %+v", a.Value.Generation, a.Value.Goal, a.Value.Role)
		}
	}
	if !w.flawed {
		w.t.Errorf(format, args...)
	}
}

// end stops everything, so that the bubble can end.
func (w *world) end() {
	for _, h := range w.hosts {
		h.stand(false)
		h.stopAgent()
		h.guards.Gone()
		for _, id := range h.servers() {
			h.engine.Crash(id)
		}
	}
	w.stopService()
}

// findEndpoint notes the address of an instance that was made.
func (w *world) findEndpoint() {
	i, ok := w.instance()
	if !ok || len(i.Assignments) == 0 {
		w.failf("it has no endpoint")
		return
	}
	a := i.Assignments[0].Value
	at, err := netip.ParseAddr(a.Address)
	if err != nil {
		w.failf("endpoint: %v", err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endpoint = netip.AddrPortFrom(at, uint16(a.Port))
}
