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

// hear notes that a host has spoken.
func (s *Server) hear(host kurabe.HostID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[host] = s.Now()
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
	last, spoke := s.heard[id]
	s.mu.Unlock()
	for _, begin := range []time.Time{s.started, joined.Value.JoinedAt} {
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
	log.Info("presence of a host", "since", p.Since)
}
