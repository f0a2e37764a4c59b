package service

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"kurabe"
	"kurabe/internal/agent"
	"kurabe/internal/cgroup"
	"kurabe/internal/engine"
	"kurabe/internal/warden"
)

// wardens guard the writers of this host that another host may replace.
type wardens struct {
	homes  string
	levers cgroup.Levers
}

// of is what the warden of an instance guards.
func (w wardens) of(a kurabe.Assignment) warden.Config {
	h := engine.Home{Dir: filepath.Join(w.homes, string(a.Instance))}
	c := warden.Config{Dir: h.WardenDir(), RecordFile: h.RecordFile(), LockFile: h.LockFile(), DataDir: h.DataDir()}
	if group, ok := w.levers.Find(string(a.Instance)); ok {
		c.Cgroups = group.ProcsFiles()
	}
	return c
}

// Open implements agent.Guards.
func (w wardens) Open(ctx context.Context, a kurabe.Assignment) (agent.Guard, error) {
	c := w.of(a)
	if err := os.Mkdir(c.Dir, 0o700); err != nil && !os.IsExist(err) {
		return nil, fmt.Errorf("folder of the warden: %w", err)
	}
	return guard(a)(warden.Ensure(ctx, c))
}

// Find implements agent.Guards.
func (w wardens) Find(ctx context.Context, a kurabe.Assignment) (agent.Guard, error) {
	found, err := warden.Find(ctx, w.of(a))
	if errors.Is(err, warden.ErrEnded) { // it is about to be gone, with the server
		return nil, nil
	}
	if found == nil || err != nil {
		return nil, err
	}
	return guard(a)(found, nil)
}

// guard makes a warden the guard of a writer.
func guard(a kurabe.Assignment) func(*warden.Warden, error) (agent.Guard, error) {
	return func(w *warden.Warden, err error) (agent.Guard, error) {
		if err != nil {
			return nil, err
		}
		g := wardenGuard{Warden: w, done: make(chan struct{})}
		for _, text := range []string{a.Address, a.ReaderAddress} {
			if address, err := netip.ParseAddr(text); err == nil && !address.IsLoopback() {
				g.target.Addresses = append(g.target.Addresses, address)
			}
		}
		go func() { // ends with the warden, or with us
			if w.Wait(context.Background()) == nil {
				close(g.done)
			}
		}()
		return g, nil
	}
}

type wardenGuard struct {
	*warden.Warden
	target warden.Target
	done   chan struct{}
}

// Extend implements agent.Guard.
func (g wardenGuard) Extend(ctx context.Context, until int64) error {
	return g.Warden.Extend(ctx, until, g.target)
}

// Done implements agent.Guard.
func (g wardenGuard) Done() <-chan struct{} { return g.done }

// awayTime is how long the service is told that this host will say nothing, when its agent
// ends in order: a restart takes less. For as long its loss is not noticed, also when it is
// back before.
const awayTime = 10 * time.Second

// announceLeave keeps the writers of this host in their place while its agent is away. say
// carries the word.
func (n *node) announceLeave() {
	if n.say == nil || n.agent == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if n.leases.Leave(ctx, n.say, awayTime) == nil {
		n.agent.AwaitLeases(ctx)
	}
}
