package hostlink

import (
	"context"
	"fmt"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// presenceEvery is how often it is looked who was heard.
const presenceEvery = beat / 4

// hearing is what is known of a host under one election: its newest word, and whether it was
// decided that it is lost. From that moment on nothing is granted to it, until what it is heard
// again is written: others may be taking its place.
type hearing struct {
	election int64 // the revision of its fence
	last     time.Time
	lost     bool
	// covered is until when it is not lost whatever it says: what it has announced counts also
	// after it has spoken again, since what was granted for it cannot be taken back.
	covered time.Time
	silent  time.Duration // what was announced
	spoke   time.Time     // its newest word by which it can be expected to obey
	joined  time.Time     // the hour in the record of its joining, which only tells one from another
	arrived time.Time     // when that record was first seen here, and no other one was
	place                 // which machine it is
}

// joinedLocked is when a host had joined at the latest, zero if that was before this server
// looked. The hour in its record is that of a clock which may have been another machine's,
// or has been set since: one that lies ahead would keep a lost host from being noticed.
func (h *hearing) joinedLocked(record, now time.Time) time.Time {
	if !h.joined.Equal(record) {
		h.joined, h.arrived = record, now
	}
	return h.arrived
}

// hearingLocked is what is known of a host. One that has not spoken under this election is what
// the records say of it: the planner before may have decided, or granted.
func (s *Server) hearingLocked(e Election, id kurabe.HostID) *hearing {
	h := s.heard[id]
	if h == nil || h.election != e.Fence.ModRevision {
		said, _ := s.View.Presence(id)
		h = &hearing{election: e.Fence.ModRevision, lost: said.Lost, silent: said.SilentFor, place: place{life: said.MachineRun, seen: s.Now(), refused: said.Double, came: s.Now()}}
		if said.SilentFor > 0 {
			h.covered = newest(s.started, e.Since).Add(said.SilentFor)
		}
		s.heard[id] = h
	}
	return h
}

func newest(all ...time.Time) (t time.Time) {
	for _, one := range all {
		if one.After(t) {
			t = one
		}
	}
	return t
}

// alive notes that a host has spoken to the elected planner's server, and says which of its
// writers may go on. What it may do counts from when it began to speak, which was before
// this; what may be done to it for its silence counts from here, or from a later election,
// which is not won before this server's has run out.
func (s *Server) alive(ctx context.Context, e Election, host kurabe.HostID, q Alive) (AliveAnswer, error) {
	if s.View.Revision() < e.Fence.ModRevision {
		return AliveAnswer{}, nil // what was decided before is not known here yet
	}
	if len(q.Writers) > writersMost {
		return AliveAnswer{}, fmt.Errorf("%w: host %s reports %d primaries", ErrRefused, host, len(q.Writers))
	}
	q.SilentFor = min(max(q.SilentFor, 0), silentMost)
	s.mu.Lock()
	h := s.hearingLocked(e, host)
	if q.Looking && h.lost {
		s.mu.Unlock()
		return AliveAnswer{}, nil
	}
	now := s.Now()
	h.last = newest(h.last, now)
	if !q.Unheard {
		h.spoke = now
	}
	if q.SilentFor > 0 {
		h.covered, h.silent = newest(h.covered, now.Add(q.SilentFor)), max(h.silent, q.SilentFor)
	}
	if q.SilentFor > 0 || q.Looking {
		h.spoke = time.Time{}
	}
	lost := h.lost
	s.mu.Unlock()
	if lost {
		return AliveAnswer{}, nil
	}
	if q.SilentFor > 0 {
		// The next planner has to know, too, and the next life of this one.
		joined, ok := s.View.JoinedHost(host)
		if !ok {
			return AliveAnswer{}, nil
		}
		p := kurabe.Presence{Host: host, Since: now.UTC(), SilentFor: q.SilentFor}
		if err := s.write(ctx, e, h, p, joined.ModRevision); err != nil {
			return AliveAnswer{}, err
		}
	}
	return grant(s.View, q), nil
}

// Heard is when a host has spoken last to this server as the elected planner's, zero when it has
// not, or is away; false for a host that has no need to.
func (s *Server) Heard(id kurabe.HostID) (time.Time, bool) {
	if _, joined := s.View.JoinedHost(id); !joined {
		return time.Time{}, false
	}
	e, elected := s.elected()
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.heard[id]; elected && h != nil && h.election == e.Fence.ModRevision {
		return h.spoke, true
	}
	return time.Time{}, true
}

// Watch writes down when joined hosts fall silent and when they are heard again, until
// ctx ends, while this server is the elected planner. One that was just elected, or has
// just started, gives each the time to come.
func (s *Server) Watch(ctx context.Context) error {
	ticker := time.NewTicker(presenceEvery)
	defer ticker.Stop()
	looked := s.Now()
	for {
		// Whoever was stopped itself has heard nobody.
		if now := s.Now(); now.Sub(looked) > silenceMax/2 {
			s.mu.Lock()
			s.started = now
			s.mu.Unlock()
		}
		looked = s.Now()
		if e, elected := s.elected(); elected && s.View.Revision() >= e.Fence.ModRevision {
			for _, joined := range s.View.JoinedHosts() {
				s.judge(ctx, e, joined)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// judge writes the presence of one host if it has changed.
func (s *Server) judge(ctx context.Context, e Election, joined store.Record[kurabe.JoinedHost]) {
	if joined.Value.Gone {
		return
	}
	id, now := joined.Value.ID, s.Now()
	s.mu.Lock()
	h := s.hearingLocked(e, id)
	spoke := !h.last.IsZero()
	last := newest(h.last, h.covered, s.started, e.Since, h.joinedLocked(joined.Value.JoinedAt, now))
	if !now.Before(h.covered) {
		h.silent = 0
	}
	lost := now.Sub(last) > kurabe.HostLostAfter
	h.lost = h.lost || lost
	decided, silent, double := h.lost, h.silent, h.double(h.last, now)
	s.mu.Unlock()
	said, known := s.View.Presence(id)
	told := known && (said.Double == nil) == (double == nil)
	told = told && !(lost && kurabe.AfterNow(said.Since, now)) // the clock was set back
	if told && said.Lost == lost && decided == lost && (lost || said.SilentFor == silent) || !lost && !spoke {
		return
	}
	p := kurabe.Presence{Host: id, Lost: lost, Since: now.UTC(), SilentFor: silent}
	if lost {
		p.Since, p.SilentFor = now.Add(-now.Sub(last)).UTC(), 0 // by the clock as it is now
	}
	log := s.Log.With(logkey.Host, string(id), "lost", lost)
	if err := s.write(ctx, e, h, p, joined.ModRevision); err != nil {
		if ctx.Err() == nil {
			log.Warn("presence of a host not stored, retrying", logkey.Error, err)
		}
		return
	}
	s.mu.Lock()
	h.lost = h.lost && lost // what is written shows in View, with all that was decided before
	s.mu.Unlock()
	if !known || said.Lost != lost {
		log.Info("presence of a host", "since", p.Since)
	}
}

// write stores a presence, with the place as it is known, and waits until View shows it.
func (s *Server) write(ctx context.Context, e Election, h *hearing, p kurabe.Presence, joined int64) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	s.mu.Lock()
	p.MachineRun, p.Double = h.life, h.double(h.last, s.Now())
	s.mu.Unlock()
	return s.put(ctx, e, p, joined)
}

// put stores a presence as it is. hearing.writing is held.
func (s *Server) put(ctx context.Context, e Election, p kurabe.Presence, joined int64) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	change := store.NewChange().PutPresence(p, joined)
	if said, _ := s.View.Presence(p.Host); p.Double != nil && said.Double == nil {
		s.tellDouble(change, p)
	}
	if e.Fence.Key != "" {
		change.RequireElected(e.Fence)
	}
	revision, err := change.Commit(ctx, s.KV)
	if err != nil {
		return err
	}
	return s.View.WaitRevision(ctx, revision)
}
