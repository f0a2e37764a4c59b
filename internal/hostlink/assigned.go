package hostlink

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// What a host says counts for what it was given, and for nothing else: its agent's machine
// may be in other hands, and a plan believes what is reported.

// refusalsMax bounds what is remembered of refusals that the log has.
const refusalsMax = 1000

// putReport refuses what a host says of something that is not assigned to it. The store is
// asked and not the view: an agent may know of an assignment before that does.
func (s *Server) putReport(ctx context.Context, host kurabe.HostID, r kurabe.Word) error {
	said := r.Envelope()
	id := said.ID
	if err := own(host, said.Host); err != nil {
		return err
	}
	if !slices.Contains(kurabe.Kinds, said.Kind) {
		return fmt.Errorf("%w: unknown kind %.40q", ErrRefused, said.Kind)
	}
	e, err := s.KV.Get(ctx, store.AssignmentPrefix(host, said.Kind)+id)
	if err != nil {
		return err
	}
	if e.ModRevision != 0 {
		s.mu.Lock()
		if len(s.spoke) >= refusalsMax {
			clear(s.spoke)
		}
		s.spoke[refusal{host, id}] = s.Now()
		s.mu.Unlock()
		return s.Link.PutReport(ctx, r)
	}
	s.refused(host, id)
	return fmt.Errorf("%w: host %s reports %.80q, which is not assigned to it", ErrRefused, host, id)
}

// lateWord is how long after its last word of what it had a host may say one more that is
// merely late, when that was taken from it: refused like any other, and nothing to be told.
const lateWord = time.Minute

// refused puts a refusal into the log, once.
func (s *Server) refused(host kurabe.HostID, id string) {
	what := refusal{host, id}
	s.mu.Lock()
	_, told := s.told[what]
	if spoke, ok := s.spoke[what]; ok && s.Now().Sub(spoke) < lateWord {
		told = true
	} else {
		if len(s.told) >= refusalsMax {
			clear(s.told)
		}
		s.told[what] = struct{}{}
	}
	s.mu.Unlock()
	if !told {
		s.Log.Warn("a host reports a server that is not assigned to it", logkey.Host, string(host), "of", fmt.Sprintf("%.80s", id))
	}
}

type refusal struct {
	host kurabe.HostID
	of   string
}

// ownLogs leaves of a report of logs those of instances that the host has, or had. One that
// is another's is no reason to refuse the rest: databases wait for how far that reaches.
func (s *Server) ownLogs(ctx context.Context, host kurabe.HostID, r kurabe.LogReport) (kurabe.LogReport, error) {
	var given map[kurabe.InstanceID]bool // as the store has it, which is asked for what the view lacks
	kept := r.Logs[:0]
	for _, l := range r.Logs {
		if !s.View.Keeps(host, l.Instance) {
			if given == nil {
				entries, _, err := s.KV.List(ctx, store.AssignmentPrefix(host, kurabe.KindServer))
				if err != nil {
					return r, err
				}
				given = map[kurabe.InstanceID]bool{}
				for _, e := range entries {
					if ref, ok := store.AssignmentOf(e.Key); ok {
						given[kurabe.InstanceID(ref.ID).Owner()] = true
					}
				}
			}
			if !given[l.Instance] {
				s.refused(host, string(l.Instance))
				continue
			}
		}
		kept = append(kept, l)
	}
	r.Logs = kept
	return r, nil
}
