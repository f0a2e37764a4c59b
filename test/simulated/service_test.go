package simulated

import (
	"context"
	"crypto/x509"
	"sync"
	"time"

	"kurabe/internal/hostlink"
	"kurabe/internal/reconcile"
	"kurabe/internal/store"
)

// service is one life of the service: its view of the store, its planner, and its end of the
// links.
type service struct {
	cancel context.CancelFunc
	loops  sync.WaitGroup
	view   *store.View
	still  *gate

	mu   sync.Mutex // guards the rest
	term *hostlink.Election
}

// startService begins a life of the service. It must not run.
func (w *world) startService() {
	ctx, cancel := context.WithCancel(context.Background())
	s := &service{cancel: cancel, view: store.NewView(w.kv), still: newGate()}
	identity, err := w.ca.ServerIdentity(serviceNode, 800*24*time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.ca.PEM())
	s.loops.Go(func() { _ = s.view.Run(ctx) })
	server := hostlink.NewServer(hostlink.ServerConfig{
		Link: hostlink.NewLocal(w.kv, w.ca, w.log), KV: w.kv, View: s.view, Identity: identity, Roots: roots, Log: w.log.With("at", serviceNode), Now: w.clockOf(serviceNode),
		Elected: func() (hostlink.Election, bool) {
			_ = s.still.pass(ctx)
			return s.elected()
		},
	})
	planner := reconcile.New(reconcile.Config{
		KV: w.kv, View: s.view, Log: w.log.With("at", "planner"), Heard: server.Heard,
		Elect: func(ctx context.Context) (reconcile.Term, error) { return s.elect(ctx, w.kv, w.clockOf(serviceNode)()) },
		Now: func() time.Time {
			_ = s.still.pass(ctx)
			return w.clockOf(serviceNode)()
		},
	})
	l := w.wire.listen()
	s.loops.Go(func() { _ = server.Serve(ctx, l) })
	s.loops.Go(func() { _ = server.Watch(ctx) })
	s.loops.Go(func() { _ = planner.Run(ctx) })
	w.service = s
}

func (s *service) elected() (hostlink.Election, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == nil {
		return hostlink.Election{}, false
	}
	return *s.term, true
}

// elect wins at once: there is one service.
func (s *service) elect(ctx context.Context, kv store.KV, now time.Time) (reconcile.Term, error) {
	revision, err := store.NewChange().Put(store.PlannerElectionKey, []byte(serviceNode)).Commit(ctx, kv)
	if err != nil {
		return reconcile.Term{}, err
	}
	fence := store.Fence{Key: store.PlannerElectionKey, ModRevision: revision}
	s.mu.Lock()
	s.term = &hostlink.Election{Since: now, Fence: fence}
	s.mu.Unlock()
	return reconcile.Term{Fence: fence, Lost: make(chan struct{}), Resign: func() error { return nil }}, nil
}

// stopService ends the service as a kill does: its connections are gone at once.
func (w *world) stopService() {
	s := w.service
	if s == nil {
		return
	}
	w.service = nil
	s.cancel()
	w.wire.reset(serviceNode)
	s.still.open(true)
	s.loops.Wait()
}

// gate stops whoever passes it while it is closed.
type gate struct {
	mu   sync.Mutex // guards shut
	shut chan struct{}
}

func newGate() *gate { return &gate{} }

// open opens or closes it.
func (g *gate) open(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case open && g.shut != nil:
		close(g.shut)
		g.shut = nil
	case !open && g.shut == nil:
		g.shut = make(chan struct{})
	}
}

// pass waits until it is open.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut == nil {
		return ctx.Err()
	}
	select {
	case <-shut:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
