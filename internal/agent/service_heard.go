package agent

import (
	"context"
	"slices"

	"kurabe"
)

// confirmServiceHeard asks the service for an answer whenever other followers are silent than
// before: a host that hears nobody must not make the planner let it continue alone.
func (g *roleWatch) confirmServiceHeard(ctx context.Context, followers []kurabe.InstanceID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	leases := g.worker.agent.Leases
	silent := g.state.Report(g.worker.agent.Now(), followers).SilentFollowers
	if leases == nil || slices.Equal(silent, g.silent) {
		return
	}
	if g.await != nil {
		g.await()
	}
	ctx, g.await = context.WithCancel(ctx)
	g.silent, g.heard = silent, false
	g.worker.agent.host.Wait.Go(func() {
		if leases.Confirm(ctx) != nil {
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if ctx.Err() == nil { // nobody else is silent by now
			g.heard = true
			g.poke()
		}
	})
}

// unheardLocked says whether a primary that can be replaced from another host has not heard the
// service since these are silent.
func (g *roleWatch) unheardLocked(silent []kurabe.InstanceID) bool {
	a, _ := g.worker.Assignment()
	if a.Role == nil || !a.Role.Leased || g.worker.agent.Leases == nil || len(silent) == 0 {
		return false
	}
	return !g.heard || !slices.Equal(silent, g.silent)
}
