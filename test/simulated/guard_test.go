package simulated

import (
	"context"
	"net/netip"

	"kurabe"
	"kurabe/internal/agent"
	"kurabe/internal/engine/fake"
)

// guards are the wardens of a machine as its agent has them. They stand still with the machine,
// as the agent does.
type guards struct {
	*fake.Guards
	h *host
}

// guard is one of them.
type guard struct {
	*fake.Guard
	h *host
}

func (h *host) newGuards(e *fake.Engine) *guards {
	return &guards{&fake.Guards{Engine: e, Boottime: h.boottime, Until: h.until, Still: h.isStill, Ended: h.leaseEnded}, h}
}

// leaseEnded takes away what clients have found the server at.
func (h *host) leaseEnded(a kurabe.Assignment) {
	for _, text := range []string{a.Address, a.ReaderAddress} {
		if address, err := netip.ParseAddr(text); err == nil && !address.IsLoopback() {
			_ = h.Drop(address)
		}
	}
	h.w.logf("%s: the lease of %s is over, and its server ended", h.id, a.Instance)
}

// Open implements agent.Guards.
func (g *guards) Open(ctx context.Context, a kurabe.Assignment) (agent.Guard, error) {
	if err := g.h.agent.pass(ctx); err != nil {
		return nil, err
	}
	return guard{g.Guards.Open(a), g.h}, nil
}

// Find implements agent.Guards.
func (g *guards) Find(ctx context.Context, a kurabe.Assignment) (agent.Guard, error) {
	if err := g.h.agent.pass(ctx); err != nil {
		return nil, err
	}
	if w := g.Guards.Find(a.Instance); w != nil {
		return guard{w, g.h}, nil
	}
	return nil, nil
}

// Extend implements agent.Guard.
func (w guard) Extend(ctx context.Context, until int64) error {
	if err := w.h.agent.pass(ctx); err != nil {
		return err
	}
	return w.Guard.Extend(ctx, until)
}

// Until implements agent.Guard.
func (w guard) Until(ctx context.Context) (int64, error) {
	if err := w.h.agent.pass(ctx); err != nil {
		return 0, err
	}
	return w.Guard.Until(ctx)
}

// Disarm implements agent.Guard.
func (w guard) Disarm(ctx context.Context) error {
	if err := w.h.agent.pass(ctx); err != nil {
		return err
	}
	return w.Guard.Disarm(ctx)
}
