package agent

import (
	"context"
	"net/netip"
	"slices"

	"kurabe"
	"kurabe/internal/agent/endpoint"
	"kurabe/internal/engine"
)

// keepReserved reserves where the server of an instance listens while none runs, so that nobody
// else of this machine takes the clients of one that is stopped, being made or failing. starts
// says that the server is about to be started. It is tried again at the next look: until the
// addresses are here, and while a server that has just ended has sessions there.
func (w *worker) keepReserved(a kurabe.Assignment, o engine.Observation, starts bool) {
	reserve := w.agent.Endpoint.Reserve
	if reserve == nil {
		return
	}
	listens := a.Address
	if a.ListensAt != "" {
		listens = a.ListensAt
	}
	at, err := endpoint.AddrPort(listens, a.Port)
	// One that runs may have its address only in a moment.
	if err != nil || starts || o.Running || o.Survivors || a.Goal == kurabe.GoalAbsent {
		w.releaseReserved()
		return
	}
	if w.reservedAt != at {
		w.releaseReserved()
	}
	if w.reserved == nil {
		if held, err := reserve(at); err == nil {
			w.reserved, w.reservedAt = held, at
		}
	}
}

// reserveAgain is keepReserved between two tries.
func (w *worker) reserveAgain(ctx context.Context, a kurabe.Assignment) {
	e, ok := w.agent.Engines[a.Engine]
	if !ok || w.agent.Endpoint.Reserve == nil || w.reserved != nil {
		return
	}
	if o, err := e.Observe(ctx, a); err == nil {
		w.keepReserved(a, o, false)
	}
}

// releaseReserved gives up what keepReserved holds.
func (w *worker) releaseReserved() {
	if w.reserved != nil {
		_ = w.reserved.Close()
	}
	w.reserved, w.reservedAt = nil, netip.AddrPort{}
}

// takesAddress says whether the next step lets the server have its address, or takes it itself:
// a copy from another host is brought to where the server is going to listen.
func takesAddress(steps []engine.Step) bool {
	return len(steps) > 0 && slices.Contains([]engine.StepName{engine.StepStart, engine.StepClone, engine.StepReattach}, steps[0].Name)
}
