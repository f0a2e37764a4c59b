package fake

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/metrics/sample"
)

// watcher is a session with one process.
type watcher struct {
	e       *Engine
	id      kurabe.InstanceID
	process string
}

// OpenWatch opens a session with a running server.
func (e *Engine) OpenWatch(ctx context.Context, a kurabe.Assignment) (engine.Watcher, error) {
	return e.open(ctx, a)
}

// OpenSampler opens one that counts the commits.
func (e *Engine) OpenSampler(ctx context.Context, a kurabe.Assignment) (engine.Sampler, error) {
	return e.open(ctx, a)
}

func (e *Engine) open(ctx context.Context, a kurabe.Assignment) (*watcher, error) {
	e.net.Lock()
	w := &watcher{e, a.Instance, e.get(a.Instance).o.Process}
	e.net.Unlock()
	if _, err := w.Look(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// Look implements engine.Watcher. A frozen server does not answer.
func (w *watcher) Look(ctx context.Context) (engine.RoleView, error) {
	if err := w.e.answers(ctx, w.id, engine.StepWaitReady); err != nil {
		return engine.RoleView{}, err
	}
	w.e.net.Lock()
	defer w.e.net.Unlock()
	i := w.e.get(w.id)
	switch {
	case !i.o.Running || i.o.Process != w.process:
		return engine.RoleView{}, fmt.Errorf("the server of %s has ended", w.id)
	case !i.o.Applied.Ready:
		return engine.RoleView{}, engine.ErrNotReady
	}
	w.e.net.flow()
	return w.e.net.view(i), nil
}

// Sample implements engine.Sampler.
func (w *watcher) Sample(ctx context.Context) ([]sample.Value, error) {
	v, err := w.Look(ctx)
	return []sample.Value{{Metric: "DatabaseConnections"}, {Metric: "TransactionLogsGeneration", Kind: sample.Rate, Value: float64(v.Inserted)}}, err
}

// Sessions implements engine.Sampler: nothing is ever under way.
func (w *watcher) Sessions(ctx context.Context) ([]kurabe.ActiveSession, error) {
	_, err := w.Look(ctx)
	return nil, err
}

// Statements implements engine.Sampler: none are counted.
func (w *watcher) Statements(context.Context) ([]kurabe.StatementCounts, time.Duration, error) {
	return nil, 0, nil
}

// Close implements engine.Watcher and engine.Sampler.
func (w *watcher) Close() {}

func (n *network) view(i *instance) engine.RoleView {
	end := int64(len(i.log))
	if i.o.Follower {
		return engine.RoleView{Following: n.source(i) != nil, Position: end, Applied: end, Kept: end}
	}
	v := engine.RoleView{Writing: true, Position: end, Inserted: end, WaitsFor: slices.Clone(i.runs.role.WaitFor), Followers: map[kurabe.InstanceID]engine.FollowerView{},
		Slots: append([]kurabe.InstanceID{}, i.slots...)}
	for _, id := range i.slots {
		f := n.server(id)
		if f == nil || n.source(f) != i {
			v.Followers[id] = engine.FollowerView{Lost: f != nil && f.outrun}
			continue
		}
		a := i.answers[id]
		v.Followers[id] = engine.FollowerView{Streaming: true, Flushed: int64(a.flushed), Replayed: int64(a.flushed), HeardAgo: time.Since(a.at), FollowedAt: a.boot}
	}
	return v
}

// Freeze has a server stand still until Thaw, or its end.
func (e *Engine) Freeze(id kurabe.InstanceID) {
	e.change(id, func(i *instance) {
		if i.o.Running && i.frozen == nil {
			i.frozen, i.frozenAt = make(chan struct{}), time.Now()
		}
	})
}

// Thaw has it go on.
func (e *Engine) Thaw(id kurabe.InstanceID) { e.change(id, func(i *instance) { i.thaw() }) }
