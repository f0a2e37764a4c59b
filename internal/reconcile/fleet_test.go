package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent"
	"kurabe/internal/engine"
	"kurabe/internal/engine/fake"
	"kurabe/internal/hostlink"
	"kurabe/internal/hostlink/hostlinktest"
	"kurabe/internal/reconcile"
	"kurabe/internal/store"
)

// A fleet of fake engines on three hosts: planner, agents and links are real,
// time is not. Size and length of a run; a seed decides everything in it.
const (
	fleetSeeds     = 6
	fleetHosts     = 3
	fleetInstances = 20
	fleetEdits     = 150
	// convergeTime is virtual: the longest backoff is 30 s, a full scan 30 s.
	convergeTime = 10 * time.Minute
)

func TestFleetConverges(t *testing.T) {
	for seed := range uint64(fleetSeeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			homes := memoryFolder(t)
			synctest.Test(t, func(t *testing.T) { runFleet(t, seed, homes) })
		})
	}
}

// memoryFolder is a folder whose files need no disk: agents sync what they save.
func memoryFolder(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "kurabe-fleet-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// flaky makes each step of each instance go wrong once: cut off before its deed, or
// after it, so that the deed is repeated, or with a server that dies under it.
type flaky struct {
	*fake.Engine

	mu    sync.Mutex // guards the rest
	rand  *rand.Rand
	calm  bool
	hurt  map[string]bool
	under map[kurabe.InstanceID]engine.StepName
	wrong []string
}

// Steps implements engine.Engine.
func (f *flaky) Steps(a kurabe.Assignment, o engine.Observation) []engine.Step {
	steps := f.Engine.Steps(a, o)
	for n := range steps {
		do := steps[n].Do
		steps[n].Do = func(ctx context.Context) error { return f.do(ctx, a, steps[n].Name, do) }
	}
	return steps
}

func (f *flaky) do(ctx context.Context, a kurabe.Assignment, name engine.StepName, do func(context.Context) error) error {
	how := f.begin(ctx, a, name)
	defer f.end(a.Instance)
	switch how {
	case 1:
		return fake.ErrCut
	case 3:
		f.Engine.Crash(a.Instance)
	}
	if err := do(ctx); err != nil {
		return err
	}
	if how == 2 {
		return fake.ErrCut
	}
	return nil
}

// begin says how a step goes: 0 well, 1 cut off before, 2 after its deed, 3 the server
// dies before it.
func (f *flaky) begin(ctx context.Context, a kurabe.Assignment, name engine.StepName) int {
	o, err := f.Engine.Observe(ctx, a)
	f.mu.Lock()
	defer f.mu.Unlock()
	if other, busy := f.under[a.Instance]; busy {
		f.wrong = append(f.wrong, fmt.Sprintf("%s: step %s begins during %s", a.Instance, name, other))
	}
	if err == nil && name == engine.StepStart && o.Running {
		f.wrong = append(f.wrong, fmt.Sprintf("%s: started while it runs", a.Instance))
	}
	f.under[a.Instance] = name
	key := string(a.Instance) + string(name)
	if f.calm || f.hurt[key] {
		return 0
	}
	f.hurt[key] = true
	return 1 + f.rand.IntN(3)
}

func (f *flaky) end(id kurabe.InstanceID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.under, id)
}

// fleet is everything of one run.
type fleet struct {
	t    *testing.T
	rand *rand.Rand
	kv   *store.Memory
	view *store.View
	log  *slog.Logger

	hosts []*fleetHost
	ids   []kurabe.InstanceID
	gone  []kurabe.InstanceID
	snaps fleetSnapshots

	mu   sync.Mutex // guards lost
	lost chan struct{}
}

type fleetHost struct {
	id     kurabe.HostID
	homes  string
	engine *flaky
	folder *flakySnapshots
	link   *hostlinktest.Faulty
	cancel context.CancelFunc
	done   chan struct{}
}

