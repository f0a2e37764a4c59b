package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"kurabe"
	"kurabe/internal/logkey"
)

// Addresses makes addresses ones of this machine, as netaddr.Pool.
type Addresses interface {
	Hold(netip.Addr) error
	Drop(netip.Addr) error
	Held() ([]netip.Addr, error)
}

// addresses are those that the servers of this host listen at, by server. A server that is
// stopped keeps its own: its clients are refused at once.
type addresses struct {
	of   Addresses // nil: all are there by themselves
	mu   sync.Mutex
	want map[kurabe.InstanceID][]netip.Addr
}

// need holds what a server listens at, before it is started, and gives up what it no
// longer does.
func (s *addresses) need(a kurabe.Assignment) error {
	if s.of == nil {
		return nil
	}
	var want []netip.Addr
	if a.Goal != kurabe.GoalAbsent {
		for _, text := range []string{a.Address, a.ListensAt} {
			if text == "" || text == a.Address && a.Role != nil && a.Role.Duty == kurabe.DutyFollow && !a.Role.Reads {
				continue // a standby's endpoint is held by whoever writes
			}
			address, err := netip.ParseAddr(text)
			if err != nil {
				return fmt.Errorf("address of %s: %w", a.Name, err)
			}
			want = append(want, address)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.want[a.Instance]
	for _, address := range want {
		if err := s.of.Hold(address); err != nil {
			return err
		}
	}
	s.want[a.Instance] = want
	if len(want) == 0 {
		delete(s.want, a.Instance)
	}
	for _, address := range old {
		if !s.neededLocked(address) {
			if err := s.of.Drop(address); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *addresses) neededLocked(address netip.Addr) bool {
	for _, want := range s.want {
		if slices.Contains(want, address) {
			return true
		}
	}
	return false
}

// holdAddresses holds what the saved assignments need, before anything is done to their servers,
// and gives up what an earlier life has left.
func (a *Agent) holdAddresses(saved []kurabe.Assignment) {
	if a.addresses.of == nil {
		return
	}
	for _, s := range saved {
		if err := a.addresses.need(s); err != nil {
			a.Log.Error("address not held, tried again", logkey.Instance, s.Instance, logkey.Error, err)
		}
	}
	held, err := a.addresses.of.Held()
	if err != nil {
		a.Log.Error("addresses cannot be listed", logkey.Error, err)
	}
	a.addresses.mu.Lock()
	defer a.addresses.mu.Unlock()
	for _, address := range held {
		if a.addresses.neededLocked(address) {
			continue
		}
		if err := a.addresses.of.Drop(address); err != nil {
			a.Log.Error("address not given up", logkey.Address, address, logkey.Error, err)
		}
	}
}
