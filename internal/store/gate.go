package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrAway: the store is not reached at this moment. Nothing was written.
var ErrAway = errors.New("state store not reachable")

// awayWait is how long a read waits for a store that is away: who follows it is quiet
// meanwhile.
const awayWait = 30 * time.Second

// Gate is a KV before another one, for a store that may be away for long. While it is shut a
// write fails at once, without a doubt whether it was stored, and a read waits.
type Gate struct {
	kv KV

	mu   sync.Mutex // guards the rest
	open chan struct{}
	why  error // nil while it is open
}

// NewGate returns a Gate that is shut.
func NewGate(why error) *Gate { return &Gate{open: make(chan struct{}), why: why} }

// Through opens the gate to a store for the first time.
func (g *Gate) Through(kv KV) {
	g.mu.Lock()
	g.kv = kv
	g.mu.Unlock()
	g.Open()
}

// Open opens the gate.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.why != nil && g.kv != nil {
		g.why = nil
		close(g.open)
	}
}

// Shut shuts it.
func (g *Gate) Shut(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.why == nil {
		g.open = make(chan struct{})
	}
	g.why = why
}

// Healthy returns nil while the gate is open.
func (g *Gate) Healthy() error {
	_, err := g.now()
	return err
}

func (g *Gate) now() (KV, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.why != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, g.why)
	}
	return g.kv, nil
}

// Wait waits until the gate is open.
func (g *Gate) Wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		open, why := g.open, g.why
		g.mu.Unlock()
		if why == nil {
			return nil
		}
		select {
		case <-open:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), why)
		}
	}
}

// reading waits for as long as a read may.
func (g *Gate) reading(ctx context.Context) (KV, error) {
	attempt, cancel := context.WithTimeoutCause(ctx, awayWait, ErrAway)
	defer cancel()
	if err := g.Wait(attempt); err != nil {
		return nil, err
	}
	return g.now()
}

// Get implements KV.
func (g *Gate) Get(ctx context.Context, key string) (Entry, error) {
	kv, err := g.reading(ctx)
	if err != nil {
		return Entry{}, err
	}
	return kv.Get(ctx, key)
}

// List implements KV.
func (g *Gate) List(ctx context.Context, prefix string) ([]Entry, int64, error) {
	kv, err := g.reading(ctx)
	if err != nil {
		return nil, 0, err
	}
	return kv.List(ctx, prefix)
}

// Txn implements KV.
func (g *Gate) Txn(ctx context.Context, conds []Cond, ops []Op) (int64, error) {
	kv, err := g.now()
	if err != nil {
		return 0, err
	}
	return kv.Txn(ctx, conds, ops)
}

// Watch implements KV. One that has begun goes on over a time in which the store is away.
func (g *Gate) Watch(ctx context.Context, prefix string, fromRevision int64) <-chan Batch {
	if kv, err := g.now(); err == nil {
		return kv.Watch(ctx, prefix, fromRevision)
	}
	out := make(chan Batch)
	go func() {
		defer close(out)
		if g.Wait(ctx) != nil {
			return
		}
		select {
		case out <- Batch{Resync: true}:
		case <-ctx.Done():
		}
	}()
	return out
}