func runFleet(t *testing.T, seed uint64, dir string) {
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	defer loops.Wait()
	defer cancel()
	f := &fleet{t: t, rand: rand.New(rand.NewPCG(seed, 7)), kv: store.NewMemory(), log: slog.New(slog.DiscardHandler)}
	f.snaps.kept = map[kurabe.InstanceID]bool{}
	f.view = store.NewView(f.kv)
	loops.Go(func() { f.view.Run(ctx) })
	for n := range fleetHosts {
		f.addHost(ctx, n, seed, dir)
	}
	loop := reconcile.New(reconcile.Config{KV: f.kv, View: f.view, Elect: f.elect, Log: f.log, Now: time.Now})
	loops.Go(func() { loop.Run(ctx) })
	for range fleetEdits {
		f.edit()
		f.editSnapshots()
		f.disturb(ctx)
		time.Sleep(time.Duration(f.rand.Int64N(int64(3 * time.Second)))) // virtual
	}
	for _, h := range f.hosts {
		h.link.SetDown(false)
		h.engine.mu.Lock()
		h.engine.calm = true
		h.engine.mu.Unlock()
		h.folder.rest()
	}
	f.converge()
	f.logSnapshots()
	for _, h := range f.hosts {
		h.stop()
		for _, w := range append(h.engine.wrong, h.folder.Wrong()...) {
			t.Error(w)
		}
	}
}

// elect wins at once; a planner is deposed when the next one wins.
func (f *fleet) elect(ctx context.Context) (reconcile.Term, error) {
	if err := ctx.Err(); err != nil {
		return reconcile.Term{}, err
	}
	revision, err := store.NewChange().Put(store.PlannerElectionKey, []byte("planner")).Commit(ctx, f.kv)
	if err != nil {
		return reconcile.Term{}, err
	}
	lost := make(chan struct{})
	f.mu.Lock()
	f.lost = lost
	f.mu.Unlock()
	return reconcile.Term{Fence: store.Fence{Key: store.PlannerElectionKey, ModRevision: revision}, Lost: lost, Resign: func() error { return nil }}, nil
}

func (f *fleet) depose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost != nil {
		close(f.lost)
		f.lost = nil
	}
}

var fleetFaults = hostlinktest.Faults{DropRequest: 0.1, DropAnswer: 0.1, Duplicate: 0.1, Cut: 0.05, Delay: 0.3, DelayMax: 2 * time.Second}

func (f *fleet) addHost(ctx context.Context, n int, seed uint64, dir string) {
	h := &fleetHost{
		id: kurabe.HostID(fmt.Sprintf("host-%d", n)), homes: filepath.Join(dir, fmt.Sprint(n), "instances"),
		engine: &flaky{Engine: fake.New(), rand: rand.New(rand.NewPCG(seed, uint64(n))), hurt: map[string]bool{}, under: map[kurabe.InstanceID]engine.StepName{}},
		folder: newFlakySnapshots(seed + uint64(n)),
		link:   hostlinktest.NewFaulty(hostlink.NewLocal(f.kv, nil, f.log), fleetFaults, seed+uint64(n)),
	}
	if err := os.MkdirAll(h.homes, 0o700); err != nil {
		f.t.Fatal(err)
	}
	report := kurabe.HostReport{
		Host: h.id, Zones: []string{"us-east-1a"}, CPUs: 8, MemoryBytes: 100 * kurabe.GiB, AddressPool: fmt.Sprintf("127.66.%d.0/24", n),
		Levers: []kurabe.Lever{{Name: "cpu", Available: true}, {Name: "memory", Available: true}, {Name: "io", Available: true}},
		Engines: []kurabe.EngineVersion{
			{Engine: kurabe.Postgres, Version: "15.18", Family: "postgres15", Default: true, Ready: true, Locales: []string{"C"}},
			{Engine: kurabe.MariaDB, Version: "10.11.19", Family: "mariadb10.11", Default: true, Ready: true, Locales: []string{"utf8mb4"}},
		},
	}
	catalog := kurabe.Catalog{Engine: kurabe.Postgres, Version: "15.18", Family: "postgres15", Parameters: []kurabe.Parameter{
		{Name: "shared_buffers", Type: "integer", Apply: kurabe.ApplyStatic, Modifiable: true, System: true, HasDefault: true, Default: "{DBInstanceClassMemory/32768}"},
	}}
	f.commit(store.NewChange().PutHost(report).PutCatalog(h.id, catalog).
		PutCatalog(h.id, kurabe.Catalog{Engine: kurabe.MariaDB, Version: "10.11.19", Family: "mariadb10.11"}))
	f.hosts = append(f.hosts, h)
	f.startAgent(ctx, h)
}

