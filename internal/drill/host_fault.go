package drill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"kurabe/internal/netcut"
	"kurabe/internal/proc"
)

// lastLocked begins what a permit is for, which then ends by itself.
func (p *Permits) lastLocked(g *given) error {
	begin := p.freezeLocked
	if g.Action == Cut {
		begin = p.cutLocked
	}
	l, err := begin(g)
	if errors.Is(err, os.ErrProcessDone) {
		return p.gone(g.Permit)
	}
	if err != nil {
		return err
	}
	g.hold, g.forget = l, p.now()+int64(g.For+guardSlack+permitKept)
	go l.keep(g.For, p.silence)
	return nil
}

// freezeLocked stops a server. A guard has it go on when this process dies or hangs.
func (p *Permits) freezeLocked(g *given) (*hold, error) {
	watch, err := startGuard(p.guard, g.home.DataDir(), g.For)
	if err != nil {
		return nil, err
	}
	l := newHold(func() (bool, error) { return !g.process.Alive(), nil }, func(h *Held) error {
		defer watch.end() // which tries once more
		h.Ended = !g.process.Alive()
		// The folder of one that was given up may be gone.
		if err := proc.Resume(g.home.DataDir()); err != nil && !(h.Ended && errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("resume %s: %w; by hand: kill -CONT %d", g.Server, err, g.PID)
		}
		return nil
	})
	if p.now() >= g.until { // a guard takes its time
		watch.end()
		return nil, p.late(g.Server)
	}
	// What has begun is not left half done.
	if err := proc.Suspend(context.Background(), g.process, g.home.DataDir()); err != nil {
		return nil, errors.Join(err, l.end(&Held{}))
	}
	return l, nil
}

// cutLocked has the kernel lose what a server and its peers say to each other. The kernel ends
// it with its time, or with this process.
func (p *Permits) cutLocked(g *given) (*hold, error) {
	known := g.process
	of := func() (netcut.Process, error) {
		workers, err := proc.Survivors(g.home.DataDir())
		return netcut.Process{PID: known.PID, Workers: workers, Peers: g.Peers}, err
	}
	first, err := of()
	if err != nil {
		return nil, err
	}
	c, err := netcut.Start([]netcut.Process{first}, g.For)
	if err != nil {
		return nil, err
	}
	// One that is started meanwhile is cut off, too.
	again := func() (bool, error) {
		newest, found, err := g.home.Daemon().Find()
		if err != nil || !found || newest.PID == known.PID && newest.StartTime == known.StartTime {
			return false, nil
		}
		known = newest
		next, err := of()
		if err == nil {
			err = c.Add(next)
		}
		if err != nil && newest.Alive() {
			return false, fmt.Errorf("cut process %d of %s off, which was started meanwhile: %w", newest.PID, g.Server, err)
		}
		return false, nil
	}
	return newHold(again, func(h *Held) (err error) {
		h.Lost, err = c.Lost()
		return errors.Join(err, c.Close())
	}), nil
}
