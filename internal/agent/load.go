package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
	"kurabe/internal/load"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/sample"
)

// LoadKeeper keeps which sessions of a server are active at a moment. Several goroutines call it.
type LoadKeeper interface {
	Add(server kurabe.InstanceID, sample load.Sample) error
	AddCounted(server kurabe.InstanceID, counted load.Counted) error
}

// wakeLoad lists the server's sessions at a random moment of this second. The kernel's limits work
// in times of their own, and samples in step with them show all sessions waiting, or none.
func (w *worker) wakeLoad(ctx context.Context, a kurabe.Assignment) {
	if !a.LoadKept || w.agent.Load == nil {
		return
	}
	w.agent.host.Wait.Go(func() {
		if unit.Wait(ctx, rand.N(sampleEvery)) {
			w.wakeSampler(&w.loadDue)
		}
	})
}

// countEvery is how often a server is asked for what it has counted of its statements.
const countEvery = time.Minute

// keepLoad has the host keep which sessions of a server are active, and what its statements have
// done since counted. Clients read no standby.
func (w *worker) keepLoad(ctx context.Context, a kurabe.Assignment, labels *labeller, s engine.Sampler, counted *time.Time, once *unit.LogOnce) error {
	if _, role := labels.identity(a); !a.LoadKept || w.agent.Load == nil || role == catalog.RoleStandby {
		return nil
	}
	at := w.agent.Now()
	sessions, err := s.Sessions(ctx)
	if err != nil {
		return err
	}
	w.agent.appendSamples(at, labels.label(a, sample.Load(sessions, a.Limits.CPUs)), once)
	failed := w.agent.Load.Add(a.Instance, load.Sample{At: at, Engine: a.Engine, Sessions: sessions})
	if at.Sub(*counted) >= countEvery || at.Before(*counted) {
		*counted = at
		statements, elapsed, err := s.Statements(ctx)
		if err != nil {
			return err
		}
		if elapsed > 0 {
			failed = errors.Join(failed, w.agent.Load.AddCounted(a.Instance, load.Counted{At: at, For: elapsed, Statements: statements}))
		}
	}
	if failed != nil {
		once.Warn(w.agent.Log, "database load not kept", failed)
	}
	return nil
}
