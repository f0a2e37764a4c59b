package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/agent/endpoint"
	"kurabe/internal/logkey"
)

// Leases is the service's word on until when the writers of this host may serve, as
// hostlink.Leases: nanoseconds of CLOCK_BOOTTIME.
type Leases interface {
	Want(kurabe.InstanceID, kurabe.Epoch)
	Drop(kurabe.InstanceID)
	Until(kurabe.InstanceID) int64
	// Confirm waits until the service has answered a word that was said after the call.
	Confirm(context.Context) error
}

// Guard ends a server with its lease, whatever becomes of this process, as warden.Warden.
type Guard interface {
	// Extend moves the end of the lease. When it returns nil, that holds.
	Extend(ctx context.Context, until int64) error
	// Until is the end of the lease as it is enforced, 0 of a guard that has none yet.
	Until(ctx context.Context) (int64, error)
	// Disarm ends the guard without its server.
	Disarm(ctx context.Context) error
	// Done closes when the guard is gone.
	Done() <-chan struct{}
}

// Guards are those of this host's servers. Open finds one, or begins it; Find returns nil for
// one that is not there.
type Guards interface {
	Open(context.Context, kurabe.Assignment) (Guard, error)
	Find(context.Context, kurabe.Assignment) (Guard, error)
}

const (
	// leaseEvery is how often the end of a lease is moved; guardTime bounds that.
	leaseEvery = 250 * time.Millisecond
	guardTime  = 500 * time.Millisecond
	// proveBelow is the rest of a lease below which the standby is asked to vouch: one word to
	// the service was not answered.
	proveBelow = kurabe.LeaseTime - 1500*time.Millisecond
)

// lease keeps the guard of one primary, from its order to have one until that ends. Only the
// worker begins and ends it.
type lease struct {
	worker *worker
	epoch  kurabe.Epoch
	// inherited is since when it is looked for, of a server that an earlier life of this process
	// may have left without a guard; 0 of one that this one was told to guard from now on.
	inherited int64
	cancel    context.CancelFunc
	done      chan struct{}

	mu    sync.Mutex // guards the rest
	until int64      // what the guard enforces, 0: it does not yet
}

// keepLease has a primary guarded whose assignment says so, and no other. A server that is
// not guarded yet is not started; see leased.
func (w *worker) keepLease(ctx context.Context, a kurabe.Assignment) {
	var epoch kurabe.Epoch
	if a.Role != nil && a.Role.Leased && a.Goal == kurabe.GoalRunning && w.agent.Leases != nil {
		epoch = a.Role.Epoch
	}
	if w.lease != nil && w.lease.epoch != epoch {
		w.lease.cancel()
		<-w.lease.done
		w.lease = nil
		w.guards.Store(nil)
		w.guarded = true
	}
	first := !w.looksOn
	w.looksOn = true
	if epoch == 0 && (w.guarded || first) && w.agent.Guards != nil {
		w.guarded = !w.disarm(ctx, a)
	}
	if w.lease != nil || epoch == 0 {
		return
	}
	w.agent.Leases.Want(w.ID, epoch)
	ctx, cancel := context.WithCancel(ctx)
	l := &lease{worker: w, epoch: epoch, cancel: cancel, done: make(chan struct{})}
	if first {
		l.inherited = w.agent.Boottime()
	}
	w.lease = l
	w.guards.Store(l)
	w.agent.host.Wait.Go(func() { l.run(ctx, a) })
}

// disarm ends the guard of a server that needs none any more, and says whether there is none.
// One of an earlier life of this process is found, too: its end would be that of the server.
func (w *worker) disarm(ctx context.Context, a kurabe.Assignment) bool {
	if w.agent.Leases != nil {
		w.agent.Leases.Drop(w.ID)
	}
	limited, cancel := context.WithTimeout(ctx, guardTime)
	defer cancel()
	guard, err := w.agent.Guards.Find(limited, a)
	if err == nil && guard != nil {
		err = guard.Disarm(limited)
	}
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("could not stop the warden, retrying", logkey.Error, err)
	}
	return err == nil
}

// leased says whether a server may be started.
func (w *worker) leased(a kurabe.Assignment) bool {
	if a.Role == nil || !a.Role.Leased || w.agent.Leases == nil {
		return true
	}
	return w.lease != nil && w.lease.holds()
}

// mayHoldEndpoint says whether the host may have the instance's endpoint. A running server whose
// lease has not ended keeps it, also while its lease is not known yet.
func (w *worker) mayHoldEndpoint(a kurabe.Assignment, running bool) bool {
	return w.leased(a) || running && w.lease != nil && !w.lease.hasEnded()
}

func (l *lease) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until > l.worker.agent.Boottime()
}

