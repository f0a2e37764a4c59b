package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"kurabe/lab/load/script"
)

const (
	reconnectPauseMin = 10 * time.Millisecond
	reconnectPauseMax = time.Second
)

// errStopped ends a worker whose run has ended.
var errStopped = errors.New("the run has ended")

// worker is a client: it has one session and makes one transaction at a time.
type worker struct {
	*ownRun
	id     int
	record *recorder
	task   *task  // nil but in a loop
	alarm  *alarm // for what is due; stopped when the load ends
	nap    *alarm // for \sleep; stopped when the patience with the rest ends

	source *rand.PCG
	chance *rand.Rand
	vars   []int64
	spent  []sample // statements of the present transaction

	// own counts the transactions of load without a schedule.
	own    uint64
	pause  time.Duration // before the next attempt to connect
	mu     sync.Mutex    // guards session against interrupt
	sess   session
	broken bool // interrupt came; no session may be opened any more

	reconnects, refused int64
}

func newWorker(r *ownRun, id int) (*worker, error) {
	w := &worker{ownRun: r, id: id, record: newRecorder(r.tally), source: rand.NewPCG(0, 0), vars: make([]int64, len(r.scripts.Variables))}
	w.chance = rand.New(w.source)
	if len(r.loops) > 0 {
		w.task = &task{loop: r.loops[id%len(r.loops)]}
	}
	var err error
	if w.alarm, err = newAlarm(w.task); err != nil {
		return nil, err
	}
	if w.nap, err = newAlarm(w.task); err != nil {
		w.alarm.close()
		return nil, err
	}
	return w, nil
}

