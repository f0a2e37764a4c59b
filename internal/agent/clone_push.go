package agent

import (
	"context"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
)

// clonePushPause is the pause after a copy, also after one that could not be brought: a question
// may be seen for two seconds longer than it is asked.
const clonePushPause = 3 * time.Second

// clonePushes are the copies of one server that are being brought. Followers are not many, and
// each has one at a time.
type clonePushes struct {
	mu    sync.Mutex // guards under
	under map[kurabe.InstanceID]bool
}

// begin says whether none is under way to a follower, and that one is from now on.
func (f *clonePushes) begin(id kurabe.InstanceID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.under[id] {
		return false
	}
	if f.under == nil {
		f.under = map[kurabe.InstanceID]bool{}
	}
	f.under[id] = true
	return true
}

func (f *clonePushes) end(id kurabe.InstanceID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.under, id)
}

// pushClones brings a copy of the server to each follower that asks for one. It ends with the
// server's process, and with the look at it.
func (g *roleWatch) pushClones(ctx context.Context, a kurabe.Assignment, asks []engine.Ask) {
	for _, ask := range asks {
		if !g.worker.clonePushes.begin(ask.ID) {
			continue
		}
		g.worker.agent.host.Wait.Go(func() {
			defer g.worker.clonePushes.end(ask.ID)
			log, began := g.worker.Log.With(logkey.To, ask.ID), g.worker.agent.Now()
			err := g.engine.Feed(ctx, a, ask)
			switch {
			case err == nil:
				log.Info("copied to a follower on another host", logkey.DurationMS, g.worker.agent.Now().Sub(began).Milliseconds())
			case ctx.Err() == nil:
				log.Warn("copy to a follower on another host failed", logkey.Error, err)
			}
			unit.Wait(ctx, clonePushPause)
		})
	}
}