func (f *fleet) startAgent(ctx context.Context, h *fleetHost) {
	ctx, cancel := context.WithCancel(ctx)
	h.cancel, h.done = cancel, make(chan struct{})
	a := agent.New(agent.Config{
		Host: h.id, Link: h.link, Engines: map[kurabe.EngineName]engine.Engine{kurabe.Postgres: h.engine, kurabe.MariaDB: h.engine}, Homes: h.homes, Snapshots: h.folder,
		Usage: func(kurabe.InstanceID) (int64, error) { return 1 << 20, nil }, Log: f.log, Now: time.Now,
	})
	go func() {
		defer close(h.done)
		a.Run(ctx)
	}()
}

func (h *fleetHost) stop() {
	h.cancel()
	<-h.done
}

func (f *fleet) commit(c *store.Change) {
	f.t.Helper()
	revision, err := c.Commit(context.Background(), f.kv)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		f.t.Fatal(err)
	}
	if err := f.view.WaitRevision(context.Background(), revision); err != nil {
		f.t.Fatal(err)
	}
}

// edit changes one spec as a request of the API would.
func (f *fleet) edit() {
	if len(f.ids) < fleetInstances && f.rand.IntN(2) == 0 {
		id := kurabe.NewInstanceID()
		f.ids = append(f.ids, id)
		engine, version, group := kurabe.Postgres, "15.18", "default.postgres15"
		if f.rand.IntN(2) == 0 {
			engine, version, group = kurabe.MariaDB, "10.11.19", "default.mariadb10.11"
		}
		f.commit(store.NewChange().CreateInstance(kurabe.InstanceSpec{
			ID: id, Name: strings.ToLower(string(id)), Revision: 1, CreatedAt: time.Now(), Engine: engine, Action: kurabe.StateCreating,
			MasterUsername: "master", Password: kurabe.Password{Seq: 1, Verifier: "v"}, Locale: "C", ParameterGroup: group, ParameterGroupSeq: 1,
			Now:          kurabe.InstanceSettings{EngineVersion: version, Class: "db.t3.micro", StorageGiB: 20, StorageType: "local", Port: 5432, RetentionDays: f.rand.IntN(3)},
			BackupWindow: "03:00-03:30", MaintenanceWindow: "sun:05:00-sun:05:30",
		}))
		return
	}
	if len(f.ids) == 0 {
		return
	}
	at := f.rand.IntN(len(f.ids))
	i, ok := f.view.Instance(f.ids[at])
	if !ok || i.Spec.Deleting != nil {
		return
	}
	s := *i.Spec
	s.Revision++
	switch f.rand.IntN(9) {
	case 0:
		s.Deleting = &kurabe.Deletion{At: time.Now(), KeepBackups: f.rand.IntN(2) == 0}
		f.snaps.kept[s.ID] = s.Deleting.KeepBackups
		f.gone = append(f.gone, s.ID)
		f.ids = slices.Delete(f.ids, at, at+1)
		if f.rand.IntN(2) == 0 {
			f.deleteWithFinal(i, s)
			return
		}
	case 1:
		s.RebootSeq++
	case 2, 3:
		s.Power = kurabe.Power{Seq: s.Power.Seq + 1, Stopped: !s.Power.Stopped, At: time.Now()}
	case 4:
		s.Now.Class = []string{"db.t3.micro", "db.t3.small", "db.t3.medium"}[f.rand.IntN(3)]
	case 5:
		s.Now.Port = 5000 + f.rand.IntN(1000)
	case 6:
		s.Password = kurabe.Password{Seq: s.Password.Seq + 1, Verifier: fmt.Sprint(s.Revision)}
	case 7:
		s.Now.StorageGiB++
	case 8:
		s.Now.RetentionDays = f.rand.IntN(3)
	}
	f.commit(store.NewChange().PutInstance(s, i.SpecMod))
}

