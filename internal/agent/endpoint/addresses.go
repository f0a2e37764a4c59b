package endpoint

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"kurabe"
	"kurabe/internal/logkey"
)

// Network makes addresses ones of this machine: those of its pool, and endpoints of
// another host's pool that have come here with their writer. Held are all that it has made
// so, Announce tells the neighbours of one that may have been elsewhere before.
type Network interface {
	Hold(netip.Addr) error
	Drop(netip.Addr) error
	Held() ([]netip.Addr, error)
	Announce(netip.Addr) error
}

// Addresses are those that the servers of this host listen at, and the endpoints that it
// holds for them. A server that is stopped keeps its own: its clients are refused at once.
type Addresses struct {
	log  *slog.Logger
	of   Network // nil: all are there by themselves
	mu   sync.Mutex
	want map[string][]netip.Addr // by whoever wants them
}

// endpointOf is who wants the endpoint of an instance, whose writer listens elsewhere.
func endpointOf(owner kurabe.InstanceID) string { return "endpoint " + string(owner) }

// Need holds what a server listens at, before it is started, and gives up what it no
// longer does. The endpoint of a writer without a lease (leased) may be another host's by
// now.
func (s *Addresses) Need(a kurabe.Assignment, leased bool) error {
	if s.of == nil {
		return nil
	}
	var want []netip.Addr
	if a.Goal != kurabe.GoalAbsent {
		for _, text := range []string{a.Address, a.ListensAt} {
			if text == "" || text == a.Address && !holdsEndpoint(a, leased) {
				continue
			}
			address, err := netip.ParseAddr(text)
			if err != nil {
				return fmt.Errorf("address of %s: %w", a.Name, err)
			}
			want = append(want, address)
		}
	}
	return s.Hold(string(a.Instance), want)
}

// Hold makes these addresses the ones that somebody wants, and gives up what nobody does
// any more.
func (s *Addresses) Hold(whose string, want []netip.Addr) error {
	if s.of == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.want[whose]
	for _, address := range want {
		if err := s.of.Hold(address); err != nil {
			return err
		}
		if !slices.Contains(old, address) {
			// It may have been another host's before, as an endpoint that was there at last. Who is
			// not told finds out some seconds later.
			_ = s.of.Announce(address)
		}
	}
	s.want[whose] = want
	if len(want) == 0 {
		delete(s.want, whose)
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

// Again holds once more what a server and the endpoint of its instance want, in case that it
// was taken away.
func (s *Addresses) Again(id kurabe.InstanceID) error {
	if s.of == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, w := range []string{endpointOf(id.Owner()), string(id)} {
		for _, address := range s.want[w] {
			if err := s.of.Hold(address); err != nil {
				errs = append(errs, err)
				continue
			}
			_ = s.of.Announce(address) // as hold does
		}
	}
	return errors.Join(errs...)
}

// holdsEndpoint says whether a server has the address of its endpoint by itself, since it
// listens there. A standby's is held by whoever writes, and that of a writer which listens
// elsewhere comes with the endpoint (Table).
func holdsEndpoint(a kurabe.Assignment, leased bool) bool {
	switch {
	case a.ListensAt != "":
		return false
	case a.Role == nil, a.Role.ServesReads:
		return true
	}
	return a.Role.Duty != kurabe.DutyFollow && leased
}

func (s *Addresses) neededLocked(address netip.Addr) bool {
	for _, want := range s.want {
		if slices.Contains(want, address) {
			return true
		}
	}
	return false
}

// HoldSaved holds what the saved assignments need, before anything is done to their servers,
// and gives up what an earlier life has left.
func (s *Addresses) HoldSaved(saved []kurabe.Assignment) {
	if s.of == nil {
		return
	}
	later := map[netip.Addr]string{} // and who sees to it
	for _, a := range saved {
		// What is held under a lease, or with an endpoint, is seen to in a moment; to drop it
		// meanwhile would cut clients off.
		if endpoint, err := netip.ParseAddr(a.Address); err == nil && a.Role != nil && a.Role.Duty == kurabe.DutyWrite {
			later[endpoint] = string(a.Instance)
			if a.ListensAt != "" {
				later[endpoint] = endpointOf(a.Instance.Owner())
			}
			if reader, err := netip.ParseAddr(a.ReaderAddress); err == nil {
				later[reader] = endpointOf(a.Instance.Owner())
			}
		}
		// Whether there is a lease is not known yet, and its worker holds it then.
		if err := s.Need(a, a.Role == nil || !a.Role.Leased); err != nil {
			s.log.Error("could not add an endpoint's address, retrying", logkey.Instance, a.Instance, logkey.Error, err)
		}
	}
	held, err := s.of.Held()
	if err != nil {
		s.log.Error("could not list the addresses of this host", logkey.Error, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, address := range held {
		if s.neededLocked(address) {
			continue
		}
		if whose, kept := later[address]; kept {
			s.want[whose] = append(s.want[whose], address)
			continue
		}
		if err := s.of.Drop(address); err != nil {
			s.log.Error("could not remove an endpoint's address", logkey.Address, address, logkey.Error, err)
		}
	}
}