// run works until the load ends.
func (w *worker) run() error {
	defer w.record.flush()
	if err := w.enter(); err != nil && !w.interrupted() {
		return err
	}
	for {
		err := w.next()
		if errors.Is(err, errStopped) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (w *worker) next() error {
	w.task.pass()
	if w.interrupted() {
		return errStopped
	}
	if w.sess == nil && !w.connect {
		if err := w.reopen(); err != nil {
			return err
		}
	}
	if w.arrivals != nil {
		return w.arrival()
	}
	return w.turn()
}

// arrival serves the next one of the schedule.
func (w *worker) arrival() error {
	due, number, ok := w.arrivals.next()
	if !ok {
		return errStopped
	}
	late := w.now() - due
	if late > int64(queueMax) {
		w.record.add(sample{due: due, kind: kindSkipped})
		return nil
	}
	if late < 0 {
		if _, err := w.alarm.wait(time.Duration(-late)); err != nil {
			return err
		}
		// One that was stopped a moment before its end is due all the same.
		if due >= w.until.Load() {
			return errStopped
		}
		if w.interrupted() {
			w.record.add(sample{due: due, kind: kindSkipped})
			return errStopped
		}
		w.record.add(sample{due: due, value: w.now() - due, kind: kindLag})
	}
	w.source.Seed(w.seed, mix(number))
	return w.transaction(due)
}

// turn makes one transaction of load that has no schedule.
func (w *worker) turn() error {
	now := w.now()
	if now >= w.until.Load() {
		return errStopped
	}
	if w.series != nil {
		more, counts := w.series.take()
		if !more {
			return errStopped
		}
		if !counts {
			now = 0 // of the warm-up, also when it ends meanwhile
		}
	}
	w.source.Seed(w.seed, mix(uint64(w.id)<<32^w.own))
	w.own++
	return w.transaction(now)
}

// transaction makes one, due at a time, and records it. An error is the run's: what the
// server answers is counted.
func (w *worker) transaction(due int64) error {
	sent := w.now()
	w.spent = w.spent[:0]
	err := w.attempt()
	done := w.now()
	var wrong *scriptError
	switch {
	case err == nil:
		w.record.add(sample{due: due, at: done, value: done - due, kind: kindAnswer})
		w.record.add(sample{due: due, value: done - sent, kind: kindService})
		w.record.answered.Add(1)
	case errors.As(err, &wrong):
		return err
	default:
		w.failed(due, err)
	}
	for _, s := range w.spent {
		s.due = due
		w.record.add(s)
	}
	if !w.connect {
		return nil
	}
	if w.sess == nil {
		w.refused++
		return w.rest()
	}
	w.pause = 0
	w.drop()
	return nil
}

// failed counts, and makes the session good again or gives it up.
func (w *worker) failed(due int64, err error) {
	what := code(err)
	if w.interrupted() {
		what = codeUnanswered
	}
	w.tally.fail(due, what, err)
	if w.sess == nil || w.connect {
		return
	}
	if w.sess.lost() || w.sess.rollback() != nil || w.sess.lost() {
		w.drop()
	}
}

// attempt makes the commands of a transaction one after the other.
func (w *worker) attempt() error {
	if w.connect {
		start := w.now()
		if err := w.open(); err != nil {
			return err
		}
		w.spent = append(w.spent, sample{value: w.now() - start, kind: kindStatement})
	}
	w.vars[0], w.vars[1] = w.scale, int64(w.id)
	for _, c := range w.pick().Commands {
		if err := w.command(&c); err != nil {
			return err
		}
	}
	return nil
}

// pick draws one of the workload's transactions by weight.
func (w *worker) pick() *script.Script {
	all := w.scripts.List
	if len(all) == 1 {
		return &all[0]
	}
	n := w.chance.IntN(w.scripts.Weights)
	for i := range all {
		if n -= all[i].Weight; n < 0 {
			return &all[i]
		}
	}
	return &all[len(all)-1]
}

// scriptError is a mistake of the script that only shows when it runs. The run ends.
type scriptError struct {
	line int
	err  error
}

func (e *scriptError) Error() string { return fmt.Sprintf("script, line %d: %v", e.line, e.err) }
func (e *scriptError) Unwrap() error { return e.err }

func (w *worker) command(c *script.Command) error {
	switch {
	case c.Set != nil:
		v, err := c.Set.Value(w.vars, w.chance)
		if err != nil {
			return &scriptError{c.Line, err}
		}
		w.vars[c.Target] = v
	case c.Sleep != nil:
		v, err := c.Sleep.Value(w.vars, w.chance)
		if err != nil {
			return &scriptError{c.Line, err}
		}
		if v < 0 || v > int64(script.SleepMax/c.Unit) {
			return &scriptError{c.Line, fmt.Errorf(`\sleep: %d is not between 0 and %s`, v, script.SleepMax)}
		}
		if ok, err := w.nap.wait(time.Duration(v) * c.Unit); err != nil || !ok {
			return errors.Join(err, errStopped)
		}
	default:
		start := w.now()
		if err := w.sess.do(c.Statement, w.vars); err != nil {
			return err
		}
		w.spent = append(w.spent, sample{value: w.now() - start, kind: kindStatement + w.firstLabel + c.Statement.Index})
	}
	return nil
}

// open begins a session.
func (w *worker) open() error {
	ctx, cancel := context.WithTimeout(w.ctx, connectMax)
	defer cancel()
	var s session
	var err error
	w.task.outside(func() { s, err = w.opener(ctx) })
	if err != nil {
		return err
	}
	if err := w.keep(s); err != nil {
		return err
	}
	return w.enter()
}

// enter makes a session, if there is one, the task's that runs.
func (w *worker) enter() error {
	if w.sess == nil || w.task == nil || !w.task.inside {
		return nil
	}
	return w.sess.enter(w.task)
}

// keep takes a new session.
func (w *worker) keep(s session) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		w.task.outside(s.close)
		return errStopped
	}
	w.sess = s
	return nil
}

// reopen opens a session in place of one that was lost, with growing pauses, until the
// load ends.
func (w *worker) reopen() error {
	for {
		if w.now() >= w.until.Load() || w.interrupted() {
			return errStopped
		}
		err := w.open()
		if err == nil {
			w.pause = 0
			w.reconnects++
			return nil
		}
		w.refused++
		if err := w.rest(); err != nil {
			return err
		}
	}
}

// rest pauses before the next attempt to connect.
func (w *worker) rest() error {
	w.pause = min(max(2*w.pause, reconnectPauseMin), reconnectPauseMax)
	ok, err := w.alarm.wait(w.pause)
	if err == nil && !ok {
		err = errStopped
	}
	return err
}

// drop closes the session.
func (w *worker) drop() {
	w.mu.Lock()
	s := w.sess
	w.sess = nil
	w.mu.Unlock()
	if s != nil {
		s.leave()
		w.task.outside(s.close)
	}
}

// interrupt ends whatever the worker does. Another goroutine calls it.
func (w *worker) interrupt() {
	w.alarm.stop()
	w.nap.stop()
	w.mu.Lock()
	s := w.sess
	w.broken = true
	w.mu.Unlock()
	if s != nil {
		s.interrupt()
	}
}

func (w *worker) interrupted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken || w.task != nil && w.task.lost
}

// leave gives back what the worker has, after its run.
func (w *worker) leave() {
	w.drop()
	w.alarm.close()
	w.nap.close()
}
