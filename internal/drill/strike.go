package drill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"kurabe/internal/proc"
)

// strike does what was ordered.
func (r *run) strike(ctx context.Context, targets []target) error {
	r.Say(r.Order.String())
	defer func() { r.calm = time.Now() }()
	for _, t := range targets {
		r.struck = append(r.struck, t.ID)
	}
	switch r.Order.Action {
	case Kill:
		return r.kill(ctx, targets)
	case Freeze:
		return r.freeze(ctx, targets[0])
	case Cut:
		return r.cut(ctx, targets[0])
	}
	r.fault = time.Now()
	r.watch.note(r.fault, FromDrill, "asks for a failover (%s)", r.failoverCall())
	if err := r.Service.Failover(ctx); err != nil {
		return fmt.Errorf("ask for a failover: %w", err)
	}
	return nil
}

func (r *run) failoverCall() string {
	if r.Order.Cluster {
		return "FailoverDBCluster"
	}
	return "RebootDBInstance with ForceFailover"
}

// kill kills all of them at once: they were looked up before. What another host does not say
// to have killed may have died all the same.
func (r *run) kill(ctx context.Context, targets []target) error {
	r.fault = time.Now()
	errs := make([]error, len(targets))
	var remote sync.WaitGroup
	for n, t := range targets {
		if t.permit != nil {
			remote.Go(func() { errs[n] = r.strikeRemote(ctx, t) })
		}
	}
	for n, t := range targets {
		r.killed[victim{t.ID, t.pid()}] = true
		if t.permit == nil {
			errs[n] = t.process.Signal(syscall.SIGKILL)
		}
	}
	for _, t := range targets {
		if t.permit == nil {
			r.watch.note(r.fault, FromDrill, "kills process %d: %s, %s", t.pid(), name(t.ID), r.side(t))
		} else {
			r.watch.note(r.fault, FromDrill, "host %s kills process %d: %s, %s", t.Host, t.pid(), name(t.ID), r.side(t))
		}
	}
	remote.Wait()
	return errors.Join(errs...)
}

func (r *run) side(t target) Side {
	if t.ID == r.before.Writer {
		return Writer
	}
	if r.Order.Cluster {
		return Reader
	}
	return Standby
}

// freeze stops a server for a time, or until ctx ends, and has it go on. Meanwhile a guard
// is there for our own death.
func (r *run) freeze(ctx context.Context, t target) (failure error) {
	if t.permit != nil {
		return r.freezeRemote(ctx, t)
	}
	g, err := startGuard(r.Guard, t.dataDir, r.Order.For)
	if err != nil {
		return err
	}
	defer g.end() // after the server goes on
	r.fault = time.Now()
	r.watch.note(r.fault, FromDrill, "freezes process %d and its children: %s, %s", t.process.PID, name(t.ID), r.side(t))
	defer func() {
		// The service may have removed the folder of one that it gave up, and so ended it.
		if err := proc.Resume(t.dataDir); err != nil && (t.process.Alive() || !errors.Is(err, fs.ErrNotExist)) {
			failure = errors.Join(failure, fmt.Errorf("resume %s: %w; the guard tries again; by hand: kill -CONT %d", t.ID, err, t.process.PID))
		}
	}()
	if err := proc.Suspend(ctx, t.process, t.dataDir); err != nil {
		return err
	}
	frozen, cancel := context.WithTimeout(ctx, time.Until(r.fault.Add(r.Order.For)))
	defer cancel()
	if t.process.Wait(frozen) == nil {
		r.watch.note(time.Now(), FromDrill, endedFrozen, t.process.PID)
		return nil
	}
	r.watch.note(time.Now(), FromDrill, "resumes process %d", t.process.PID)
	return nil
}

const endedFrozen = "process %d was killed while it was frozen: the service ends a server that hangs"
