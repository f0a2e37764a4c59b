package simulated

import (
	"context"
	"net/netip"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/fake"
	"kurabe/internal/gateway"
)

// driven is the engine of a host as one life of its agent has it: what stands still, or is dead,
// does nothing more.
type driven struct {
	*fake.Engine
	h *host
	l *life
}

// Observe implements engine.Engine.
func (d *driven) Observe(ctx context.Context, a kurabe.Assignment) (engine.Observation, error) {
	if err := d.l.pass(ctx); err != nil {
		return engine.Observation{}, err
	}
	return d.Engine.Observe(ctx, a)
}

// Steps implements engine.Engine.
func (d *driven) Steps(a kurabe.Assignment, o engine.Observation) []engine.Step {
	steps := d.Engine.Steps(a, o)
	for n := range steps {
		do, name := steps[n].Do, steps[n].Name
		steps[n].Do = func(ctx context.Context) error {
			if err := d.l.pass(ctx); err != nil {
				return err
			}
			if name == engine.StepStart {
				d.h.listen(a.Instance, a.Listens())
			}
			err := do(ctx)
			d.h.w.logf("%s: %s of %s, generation %d: %v", d.h.id, name, a.Instance, a.Generation, err)
			return err
		}
	}
	return steps
}

// OpenWatch is of an engine whose servers follow one another.
func (d *driven) OpenWatch(ctx context.Context, a kurabe.Assignment) (engine.Watcher, error) {
	if err := d.l.pass(ctx); err != nil {
		return nil, err
	}
	w, err := d.Engine.OpenWatch(ctx, a)
	if err != nil {
		return nil, err
	}
	return &watcher{w, d.l}, nil
}

type watcher struct {
	engine.Watcher
	l *life
}

// Look implements engine.Watcher.
func (w *watcher) Look(ctx context.Context) (engine.RoleView, error) {
	if err := w.l.pass(ctx); err != nil {
		return engine.RoleView{}, err
	}
	return w.Watcher.Look(ctx)
}

// Fence is of an engine that can end a server at once.
func (d *driven) Fence(ctx context.Context, a kurabe.Assignment) error {
	if err := d.l.pass(ctx); err != nil {
		return err
	}
	return d.Engine.Fence(ctx, a)
}

// heldEndpoint leads clients to a writer that listens elsewhere.
type heldEndpoint struct {
	h     *host
	at    netip.AddrPort
	route gateway.Route
}

// openEndpoint is how an agent holds one.
func (h *host) openEndpoint(at netip.AddrPort) *heldEndpoint {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := &heldEndpoint{h: h, at: at}
	if old := h.endpoints[at]; old != nil { // the kernel's way outlives an agent
		e.route = gateway.Route{Epoch: 0}
	}
	h.endpoints[at] = e
	return e
}

// Follow implements endpoint.Endpoint.
func (e *heldEndpoint) Follow(r gateway.Route) error {
	e.h.mu.Lock()
	defer e.h.mu.Unlock()
	if r.Epoch < e.route.Epoch {
		return gateway.ErrDeposed
	}
	e.route = r
	return nil
}

// Close implements endpoint.Endpoint.
func (e *heldEndpoint) Close() error {
	e.h.mu.Lock()
	defer e.h.mu.Unlock()
	if e.h.endpoints[e.at] == e {
		delete(e.h.endpoints, e.at)
	}
	return nil
}

// Leave implements endpoint.Endpoint: sessions that the kernel leads go on, and new ones are led.
func (e *heldEndpoint) Leave() error { return nil }

// readers is a reader endpoint that nobody comes to.
type readers struct{}

// Lead implements endpoint.ReaderEndpoint.
func (readers) Lead(gateway.Spread) {}

// Close implements endpoint.ReaderEndpoint.
func (readers) Close() error { return nil }
