package agent

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
)

// Pauses after a failed step: the second try comes at once, then they double
// from the first to the most.
const (
	pauseFirst = 500 * time.Millisecond
	pauseMost  = 30 * time.Second
)

// A server that crashes again within crashCalm is restarted with the same
// growing pauses, so that it does not spin.
const crashCalm = time.Minute

// reportRetry is how soon a report that could not be delivered is tried again.
const reportRetry = time.Second

// worker drives one instance. Only its own goroutine acts on the instance.
type worker struct {
	agent  *Agent
	id     kurabe.InstanceID
	log    *slog.Logger
	signal chan struct{} // capacity 1: wake-ups melt together
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
	began    bool // a pass has had an assignment
	failure  *kurabe.Failure
	retryAt  time.Time // a failed step is not tried again before, whatever wakes us
	retryGen kurabe.Generation
	crashes  int       // in a row
	crashed  time.Time // newest crash seen
	reported kurabe.InstanceReport
	sent     bool
	watching string // process whose end wakes us
	unwatch  context.CancelFunc
	used     int64
	usedAt   time.Time // when used was measured
	usedFree int64     // free bytes of the disk at that moment
}

func newWorker(a *Agent, id kurabe.InstanceID) *worker {
	return &worker{
		agent: a, id: id, log: a.Log.With(logkey.Instance, id),
		signal: make(chan struct{}, 1), done: make(chan struct{}), looked: make(chan struct{}),
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
	w.wake()
}

// wake says "look again" and carries no data.
func (w *worker) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// retire has the worker leave; it may be asked twice.
func (w *worker) retire() {
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

// pass does steps until nothing is left to do or one fails, and returns when to
// look again.
func (w *worker) pass(ctx context.Context) time.Duration {
	for ctx.Err() == nil {
		a, known := w.assignment()
		if !known {
			w.unknown(ctx)
			return w.retryReport(w.agent.Look)
		}
		w.began = true
		// The end of a server that could not start wakes the worker too: only a new
		// assignment may cut the pause short.
		if rest := w.retryAt.Sub(w.agent.Now()); rest > 0 && w.retryGen == a.Generation {
			return rest
		}
		e, ok := w.agent.Engines[a.Engine]
		if !ok {
			return w.failed(ctx, a, engine.Observation{}, "find-engine", errors.New("engine "+string(a.Engine)+" is not offered by this host"))
		}
		o, err := e.Observe(ctx, a)
		if err != nil {
			return w.failed(ctx, a, o, "observe", err)
		}
		w.watch(ctx, o)
		steps := e.Steps(a, o)
		if len(steps) == 0 {
			return w.satisfied(ctx, a, o)
		}
		if pause := w.crashPause(steps[0].Name, o); pause > 0 {
			w.report(ctx, a, o, string(steps[0].Name), false)
			return pause
		}
		w.report(ctx, a, o, string(steps[0].Name), false)
		if err := w.step(ctx, a, steps[0]); err != nil {
			if ctx.Err() != nil {
				return 0
			}
			if errors.Is(err, errCut) {
				continue
			}
			return w.failed(ctx, a, o, string(steps[0].Name), err)
		}
		// A server that starts and then does not come up fails at a later step each
		// time: the streak ends only when that step itself succeeds.
		if w.failure != nil && w.failure.Step == string(steps[0].Name) {
			w.failure = nil
		}
	}
	return 0
}

// errCut says that a newer assignment ended the step.
var errCut = errors.New("cut short by a newer assignment")

// step does one step; faultPoint is where tests end the service.
func (w *worker) step(ctx context.Context, a kurabe.Assignment, s engine.Step) error {
	began := w.agent.Now()
	stepCtx, cut := context.WithCancelCause(ctx)
	w.mu.Lock()
	if w.have.Generation != a.Generation {
		w.mu.Unlock()
		cut(nil)
		return errCut
	}
	w.cut = func() { cut(errCut) }
	w.mu.Unlock()
	faultPoint("before", string(s.Name))
	err := s.Do(stepCtx)
	faultPoint("after", string(s.Name))
	w.mu.Lock()
	w.cut = nil
	w.mu.Unlock()
	if err != nil && context.Cause(stepCtx) == errCut {
		err = errCut
	}
	cut(nil)
	if err == nil {
		w.log.Info("step done", logkey.Step, s.Name, logkey.Generation, a.Generation, logkey.DurationMS, w.agent.Now().Sub(began).Milliseconds())
	}
	return err
}

// satisfied: the assignment is true.
func (w *worker) satisfied(ctx context.Context, a kurabe.Assignment, o engine.Observation) time.Duration {
	w.failure = nil
	if a.Goal == kurabe.GoalAbsent {
		w.report(ctx, a, o, "", true)
		if err := w.agent.forget(a.Instance); err != nil {
			return w.failed(ctx, a, o, "forget-assignment", err)
		}
		return w.retryReport(w.agent.Look)
	}
	if t, ok := w.agent.Engines[a.Engine].(tidier); ok {
		if err := t.Tidy(ctx, a); err != nil && ctx.Err() == nil {
			w.log.Warn("logs not tidied", logkey.Error, err)
		}
	}
	w.measure(a)
	w.report(ctx, a, o, "", true)
	return w.retryReport(w.agent.Look)
}

// What an instance occupies is measured by a walk over its files, which is most
// of an idle service's work. While the free space of the disk has hardly moved,
// no instance can have grown, and the last figure holds.
const (
	usageMove = 64 << 20
	usageAge  = 10 * time.Minute
)

// measure learns what the instance occupies.
func (w *worker) measure(a kurabe.Assignment) {
	now, free := w.agent.Now(), int64(0)
	if w.agent.Free != nil {
		free = w.agent.Free()
	}
	if moved := free - w.usedFree; w.agent.Free != nil && moved < usageMove && moved > -usageMove && now.Sub(w.usedAt) < usageAge {
		return
	}
	if used, err := w.agent.Usage(a.Instance); err == nil {
		w.used, w.usedAt, w.usedFree = used, now, free
	}
}

// tidier is an engine that keeps its logs in bounds.
type tidier interface {
	Tidy(ctx context.Context, a kurabe.Assignment) error
}

// retryReport shortens a pause while the newest report is not delivered.
func (w *worker) retryReport(pause time.Duration) time.Duration {
	if !w.sent {
		return min(pause, reportRetry)
	}
	return pause
}

// failed notes a failed step and returns when to try again. A wake-up comes
// sooner: a new assignment may be the cure.
func (w *worker) failed(ctx context.Context, a kurabe.Assignment, o engine.Observation, step string, err error) time.Duration {
	kind, message := kurabe.FailureOther, err.Error()
	var start *engine.StartError
	if errors.As(err, &start) {
		kind, message = start.Kind, start.Message
	}
	attempts := 1
	if w.failure != nil && w.failure.Step == step && w.reported.Generation == a.Generation {
		attempts = w.failure.Attempts + 1
	}
	w.failure = &kurabe.Failure{Kind: kind, Step: step, Message: message, Attempts: attempts, At: w.agent.Now().UTC()}
	w.log.Warn("step failed and is tried again", logkey.Step, step, logkey.Generation, a.Generation, "attempts", attempts, logkey.Error, err)
	w.report(ctx, a, o, step, false)
	pause := backoff(attempts - 1)
	w.retryAt, w.retryGen = w.agent.Now().Add(pause), a.Generation
	return w.retryReport(pause)
}

// backoff is the pause before try n+1, with jitter so that many instances do
// not act as one.
func backoff(n int) time.Duration {
	if n <= 0 {
		return pauseFirst / 5
	}
	pause := pauseFirst << min(n-1, 10)
	pause = min(pause, pauseMost)
	return pause/2 + rand.N(pause/2)
}

// crashPause says how long to hold back a restart: not at all after the first
// crash, longer with each one that follows soon.
func (w *worker) crashPause(next engine.StepName, o engine.Observation) time.Duration {
	if next != engine.StepNoteCrash {
		return 0
	}
	now := w.agent.Now()
	if now.Sub(w.crashed) > crashCalm {
		w.crashes = 0
	}
	if w.crashes > 0 {
		until := w.crashed.Add(min(pauseFirst<<min(w.crashes, 10), pauseMost))
		if now.Before(until) {
			return until.Sub(now)
		}
	}
	w.crashes++
	w.crashed = now
	return 0
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
			w.wake()
		}
	}()
}

