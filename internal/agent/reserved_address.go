package agent

import (
	"context"
	"io"
	"net/netip"
	"slices"

	"kurabe"
	"kurabe/internal/engine"
)

// Reserve holds an address for which no server is there, as gateway.Reserve.
type Reserve func(netip.AddrPort) (io.Closer, error)

// keepVacant reserves where the server of an instance listens while none runs, so that nobody
// else of this machine takes the clients of one that is stopped, being made or failing. starts
// says that the server is about to be started. It is tried again at the next look: until the
// addresses are here, and while a server that has just ended has sessions there.
func (w *worker) keepVacant(a kurabe.Assignment, o engine.Observation, starts bool) {
	reserve := w.agent.Reserve
	if reserve == nil {
		return
	}
	listens := a.Address
	if a.ListensAt != "" {
		listens = a.ListensAt
	}
	at, err := addrPort(listens, a.Port)
	// One that runs may have its address only in a moment.
	if err != nil || starts || o.Running || o.Survivors || a.Goal == kurabe.GoalAbsent {
		w.leaveVacant()
		return
	}
	if w.vacantAt != at {
		w.leaveVacant()
	}
	if w.vacant == nil {
		if held, err := reserve(at); err == nil {
			w.vacant, w.vacantAt = held, at
		}
	}
}

// lookVacant is keepVacant between two tries.
func (w *worker) lookVacant(ctx context.Context, a kurabe.Assignment) {
	e, ok := w.agent.Engines[a.Engine]
	if !ok || w.agent.Reserve == nil || w.vacant != nil {
		return
	}
	if o, err := e.Observe(ctx, a); err == nil {
		w.keepVacant(a, o, false)
	}
}

// leaveVacant gives up what keepVacant holds.
func (w *worker) leaveVacant() {
	if w.vacant != nil {
		_ = w.vacant.Close()
	}
	w.vacant, w.vacantAt = nil, netip.AddrPort{}
}

// takesAddress says whether the next step lets the server have its address, or takes it itself:
// a copy from another host is brought to where the server is going to listen.
func takesAddress(steps []engine.Step) bool {
	return len(steps) > 0 && slices.Contains([]engine.StepName{engine.StepStart, engine.StepClone, engine.StepRejoin}, steps[0].Name)
}

// vacate takes note of whether all that this host knows of an instance is that it is stopped:
// then its endpoint, which no server of it listens at, has no gateway either.
func (e *endpoints) vacate(a kurabe.Assignment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	owner := a.Instance.Owner()
	at, err := addrPort(a.Address, a.Port)
	if err != nil || a.Goal != kurabe.GoalStopped || a.ListensAt == "" {
		e.goneLocked(a.Instance)
		return
	}
	if e.stopped[owner] == nil {
		e.stopped[owner] = map[kurabe.InstanceID]netip.AddrPort{}
	}
	e.stopped[owner][a.Instance] = at
	e.look()
}

// goneLocked forgets that a server is stopped.
func (e *endpoints) goneLocked(id kurabe.InstanceID) {
	owner := id.Owner()
	delete(e.stopped[owner], id)
	if len(e.stopped[owner]) == 0 {
		delete(e.stopped, owner)
	}
	e.look()
}

// reserveStopped reserves the endpoints of instances that are stopped, and gives up those that a
// gateway or a server is to have. Of the goroutine of run, before it opens any.
func (e *endpoints) reserveStopped() (missing bool) {
	if e.reserve == nil {
		return false
	}
	e.mu.Lock()
	want := map[netip.AddrPort]bool{}
	for owner, of := range e.stopped {
		if len(e.claims[owner]) > 0 || e.held[owner] != nil {
			continue
		}
		for _, at := range of {
			want[at] = true
		}
	}
	e.mu.Unlock()
	for at, held := range e.vacant {
		if !want[at] {
			_ = held.Close()
			delete(e.vacant, at)
		}
	}
	for at := range want {
		if e.vacant[at] != nil {
			continue
		}
		held, err := e.reserve(at)
		if err != nil {
			missing = true // with another host by now, or not given up yet
			continue
		}
		e.vacant[at] = held
	}
	return missing
}
