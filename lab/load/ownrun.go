package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"kurabe/lab/load/script"
	"kurabe/lab/study"
)

const (
	// connectMax bounds the opening of one session of a worker.
	connectMax = 10 * time.Second
	// openersMax sessions are opened at a time: a server answers a crowd at the door with
	// errors that it would not give to a queue.
	openersMax = 16
	// drainMax is how long a run waits for answers after its end.
	drainMax = 10 * time.Second
)

// ownRun is one run of the own generator.
type ownRun struct {
	*scriptsOf
	ctx    context.Context // ends the opening of sessions
	opener opener
	start  time.Time
	tally  *tally
	until  atomic.Int64 // ns after the start: nothing is sent from here on

	drain    time.Duration // for answers, after the end
	arrivals *arrivals     // nil but for open load
	series   *series       // nil but for a series
	workers  []*worker
	loops    []*loop // none but in patient runs

	failed chan error // the first error of a worker
	wait   sync.WaitGroup
}

// scriptsOf is what a run's workers do; it does not change.
type scriptsOf struct {
	scripts    *script.Set
	connect    bool
	firstLabel int
	scale      int64
	seed       uint64
}

// series counts down the requests of a series.
type series struct {
	measuring atomic.Bool
	left      int // the one worker's
	done      chan struct{}
}

// take says whether there is one more to send, and whether it counts: those of the
// warm-up do not.
func (s *series) take() (more, counts bool) {
	if !s.measuring.Load() {
		return true, false
	}
	if s.left == 0 {
		close(s.done)
	}
	s.left--
	return s.left >= 0, true
}

// load runs the workload against the sessions that open gives.
func (g *own) load(ctx context.Context, open opener, o Options) (_ *Outcome, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &ownRun{
		scriptsOf: &scriptsOf{scripts: &g.scripts, connect: g.Connect, scale: int64(g.Scale), seed: o.Seed},
		ctx:       ctx, opener: open, drain: g.drain,
		tally:  newTally(len(g.labels()), g.Mode == study.ModeOpen),
		failed: make(chan error, 1),
	}
	r.until.Store(math.MaxInt64)
	if g.Connect {
		r.firstLabel = 1
	}
	switch g.Mode {
	case study.ModeOpen:
		r.arrivals = newArrivals(g.Rate, g.Arrival, o.Seed)
	case study.ModeSeries:
		r.series = &series{left: g.Requests, done: make(chan struct{})}
	}
	if g.patient() {
		if r.loops, err = newLoops(g.threads()); err != nil {
			return nil, err
		}
		defer closeLoops(r.loops)
	}
	defer func() {
		for _, w := range r.workers {
			w.leave()
		}
	}()
	if err := r.hire(ctx, g.Clients); err != nil {
		return nil, err
	}
	c := &course{ownRun: r, Options: o, labels: g.labels()}
	out, err := c.run(ctx)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// now is the time after the start, ns.
func (r *ownRun) now() int64 { return int64(time.Since(r.start)) }

// hire makes the workers and opens their sessions. None of it is measured.
func (r *ownRun) hire(ctx context.Context, clients int) error {
	for n := range clients {
		w, err := newWorker(r, n)
		if err != nil {
			return fmt.Errorf("client %d: %w", n+1, err)
		}
		r.workers = append(r.workers, w)
	}
	if r.connect {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	outer := r.ctx
	r.ctx = ctx
	defer func() { r.ctx = outer }()
	next := make(chan *worker)
	var opening sync.WaitGroup
	var once sync.Once
	var first error
	for range min(openersMax, clients) {
		opening.Go(func() {
			for w := range next {
				if err := w.open(); err != nil {
					once.Do(func() { first = fmt.Errorf("session %d: %w", w.id+1, err); cancel() })
				}
			}
		})
	}
	for _, w := range r.workers {
		if ctx.Err() != nil {
			break
		}
		next <- w
	}
	close(next)
	opening.Wait()
	if first == nil {
		first = ctx.Err()
	}
	return first
}

// begin starts the clock, the first phase and the workers.
func (r *ownRun) begin(phase string) {
	r.start = time.Now()
	r.tally.enter(phase, 0)
	for n := range r.loops {
		r.wait.Go(func() { r.fail(r.runLoop(n)) })
	}
	for _, w := range r.workers {
		if w.task == nil {
			r.wait.Go(func() { r.fail(w.run()) })
		}
	}
}

// runLoop is the thread of every so many-th worker.
func (r *ownRun) runLoop(number int) error {
	var tasks []*task
	var workers []*worker
	for n := number; n < len(r.workers); n += len(r.loops) {
		workers = append(workers, r.workers[n])
		tasks = append(tasks, r.workers[n].task)
	}
	return r.loops[number].run(tasks, func(n int) { r.fail(workers[n].run()) })
}

// fail keeps the first error of a worker.
func (r *ownRun) fail(err error) {
	if err == nil {
		return
	}
	select {
	case r.failed <- err:
	default: // another one was first
	}
}

// endAt sets the end of the load.
func (r *ownRun) endAt(at int64) {
	r.until.Store(at)
	if r.arrivals != nil {
		r.arrivals.until.Store(at)
	}
}

// finish waits for the workers, for drain if patient, and counts what nobody served.
func (r *ownRun) finish(ctx context.Context, patient bool) {
	done := make(chan struct{})
	go func() { r.wait.Wait(); close(done) }()
	if patient {
		for _, w := range r.workers {
			w.alarm.stop()
		}
		timer := time.NewTimer(r.drain)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	var leaving sync.WaitGroup
	select {
	case <-done:
	default:
		for _, w := range r.workers {
			leaving.Go(w.interrupt)
		}
	}
	<-done
	leaving.Wait()
	if r.arrivals == nil || !patient {
		return
	}
	var rest []sample
	for due, _, ok := r.arrivals.next(); ok; due, _, ok = r.arrivals.next() {
		if rest = append(rest, sample{due: due, kind: kindSkipped}); len(rest) == recorderSamples {
			r.tally.add(rest)
			rest = rest[:0]
		}
	}
	r.tally.add(rest)
}

// broken is the error that ends a run early, nil for none.
func (r *ownRun) broken(ctx context.Context) error {
	select {
	case err := <-r.failed:
		return err
	default:
	}
	if ctx.Err() != nil {
		return errors.Join(errInterrupted, ctx.Err())
	}
	return nil
}

var errInterrupted = errors.New("the load was interrupted")