// report tells the planner what is seen, when it differs from what it was told.
func (w *worker) report(ctx context.Context, a kurabe.Assignment, o engine.Observation, step string, done bool) {
	r := kurabe.InstanceReport{
		Host: w.agent.Host, Instance: w.id, Generation: a.Generation, Done: done, Step: step, Failure: w.failure,
		Running: o.Running, PID: o.PID, Boot: o.Boot, StartedAt: o.StartedAt.UTC(), EngineVersion: a.Version,
		Absent:  done && a.Goal == kurabe.GoalAbsent,
		Crashes: o.Applied.Crashes, LastCrash: o.Applied.LastCrash, OOMKills: o.OOMKills,
		UsedBytes: w.used, CertificateExpiresAt: o.CertificateExpires,
	}
	defer w.look()
	w.mu.Lock()
	if w.refused != nil {
		// The newer one is what the user waits for.
		r.Generation, r.Failure, r.Done, r.Absent = w.waiting.Generation, w.refused, false, false
	}
	w.mu.Unlock()
	if w.sent && sameNews(w.reported, r) {
		return
	}
	w.reported = r
	err := w.agent.Link.PutReport(ctx, r)
	w.sent = err == nil
	if err != nil && ctx.Err() == nil {
		w.log.Warn("report not delivered", logkey.Error, err)
	}
}

// look notes that the instance was looked at. Only this goroutine calls it.
func (w *worker) look() {
	select {
	case <-w.looked:
	default:
		close(w.looked)
	}
}

// usageNews is how much the occupied space must change to be worth a report.
const usageNews = 16 << 20

// sameNews says whether two reports tell the same. Steps in between are not
// news: a creation would write a dozen records.
func sameNews(a, b kurabe.InstanceReport) bool {
	if diff := a.UsedBytes - b.UsedBytes; diff < usageNews && diff > -usageNews && (a.UsedBytes == 0) == (b.UsedBytes == 0) {
		b.UsedBytes = a.UsedBytes
	}
	if a.Failure != nil && b.Failure != nil && a.Failure.Attempts >= maxAttemptsNews {
		f := *b.Failure
		f.At, f.Attempts = a.Failure.At, a.Failure.Attempts
		b.Failure = &f
	}
	a.Step, b.Step = "", ""
	return reflect.DeepEqual(a, b)
}

// maxAttemptsNews is from which try on a failure with the same words is no news.
const maxAttemptsNews = 10
