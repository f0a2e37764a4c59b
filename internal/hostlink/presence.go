package hostlink

import (
	"context"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// presenceEvery is how often it is looked who was heard.
const presenceEvery = beat / 4

// hearing is what is known of a host: its newest word, and whether it was decided that it is
// lost. From that moment on nothing is granted to it, until what it is heard again is
// written: others may be taking its place.
type hearing struct {
	last time.Time
	lost bool
}

// hearingLocked is what is known of a host. One that this process knows nothing of is what
// the records say of it.
func (s *Server) hearingLocked(id kurabe.HostID) *hearing {
	h := s.heard[id]
	if h == nil {
		h = &hearing{lost: !s.View.LostSince(id).IsZero()}
		s.heard[id] = h
	}
	return h
}

// alive notes that a host has spoken, and says which of its writers may go on.
func (s *Server) alive(host kurabe.HostID, q Alive) AliveAnswer {
	s.mu.Lock()
	h := s.hearingLocked(host)
	if q.Looking && h.lost {
		s.mu.Unlock()
		return AliveAnswer{}
	}
	if at := s.Now().Add(min(max(q.SilentFor, 0), silentMost)); at.After(h.last) {
		h.last = at
	}
	lost := h.lost
	s.mu.Unlock()
	if lost {
		return AliveAnswer{}
	}
	return grant(s.View, q)
}

// Watch writes down when joined hosts fall silent and when they are heard again, until
// ctx ends. A server that has just started gives each the time to come.
func (s *Server) Watch(ctx context.Context) error {
	ticker := time.NewTicker(presenceEvery)
	defer ticker.Stop()
	looked := s.Now()
	for {
		// Whoever was stopped itself has heard nobody.
		if now := s.Now(); now.Sub(looked) > silenceMax/2 {
			s.started = now
		}
		looked = s.Now()
		for _, joined := range s.View.JoinedHosts() {
			s.judge(ctx, joined)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// judge writes the presence of one host if it has changed.
func (s *Server) judge(ctx context.Context, joined store.Record[kurabe.JoinedHost]) {
	if joined.Value.Gone {
		return
	}
	id, now := joined.Value.ID, s.Now()
	s.mu.Lock()
	h := s.hearingLocked(id)
	last, spoke := h.last, !h.last.IsZero()
	for _, begin := range []time.Time{s.started, joined.Value.JoinedAt} {
		if last.Before(begin) {
			last = begin
		}
	}
	lost := now.Sub(last) > kurabe.LostAfter
	h.lost = h.lost || lost
	decided := h.lost
	s.mu.Unlock()
	said, known := s.View.Presence(id)
	if known && said.Lost == lost && decided == lost || !lost && !spoke {
		return
	}
	p := kurabe.Presence{Host: id, Lost: lost, Since: now.UTC()}
	if lost {
		p.Since = last.UTC()
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	revision, err := store.NewChange().PutPresence(p, joined.ModRevision).Commit(ctx, s.KV)
	if err == nil {
		err = s.View.WaitRevision(ctx, revision)
	}
	log := s.Log.With(logkey.Host, string(id), "lost", lost)
	if err != nil {
		if ctx.Err() == nil {
			log.Warn("presence of a host not written, tried again", logkey.Error, err)
		}
		return
	}
	s.mu.Lock()
	h.lost = h.lost && lost // what is written shows in View, with all that was decided before
	s.mu.Unlock()
	log.Info("presence of a host", "since", p.Since)
}
