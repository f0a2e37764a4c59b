package endpoint

import (
	"io"
	"net/netip"

	"kurabe"
)

// Reserve holds an address for which no server is there, as gateway.Reserve.
type Reserve func(netip.AddrPort) (io.Closer, error)

// noteStopped takes note of whether all that this host knows of an instance is that it is stopped:
// then its endpoint, which no server of it listens at, has no gateway either.
func (e *Table) noteStopped(a kurabe.Assignment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	owner := a.Instance.Owner()
	at, err := AddrPort(a.Address, a.Port)
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
func (e *Table) goneLocked(id kurabe.InstanceID) {
	owner := id.Owner()
	delete(e.stopped[owner], id)
	if len(e.stopped[owner]) == 0 {
		delete(e.stopped, owner)
	}
	e.look()
}

// reserveStopped reserves the endpoints of instances that are stopped, and gives up those that a
// gateway or a server is to have. Of the goroutine of run, before it opens any.
func (e *Table) reserveStopped() (missing bool) {
	if e.Reserve == nil {
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
	for at, held := range e.reserved {
		if !want[at] {
			_ = held.Close()
			delete(e.reserved, at)
		}
	}
	for at := range want {
		if e.reserved[at] != nil {
			continue
		}
		held, err := e.Reserve(at)
		if err != nil {
			missing = true // with another host by now, or not given up yet
			continue
		}
		e.reserved[at] = held
	}
	return missing
}