// leaseHolds says whether the lease of a primary holds at this moment, whatever was told of it.
func (a *Agent) leaseHolds(id kurabe.InstanceID) bool {
	w, there := a.workers.Find(id)
	if !there || a.Leases == nil {
		return there
	}
	l := w.guards.Load()
	return l != nil && l.holds()
}

// hasEnded says whether the lease existed and has ended.
func (l *lease) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.worker.agent.Boottime()
	if l.until == 0 {
		return l.inherited > 0 && now-l.inherited > int64(kurabe.LeaseTime)
	}
	return l.until <= now
}

// run moves the end of the lease until ctx ends. Then what it said last stands.
func (l *lease) run(ctx context.Context, a kurabe.Assignment) {
	defer close(l.done)
	var guard Guard
	var trouble string
	told, fresh := endpoint.LeaseUnknown, false
	ticker := time.NewTicker(leaseEvery)
	defer ticker.Stop()
	for {
		if guardGone(guard) {
			guard = nil
		}
		none := guard == nil
		err := l.extend(ctx, a, &guard)
		if fresh = fresh || none && guard != nil; fresh && l.holds() {
			// The one before may have ended the lease that was, also that of the epoch before, and
			// taken the endpoint's address away.
			again := l.worker.agent.endpoints.Addresses.Again(l.worker.ID)
			fresh, err = again != nil, errors.Join(err, again)
		}
		if text := textOf(err); text != trouble && ctx.Err() == nil {
			if trouble = text; err != nil {
				l.worker.Log.Error("could not start the warden of the primary's lease, retrying", logkey.Error, err)
			}
		}
		now := l.state()
		if now != endpoint.LeaseUnknown && ctx.Err() == nil {
			// Each time: an order that came meanwhile has the endpoint begin with what it knows.
			l.worker.agent.endpoints.Lease(l.worker.ID, l.epoch, now == endpoint.LeaseHolds)
		}
		if now != told && ctx.Err() == nil {
			told = now
			l.setState(now)
		} else if now == endpoint.LeaseOver {
			l.worker.wake() // a server that was started nevertheless is ended
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// state is what is known of the lease.
func (l *lease) state() endpoint.LeaseState {
	switch {
	case l.holds():
		return endpoint.LeaseHolds
	case l.hasEnded():
		return endpoint.LeaseOver
	}
	return endpoint.LeaseUnknown
}

// setState makes another state of the lease known to log and worker.
func (l *lease) setState(now endpoint.LeaseState) {
	if now == endpoint.LeaseOver {
		l.worker.Log.Warn("the primary's lease ended: neither the service nor the standby was heard in time")
	}
	l.worker.wake()
}

// extend moves the end of the lease to the later of what the service and what the standby
// have said.
func (l *lease) extend(ctx context.Context, a kurabe.Assignment, guard *Guard) error {
	w := l.worker
	now, until := w.agent.Boottime(), w.agent.Leases.Until(w.ID)
	w.setProving(until-now < int64(proveBelow))
	if at := w.vouchedAt(); at > 0 {
		until = max(until, at+int64(kurabe.StandbyLeaseTime))
	}
	limited, cancel := context.WithTimeout(ctx, guardTime)
	defer cancel()
	enforced := l.enforced()
	if *guard == nil {
		g, err := w.agent.Guards.Open(limited, a)
		if err != nil {
			return err
		}
		// One of an earlier life of this process goes on; one that takes the place of another has
		// nothing to enforce yet.
		if enforced, err = g.Until(limited); err != nil {
			return err
		}
		*guard = g
		l.setEnd(enforced)
		until = max(until, l.enforced())
	}
	if until <= now || until <= enforced || w.hangs() {
		return nil // the guard ends it, if it was ever leased
	}
	if err := (*guard).Extend(limited, until); err != nil {
		*guard = nil
		return err
	}
	l.setEnd(until)
	return nil
}

// setEnd moves the end of the lease.
func (l *lease) setEnd(until int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = max(l.until, until)
}

func guardGone(g Guard) bool {
	if g == nil {
		return true
	}
	select {
	case <-g.Done():
		return true
	default:
		return false
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// AwaitLeases waits until every lease that holds now is guarded up to the service's newest
// word, so that what was granted for a while without this process counts.
func (a *Agent) AwaitLeases(ctx context.Context) {
	ticker := time.NewTicker(leaseEvery / 8)
	defer ticker.Stop()
	for {
		behind := false
		for _, w := range a.workers.List() {
			l := w.guards.Load()
			behind = behind || l != nil && l.holds() && l.enforced() < a.Leases.Until(w.ID)
		}
		if !behind {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (l *lease) enforced() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}