// disturb does something to the world that nobody asked for.
func (f *fleet) disturb(ctx context.Context) {
	h := f.hosts[f.rand.IntN(len(f.hosts))]
	switch f.rand.IntN(8) {
	case 0:
		h.stop()
		f.startAgent(ctx, h)
	case 1:
		f.depose()
	case 2:
		h.link.SetDown(true)
	case 3, 4:
		h.link.SetDown(false)
	case 5:
		if len(f.ids) > 0 {
			id := f.ids[f.rand.IntN(len(f.ids))]
			for _, h := range f.hosts {
				h.engine.Crash(id)
			}
		}
	case 6:
		f.kv.Compact(f.view.Revision())
	}
}

// converge waits until the world is as the specs say, and stays so.
func (f *fleet) converge() {
	f.t.Helper()
	for start := time.Now(); ; time.Sleep(time.Second) { // virtual
		missing := f.missing()
		if missing == "" {
			break
		}
		if time.Since(start) > convergeTime {
			f.t.Fatalf("not converged: %s", missing)
		}
	}
	time.Sleep(30 * time.Second) // virtual: reports whose answer was lost are told again
	revision := f.view.Revision()
	time.Sleep(2 * time.Minute) // virtual: several full scans
	if missing := f.missing(); missing != "" {
		f.t.Errorf("it did not last: %s", missing)
	}
	entries, _, err := f.kv.List(context.Background(), store.Root)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range entries {
		if e.ModRevision > revision {
			f.t.Errorf("a satisfied world was written to: %s: %s", e.Key, e.Value)
		}
	}
}

func (f *fleet) missing() string {
	for _, id := range f.gone {
		if left := f.left(id); left != "" {
			return string(id) + " was deleted: " + left
		}
	}
	for _, id := range f.ids {
		if missing := f.unsatisfied(id); missing != "" {
			return string(id) + ": " + missing
		}
	}
	return f.missingSnapshots()
}

// left says what there still is of a deleted instance.
func (f *fleet) left(id kurabe.InstanceID) string {
	entries, _, err := f.kv.List(context.Background(), store.Root)
	if err != nil {
		return err.Error()
	}
	for _, e := range entries {
		if strings.Contains(e.Key, string(id)) || strings.Contains(e.Key, "/name/instance/"+strings.ToLower(string(id))) {
			return "record " + e.Key
		}
	}
	for _, h := range f.hosts {
		if h.engine.Left(id) {
			return "something runs on " + string(h.id)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(h.homes), "assignments", string(id)+".json")); err == nil {
			return "an assignment is saved on " + string(h.id)
		}
	}
	return ""
}

func (f *fleet) unsatisfied(id kurabe.InstanceID) string {
	i, ok := f.view.Instance(id)
	if !ok || i.Status == nil || len(i.Assignments) != 1 {
		return "not planned"
	}
	want := kurabe.StateAvailable
	if i.Spec.Power.Stopped && !i.Status.AutoStarted {
		want = kurabe.StateStopped
	}
	if i.Status.State != want || i.Status.SpecRevision != i.Spec.Revision {
		return fmt.Sprintf("it is %s (%s) at revision %d; want %s at %d", i.Status.State, i.Status.Reason, i.Status.SpecRevision, want, i.Spec.Revision)
	}
	a := i.Assignments[0].Value
	if a.Log != i.Spec.Now.KeepsLog() || want == kurabe.StateAvailable && i.Status.LogOffBoot > 0 {
		return fmt.Sprintf("its log is kept: %v, with a retention of %d days; off by boot %d", a.Log, i.Spec.Now.RetentionDays, i.Status.LogOffBoot)
	}
	for _, h := range f.hosts {
		o, err := h.engine.Observe(context.Background(), a)
		if err != nil {
			return err.Error()
		}
		if h.id != a.Host {
			if h.engine.Left(id) {
				return "it is on two hosts"
			}
			continue
		}
		if steps := engine.Next(a, o); len(steps) > 0 {
			return fmt.Sprint("steps are left: ", steps)
		}
		if o.Running != (want == kurabe.StateAvailable) {
			return fmt.Sprintf("running: %v", o.Running)
		}
	}
	return ""
}
