package agent

import (
	"context"
	"io"
	"net/netip"
	"sync/atomic"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/agent/watch"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
)

// worker drives one server of an instance.
type worker struct {
	agent *Agent
	unit.Unit[kurabe.InstanceID, kurabe.Assignment, kurabe.InstanceReport]
	news chan struct{} // capacity 1: there is something to tell, also in the midst of a step

	// The rest belongs to the goroutine of run.
	crashes     int        // in a row
	crashed     time.Time  // newest crash seen
	startAt     time.Time  // a start that was ordered after a crash is not made before
	follower    *follower  // of the log, nil while nobody follows it
	holder      func()     // ends that a standby is told what to hold of it, nil while it is not
	heldBy      string     // process that is told so
	logFinished bool       // the end of the log was kept, or could not be
	logDropped  string     // process that holds back no log
	role        *roleWatch // of the running server of a group, nil without one
	lease       *lease     // of a primary that has one, nil without
	guarded     bool       // there may be a guard that is needed no more
	looksOn     bool       // keepLease was called before
	reserved    io.Closer  // holds reservedAt while no server listens there
	reservedAt  netip.AddrPort
	used        int64 // what usage knew at the last look

	usage       usage       // guards itself
	clonePushes clonePushes // guards itself
	walking     atomic.Bool // its files are being looked through aside
	// position is how far the log of its newest server was seen to be durable.
	position atomic.Int64
	// watched is role, for those who are not the goroutine of run.
	watched atomic.Pointer[roleWatch]
	guards  atomic.Pointer[lease] // lease, likewise
	// samplerPoked, of capacity 1, has the server asked now for what is due.
	samplerPoked        chan struct{}
	metricsDue, loadDue atomic.Bool
	sampled             atomic.Pointer[watch.Process] // which was measured last
}

func (a *Agent) newWorker(id kurabe.InstanceID) *worker {
	w := &worker{agent: a, news: make(chan struct{}, 1), samplerPoked: make(chan struct{}, 1)}
	w.Unit = unit.New[kurabe.InstanceID, kurabe.Assignment, kurabe.InstanceReport](w, a.host, id, id.Ref(), logkey.Instance)
	return w
}

func (w *worker) Save(a kurabe.Assignment) error { return w.agent.save(a) }
func (w *worker) Forget() error                  { return w.agent.forget(w.ID) }

func (w *worker) Retires() {
	w.unfilter()
	w.agent.endpoints.Drop(w.ID)
	w.agent.exports.retire(w.ID)
}

// obeys: the endpoint is of whoever writes by now, and so are snapshots.
func (w *worker) Obeys(a kurabe.Assignment) {
	if err := w.filter(a); err != nil {
		w.Log.Error("security groups not enforced", logkey.Error, err) // the next pass tries again and reports
	}
	w.agent.endpoints.Claim(a)
	w.agent.snapshots.SourceChanged(a)
	w.agent.exports.obey(a)
}

// Unknown tells the user why nothing happens.
func (w *worker) Unknown(ctx context.Context, waiting kurabe.Assignment, waits bool) {
	if waits {
		w.report(ctx, waiting, engine.Observation{}, "", false)
	}
}

// End ends what looks at the server, and holds its address.
func (w *worker) End() {
	if w.role != nil {
		w.role.cancel()
	}
	if w.lease != nil {
		w.lease.cancel()
	}
	w.releaseReserved()
}

// wake makes the worker observe again, and report even while a step is under way.
func (w *worker) wake() {
	select {
	case w.news <- struct{}{}:
	default:
	}
	w.Wake()
}
