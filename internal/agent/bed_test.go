package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/endpoint"
	"kurabe/internal/agent/endpoint/endpointtest"
	"kurabe/internal/engine"
	"kurabe/internal/engine/fake"
	"kurabe/internal/hostlink"
)

// errTest is what fails on purpose.
var errTest = errors.New("failed by the test")

// script is a control plane in the hands of a test: it sends what it is told to
// and remembers what it hears. Assignments and PutReport are all an agent needs.
type script struct {
	hostlink.Link
	updates chan hostlink.Update

	mu      sync.Mutex // guards the rest
	down    error      // what every call fails with
	heard   []kurabe.InstanceReport
	at      []time.Time // of each report heard
	tried   []time.Time // of each PutReport, heard or not
	dropped []kurabe.InstanceID
}

func (s *script) Assignments(ctx context.Context, _ kurabe.HostID) <-chan hostlink.Update {
	out := make(chan hostlink.Update)
	go func() {
		defer close(out)
		for {
			select {
			case <-ctx.Done():
				return
			case u := <-s.updates:
				select {
				case out <- u:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}

func (s *script) PutReport(ctx context.Context, r kurabe.Word) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = append(s.tried, time.Now())
	if err := errors.Join(ctx.Err(), s.down); err != nil {
		return err
	}
	s.heard, s.at = append(s.heard, r.(kurabe.InstanceReport)), append(s.at, time.Now())
	return nil
}

func (s *script) DropReport(_ context.Context, _ kurabe.HostID, ref kurabe.Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	s.dropped = append(s.dropped, kurabe.InstanceID(ref.ID))
	return nil
}

func (s *script) setDown(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// bed is one host with a fake engine; its time is virtual.
type bed struct {
	*testing.T
	dir    string
	engine *fake.Engine
	link   *script
	agent  *Agent
	cancel context.CancelFunc
	done   chan error
	usage  func(kurabe.InstanceID) (int64, error)
	free   func() int64
	// group is the engine as servers of a group see it, nil without one; held notes the
	// endpoints that were opened.
	group   *watchedEngine
	feeding *feedingEngine // in its place, which answers followers on other hosts
	waits   *tallied       // in its place, which counts commits that end their wait early
	held    []*endpointtest.Endpoint
	logs    Logs
	series  *keptSamples          // nil: nothing is measured
	leases  *testLeases           // nil: nobody has one
	reserve endpoint.Reserve      // nil: nobody holds addresses without a server
	network *endpointtest.Network // nil: all addresses are there by themselves

	mu     sync.Mutex // guards the rest: a timer may wake a worker at any virtual moment
	did    []string   // "step@generation" of each step begun
	decide func(ctx context.Context, a kurabe.Assignment, step engine.StepName) error
	looks  func(ctx context.Context, id kurabe.InstanceID) error
}

// testLook is how often the beds' instances are looked at: so rarely that
// nothing in a test can happen by it unnoticed.
const testLook = time.Hour

// inBubble runs a test on a host whose agent is not started yet.
func inBubble(t *testing.T, test func(*bed)) {
	t.Helper()
	dir := memoryFolder(t)
	synctest.Test(t, func(t *testing.T) {
		b := &bed{
			T: t, dir: dir, engine: fake.New(), link: &script{updates: make(chan hostlink.Update, 16)},
			usage: func(kurabe.InstanceID) (int64, error) { return 1 << 20, nil },
		}
		b.engine.Before, b.engine.Look = b.step, b.see
		defer func() {
			if b.cancel != nil {
				b.stop()
			}
		}()
		test(b)
	})
}

// memoryFolder is a folder whose files need no disk: agents sync what they save.
func memoryFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "kurabe-agent-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// step notes a step and asks the test about it.
func (b *bed) step(ctx context.Context, a kurabe.Assignment, step engine.StepName) error {
	b.mu.Lock()
	b.did = append(b.did, fmt.Sprintf("%s@%d", step, a.Generation))
	decide := b.decide
	b.mu.Unlock()
	if decide == nil {
		return nil
	}
	return decide(ctx, a, step)
}

// see asks the test about a look.
func (b *bed) see(ctx context.Context, id kurabe.InstanceID) error {
	b.mu.Lock()
	looks := b.looks
	b.mu.Unlock()
	if looks == nil {
		return nil
	}
	return looks(ctx, id)
}

// before has a test decide about each step from now on; nil lets all succeed.
func (b *bed) before(decide func(ctx context.Context, a kurabe.Assignment, step engine.StepName) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.decide = decide
}

// onLook has a test decide about each look from now on; nil lets all succeed.
func (b *bed) onLook(looks func(ctx context.Context, id kurabe.InstanceID) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looks = looks
}

// steps is every step begun so far.
func (b *bed) steps() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.did)
}

// start starts an agent, as a new process would, and lets it settle.
func (b *bed) start() {
	b.Helper()
	var driven engine.Engine = b.engine
	if b.group != nil {
		driven = b.group
	}
	if b.feeding != nil {
		driven = b.feeding
	}
	if b.waits != nil {
		driven = b.waits
	}
	c := Config{
		Host: "h", Link: b.link, Engines: map[kurabe.EngineName]engine.Engine{kurabe.Postgres: driven}, Endpoint: endpoint.Config{Open: b.openEndpoint, Reserve: b.reserve}, Logs: b.logs,
		Homes: filepath.Join(b.dir, "instances"), Usage: b.usage, Free: b.free, Log: slog.New(slog.DiscardHandler), Now: time.Now, Look: testLook,
	}
	if b.series != nil {
		c.Series = b.series
	}
	if b.leases != nil {
		c.Leases, c.Guards, c.Boottime = b.leases, b.leases, b.leases.now
	}
	if b.network != nil {
		c.Endpoint.Network = b.network
	}
	b.agent = New(c)
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.done = cancel, make(chan error, 1)
	go func() { b.done <- b.agent.Run(ctx) }()
	synctest.Wait()
}

// openEndpoint opens none that anybody could connect to.
func (b *bed) openEndpoint(netip.AddrPort) (endpoint.Endpoint, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = append(b.held, &endpointtest.Endpoint{})
	return b.held[len(b.held)-1], nil
}

// stop ends the agent and returns what Run said.
func (b *bed) stop() error {
	b.cancel()
	b.cancel = nil
	return <-b.done
}

// send delivers a report; the caller holds telling.
func (b *bed) send(list ...kurabe.Assignment) {
	b.link.updates <- hostlink.Update{Orders: words(list)}
	synctest.Wait()
}

// wanted is an assignment to run an instance.
func wanted(generation kurabe.Generation) kurabe.Assignment {
	return kurabe.Assignment{
		Generation: generation, Host: "h", Instance: "db-1", Name: "orders", Goal: kurabe.GoalRunning, Engine: kurabe.Postgres, Version: "15.18",
		Address: "127.66.0.1", Port: 5432, MasterUsername: "master", Password: kurabe.Password{Seq: 1, Verifier: "v"},
		Settings: map[string]string{"work_mem": "4096"}, Boot: 1,
	}
}

// with is an assignment of another goal.
func with(a kurabe.Assignment, goal kurabe.Goal) kurabe.Assignment {
	a.Goal = goal
	return a
}

// last is the newest report of the instance.
func (b *bed) last() kurabe.InstanceReport {
	b.Helper()
	b.link.mu.Lock()
	defer b.link.mu.Unlock()
	if len(b.link.heard) == 0 {
		b.Fatal("nothing was reported")
	}
	return b.link.heard[len(b.link.heard)-1]
}

// heard is every report so far.
func (b *bed) heard() []kurabe.InstanceReport {
	b.link.mu.Lock()
	defer b.link.mu.Unlock()
	return slices.Clone(b.link.heard)
}

// savedFile is where the instance's assignment lies.
func (b *bed) savedFile() string { return filepath.Join(b.dir, "assignments", "db-1.json") }

// wantSaved checks which generation a restart would find, 0 for none.
func (b *bed) wantSaved(generation kurabe.Generation) {
	b.Helper()
	list, err := (&Agent{Config: Config{Homes: filepath.Join(b.dir, "instances")}}).loadSaved()
	if err != nil {
		b.Fatal(err)
	}
	var have kurabe.Generation
	for _, a := range list {
		have = a.Generation
	}
	if have != generation || len(list) > 1 {
		b.Errorf("saved are %d assignments, generation %d; want %d", len(list), have, generation)
	}
}

// wantServing checks that the instance runs and that the host says so.
func (b *bed) wantServing(generation kurabe.Generation) {
	b.Helper()
	if r := b.last(); !b.engine.Running("db-1") || !r.Done || !r.Running || r.Generation != generation || r.Failure != nil {
		b.Errorf("running %v, report %+v; want it served at generation %d", b.engine.Running("db-1"), r, generation)
	}
}

func words[A kurabe.Word](list []A) (out []kurabe.Word) {
	for _, a := range list {
		out = append(out, a)
	}
	return out
}
