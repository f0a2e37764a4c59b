package agent

import (
	"context"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
)

const (
	// waitsEvery is how often it is read what a server has written of them.
	waitsEvery = time.Second
	// waitsPause follows what was news: who ends waits by a time limit does so all the time,
	// and each count is a record of the planner's.
	waitsPause = 10 * time.Second
)

// countWaits counts until ctx ends. It is no part of a look: the disk on which the server writes
// may be slow, and that is no reason to take the server for one that hangs.
func (g *roleWatch) countWaits(ctx context.Context) {
	var counter engine.WaitCounter
	var once unit.LogOnce
	for {
		a, _ := g.worker.Assignment()
		news, err := false, error(nil)
		if counter == nil {
			if counter, err = g.engine.CountWaits(a); err == nil && counter == nil {
				return
			}
		}
		if err == nil {
			news, err = g.readWaits(ctx, counter, a)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			once.Warn(g.worker.Log, "commit waits not counted", err)
		}
		pause := waitsEvery
		if news {
			pause = waitsPause
		}
		unit.Wait(ctx, pause)
	}
}

// readWaits counts once, and says whether there are more than before.
func (g *roleWatch) readWaits(ctx context.Context, counter engine.WaitCounter, a kurabe.Assignment) (news bool, err error) {
	g.mu.Lock()
	elsewhere := g.state.EndedElsewhere
	g.mu.Unlock()
	n, err := counter.Read(ctx, a, elsewhere)
	if err != nil {
		return false, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	news = g.waits != nil && g.waits.Sum() != n.Sum()
	g.waits = &n
	return news, nil
}

// waitsReport is what is told of them, nil while nothing is known. Called with mu held.
func (g *roleWatch) waitsReport() *kurabe.ServerWaits {
	if g.waits == nil {
		return nil
	}
	n := *g.waits
	n.Unreplicated = n.Unreplicated && n.Sum() > g.state.EndedElsewhere
	return &n
}
