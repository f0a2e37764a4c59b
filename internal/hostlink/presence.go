package hostlink

import (
	"context"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// presenceEvery is how often it is looked who was heard.
const presenceEvery = beat / 2

// hear notes that a host has spoken, and says whether it was to the elected planner's
// server. What a host may do for having been heard counts from when it began to speak,
// which was before this; what may be done to it for its silence counts from here, or from
// a later election, which is not won before this server's has run out.
func (s *Server) hear(host kurabe.HostID) bool {
	if _, elected := s.elected(); !elected {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[host] = s.Now()
	return true
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
			s.started = now
		}
		looked = s.Now()
		if e, elected := s.elected(); elected {
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
	last, spoke := s.heard[id]
	s.mu.Unlock()
	spoke = spoke && !last.Before(e.Since)
	for _, begin := range []time.Time{s.started, e.Since, joined.Value.JoinedAt} {
		if last.Before(begin) {
			last = begin
		}
	}
	lost := now.Sub(last) > silenceMax
	said, known := s.View.Presence(id)
	if known && said.Lost == lost || !lost && !spoke {
		return
	}
	p := kurabe.Presence{Host: id, Lost: lost, Since: now.UTC()}
	if lost {
		p.Since = last.UTC()
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	change := store.NewChange().PutPresence(p, joined.ModRevision)
	if e.Fence.Key != "" {
		change.RequireElected(e.Fence)
	}
	revision, err := change.Commit(ctx, s.KV)
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
	log.Info("presence of a host", "since", p.Since)
}
