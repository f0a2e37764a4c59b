package hostlink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/event"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// A certificate says which host speaks, and a copy of a machine has it too. Two agents that
// obey the same orders would start two servers of one database, so a host is one life of one
// machine at a time: who has the place keeps it for as long as the host is not lost. A restart
// of the agent is the same life; a machine that was started anew is another one, and gets the
// place when what was before is lost, as it soon is; a copy comes while the first one goes on
// to speak. The place is a part of what is written of a host's presence, so that the next
// planner knows it.

// doubleTime is how long a double is told of after it has come last: one that is started
// again and again is one.
const doubleTime = 10 * time.Minute

// place is which machine is a host. Server.mu guards it, but writing.
type place struct {
	life    string
	seen    time.Time      // its newest request: a host that is lost may be back, and not be heard again yet
	refused *kurabe.Double // the first refusal of another one
	first   time.Time      // when that was by our own clock, zero: before this election
	came    time.Time      // the last one
	// writing is held while a presence of the host is written, so that what is written last is
	// what was decided last.
	writing sync.Mutex
}

// double is another machine that comes with the host's identity: one that was refused before
// the host has spoken. A machine that was started anew is refused, too, but says nothing more
// as what it was.
func (p *place) double(last, now time.Time) *kurabe.Double {
	if p.refused != nil && now.Sub(p.came) > doubleTime {
		p.refused = nil
	}
	if p.refused == nil || !last.After(p.first) {
		return nil
	}
	return p.refused
}

func lifeIn(r *http.Request) string { return r.Header.Get(lifeHeader) }

// has says whether a life of a host has its place. While what was decided before the election
// is not known, it is believed to.
func (s *Server) has(e Election, host kurabe.HostID, life string) bool {
	if s.View.Revision() < e.Fence.ModRevision {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hearingLocked(e, host).life == life
}

// take lets a life of a host speak that has the host's place, or gets it now.
func (s *Server) take(ctx context.Context, e Election, host kurabe.HostID, life, from string) error {
	if len(life) > lifeBytesMax {
		return fmt.Errorf("%w: %s has %d bytes", ErrRefused, lifeHeader, len(life))
	}
	// What was decided before this election has to be known.
	waiting, cancel := context.WithTimeout(ctx, aliveTime)
	defer cancel()
	if err := s.View.WaitRevision(waiting, e.Fence.ModRevision); err != nil {
		return err
	}
	s.mu.Lock()
	h := s.hearingLocked(e, host)
	held := h.life == life
	if held {
		h.seen = s.Now()
	}
	s.mu.Unlock()
	if held {
		return nil
	}
	err := s.claim(ctx, e, h, host, life)
	if errors.Is(err, ErrDouble) {
		s.noteDouble(h, host, from)
	}
	return err
}

// claim gives a free place to a life. It is written before anything is said to that life.
func (s *Server) claim(ctx context.Context, e Election, h *hearing, host kurabe.HostID, life string) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	joined, ok := s.View.JoinedHost(host)
	if !ok {
		return fmt.Errorf("%w: host %s was removed", ErrRefused, host)
	}
	said, known := s.View.Presence(host)
	s.mu.Lock()
	had := h.life
	free := had == "" || h.lost && said.Lost && s.Now().Sub(h.seen) > kurabe.HostLostAfter
	s.mu.Unlock()
	switch {
	case had == life:
		return nil
	case !free:
		return fmt.Errorf("%w: if this machine is a copy, end it; to be a host of its own it needs an empty data folder and a new token (kurabe hosts token)", ErrDouble)
	case !known:
		said = kurabe.Presence{Host: host, Since: s.Now().UTC()}
	}
	said.MachineRun, said.Double = life, nil
	if err := s.put(ctx, e, said, joined.ModRevision); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.life, h.seen, h.refused = life, s.Now(), nil
	return nil
}

// noteDouble remembers that another machine has come.
func (s *Server) noteDouble(h *hearing, host kurabe.HostID, from string) {
	if address, _, err := net.SplitHostPort(from); err == nil {
		from = address
	}
	s.mu.Lock()
	first := h.refused == nil
	h.came = s.Now()
	if first {
		h.refused, h.first = &kurabe.Double{From: from, Since: h.came.UTC()}, h.came
	}
	s.mu.Unlock()
	if first {
		s.Log.Info("a host connects from another machine than before; it waits until the former machine is silent", logkey.Host, string(host), "from", from)
	}
}

// tellDouble has a change tell of a double: who has a database there has to know.
func (s *Server) tellDouble(change *store.Change, p kurabe.Presence) {
	s.Log.Warn("refused a second machine with the identity of a host", logkey.Host, string(p.Host), "from", p.Double.From)
	kind := event.HostCopied.With(p.Double.From, p.Host)
	servers, _ := s.View.Assigned(p.Host)
	told := map[kurabe.InstanceID]bool{}
	for _, id := range servers {
		i, ok := s.View.Instance(id.Owner())
		if !ok || i.Spec == nil || told[i.ID] || len(told) >= doubleEventsMax {
			continue
		}
		told[i.ID] = true
		kind.Source = event.Instance
		if i.Spec.Cluster {
			kind.Source = event.Cluster
		}
		change.AddEvent(kind.Told(s.Now().UTC(), i.Name(), string(i.ID)))
	}
}

// doubleEventsMax bounds the events of one transaction, which has a bound.
const doubleEventsMax = 100
