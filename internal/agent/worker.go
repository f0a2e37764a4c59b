package agent

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
)

// worker drives one instance. Only its own goroutine acts on the instance.
type worker struct {
	agent  *Agent
	id     kurabe.InstanceID
	log    *slog.Logger
	signal chan struct{} // capacity 1: wake-ups melt together
	news   chan struct{} // capacity 1: there is something to tell, also in the midst of a step
	done   chan struct{} // closed by retire
	looked chan struct{} // closed when the first report was made

	saving sync.Mutex // held while an assignment is saved; taken before mu

	mu      sync.Mutex // guards have, known, refused, waiting, retired and cut
	have    kurabe.Assignment
	known   bool
	refused *kurabe.Failure    // why a newer assignment could not be saved
	waiting kurabe.Assignment  // that assignment
	retired bool               // done is closed
	cut     context.CancelFunc // ends the step under way, nil between steps

	// The rest belongs to the goroutine of run.
	began       bool // a pass has had an assignment
	failure     *kurabe.Failure
	retryAt     time.Time // a failed step is not tried again before, whatever wakes us
	retryGen    kurabe.Generation
	crashes     int       // in a row
	crashed     time.Time // newest crash seen
	startAt     time.Time // a start that was ordered after a crash is not made before
	reported    kurabe.InstanceReport
	sent        bool
	untold      untold
	follower    *follower // of the log, nil while nobody follows it
	holder      func()    // ends that a standby is told what to hold of it, nil while it is not
	logFinished bool      // the end of the log was kept, or could not be
	logDropped  string    // process that holds back no log
	watching    string    // process whose end wakes us
	unwatch     context.CancelFunc
	role        *roleWatch // of the running server of a group, nil without one
	lease       *lease     // of a writer that has one, nil without
	guarded     bool       // there may be a guard that is needed no more
	looksOn     bool       // keepLease was called before
	vacant      io.Closer  // holds vacantAt while no server listens there
	vacantAt    netip.AddrPort
	used        int64 // what usage knew at the last look

	usage   usage       // guards itself
	feeds   feeds       // guards itself
	walking atomic.Bool // its files are being looked through aside
	// position is how far the log of its newest server was seen to be durable.
	position atomic.Int64
	// watched is role, for those who are not the goroutine of run.
	watched atomic.Pointer[roleWatch]
	guards  atomic.Pointer[lease] // lease, likewise
}

func newWorker(a *Agent, id kurabe.InstanceID) *worker {
	return &worker{
		agent: a, id: id, log: a.Log.With(logkey.Instance, id),
		signal: make(chan struct{}, 1), news: make(chan struct{}, 1), done: make(chan struct{}), looked: make(chan struct{}),
	}
}

func (w *worker) assignment() (kurabe.Assignment, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.have, w.known
}

// give puts a saved assignment in force.
func (w *worker) give(a kurabe.Assignment) {
	w.mu.Lock()
	w.have, w.known, w.refused = a, true, nil
	if w.cut != nil {
		// A step may wait long, for a recovery for example; steps are idempotent,
		// and the new order may want something else.
		w.cut()
	}
	w.mu.Unlock()
	w.agent.endpoints.claim(a)
	w.agent.sourceChanged(a)
	w.wake()
}

// wake says "look again" and carries no data.
func (w *worker) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// stir has the worker look again, and tell what it sees even if a step is under way.
func (w *worker) stir() {
	select {
	case w.news <- struct{}{}:
	default:
	}
	w.wake()
}

// retire has the worker leave; it may be asked twice.
func (w *worker) retire() {
	w.agent.endpoints.drop(w.id)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.retired {
		w.retired = true
		close(w.done)
	}
}

// run looks and acts until ctx ends or the instance is retired.
func (w *worker) run(ctx context.Context) {
	defer func() {
		if w.unwatch != nil {
			w.unwatch()
		}
		if w.role != nil {
			w.role.cancel()
		}
		if w.lease != nil {
			w.lease.cancel()
		}
		w.leaveVacant()
	}()
	for {
		w.acceptAgain()
		pause := w.pass(ctx)
		// A pass before the first assignment was given has seen nothing: counted as
		// a look, it would let the service answer with what was true before.
		if w.began {
			w.look()
		}
		if _, waits := w.unsaved(); waits {
			pause = min(pause, saveRetry)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-w.done:
			timer.Stop()
			w.leave(ctx)
			return
		case <-w.signal:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// watch has the end of the running process wake the worker.
func (w *worker) watch(ctx context.Context, o engine.Observation) {
	if o.Process == w.watching {
		return
	}
	if w.unwatch != nil {
		w.unwatch()
		w.unwatch = nil
	}
	w.watching = o.Process
	if o.Wait == nil {
		return
	}
	watched, cancel := context.WithCancel(ctx)
	w.unwatch = cancel
	w.agent.wait.Add(1)
	go func() {
		defer w.agent.wait.Done()
		if o.Wait(watched) == nil {
			w.stir()
		}
	}()
}
