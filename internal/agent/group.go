package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
)

// roleWatch looks at one process of a server of a group until it is cancelled. The worker
// begins and ends it and reads what it has seen, and waits for it never: the server may
// hang.
type roleWatch struct {
	worker  *worker
	engine  engine.Engine
	pid     int
	process string // its identity, see engine.Observation
	cancel  context.CancelFunc
	poked   chan struct{} // capacity 1: look now
	proves  atomic.Bool   // its followers are to be asked whether they follow now

	// The session belongs to the goroutine of run.
	session engine.Watcher // nil: none is open
	of      kurabe.Role    // of the assignment that it was opened with

	mu    sync.Mutex // guards the rest
	sight sight
	waits *kurabe.ServerWaits // as counted last; nil: not yet
	// done is what the server was made to do; turn rises when that changes, so that a look
	// which was under way meanwhile is held against nothing.
	done settled
	turn int
	// silent are the followers that are not heard, heard says that the service was since they
	// are just these; await ends the wait for that.
	silent []kurabe.InstanceID
	heard  bool
	await  context.CancelFunc
}

// watchRole has a running server of a group looked at, and no other, and adds what was
// seen to an observation. Only the worker's goroutine calls it.
func (w *worker) watchRole(ctx context.Context, a kurabe.Assignment, o *engine.Observation) {
	w.keepWatch(ctx, a, *o)
	if w.role == nil {
		return
	}
	w.role.settle(settled{o.WaitsFor(), o.SeenTo()})
	o.Role, o.Covered = w.role.view(), w.role.report(a.Role.Followers).Covered
}

func (w *worker) keepWatch(ctx context.Context, a kurabe.Assignment, o engine.Observation) {
	process := ""
	if a.Role != nil && o.Running {
		process = o.Process
	}
	if w.role != nil && w.role.process != process {
		w.role.cancel()
		w.role = nil
		w.watched.Store(nil)
	}
	if w.role != nil || process == "" {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	g := &roleWatch{worker: w, engine: w.agent.Engines[a.Engine], pid: o.PID, process: process, cancel: cancel, poked: make(chan struct{}, 1)}
	w.role = g
	w.watched.Store(g)
	w.agent.wait.Go(func() { g.run(ctx) })
	w.agent.wait.Go(func() { g.countWaits(ctx) })
}

// run looks until ctx ends, and tells the worker of what matters.
func (g *roleWatch) run(ctx context.Context) {
	defer g.close()
	var told roleNews
	for {
		began := g.worker.agent.Now()
		g.look(ctx)
		if ctx.Err() != nil {
			return
		}
		if news := g.news(); !reflect.DeepEqual(news, told) {
			told = news
			g.worker.stir()
		}
		timer := time.NewTimer(lookEvery - g.worker.agent.Now().Sub(began))
		select {
		case <-ctx.Done():
		case <-g.poked:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// poke has the next look come at once: something was done to the server.
func (g *roleWatch) poke() {
	select {
	case g.poked <- struct{}{}:
	default:
	}
}

// look asks once.
func (g *roleWatch) look(ctx context.Context) {
	a, _ := g.worker.assignment()
	if a.Role == nil {
		return // the worker is about to end this
	}
	if stopped(g.pid, g.process) {
		g.note(func(s *sight, now time.Time) { s.unanswered(now) })
		return
	}
	g.mu.Lock()
	done, turn, limit := g.done, g.turn, g.sight.limit(g.worker.agent.Now())
	var ended int64
	if g.waits != nil {
		ended = g.waits.Sum()
	}
	g.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	view, err := g.ask(limited, a)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		g.feed(ctx, a, view.Asks)
		g.note(func(s *sight, now time.Time) {
			if g.turn != turn {
				done = settled{}
			}
			s.answered(now, view, done)
			s.ended(ended, view)
		})
		g.confirm(ctx, a.Role.Followers)
	case limited.Err() != nil, errors.Is(err, syscall.EAGAIN):
		// EAGAIN: nobody takes the sessions that wait at the socket already.
		g.close()
		g.note(func(s *sight, now time.Time) { s.unanswered(now) })
	default:
		g.close()
		g.worker.log.Debug("server not looked at", logkey.Error, err)
		g.note(func(s *sight, now time.Time) { s.refused(now) })
	}
}

// ask looks over the session, which is opened when there is none, or when the server is to
// do something else or to follow another one. It is kept otherwise: how long a follower has
// said nothing is known over one session.
func (g *roleWatch) ask(ctx context.Context, a kurabe.Assignment) (engine.RoleView, error) {
	if g.session != nil && (g.of.Duty != a.Role.Duty || !sameMembers(g.of.Followers, a.Role.Followers) || !reflect.DeepEqual(g.of.Source, a.Role.Source)) {
		g.close()
	}
	if g.session == nil {
		s, err := g.engine.OpenWatch(ctx, a)
		if err != nil {
			return engine.RoleView{}, err
		}
		g.session, g.of = s, *a.Role
	}
	if p, can := g.session.(engine.Prover); can {
		p.Prove(g.proves.Load())
	}
	return g.session.Look(ctx)
}

// close ends the session without waiting: a server that hangs says no goodbye.
func (g *roleWatch) close() {
	if g.session != nil {
		g.worker.agent.wait.Go(g.session.Close)
		g.session = nil
	}
}

func (g *roleWatch) note(change func(s *sight, now time.Time)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.sight, g.worker.agent.Now())
}

// settle says what the server was made to do by now. What others lacked before is forgotten
// when it waits for others.
func (g *roleWatch) settle(done settled) {
	g.mu.Lock()
	defer g.mu.Unlock()
	waits, slots := sameMembers(done.waits, g.done.waits), sameMembers(done.slots, g.done.slots)
	if waits && slots {
		return
	}
	g.done = done
	g.turn++
	if !waits {
		g.sight.marked, g.sight.mark = nil, 0
	}
	g.poke()
}

// prove has the followers of a running writer asked whether they follow at this moment, or
// not any more.
func (w *worker) prove(on bool) {
	if g := w.watched.Load(); g != nil && g.proves.Swap(on) != on && on {
		g.poke()
	}
}

// vouchedAt is a moment at which one of those whom the writer waits for is known to have
// followed it, 0 without one.
func (w *worker) vouchedAt() int64 {
	a, _ := w.assignment()
	g := w.watched.Load()
	if g == nil || a.Role == nil || len(a.Role.WaitFor) == 0 {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sight.followedAt(a.Role.WaitFor)
}

// hangs says whether the server is one that does not answer any more.
func (w *worker) hangs() bool {
	g := w.watched.Load()
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sight.stuck()
}

// view is the newest answer, nil without one to go by.
func (g *roleWatch) view() *engine.RoleView {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sight.current(g.worker.agent.Now())
}

func (g *roleWatch) report(followers []kurabe.InstanceID) kurabe.RoleReport {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.sight.report(g.worker.agent.Now(), followers)
	r.Waits = g.waitsReport()
	r.Unheard = g.unheardLocked(r.Silent)
	return r
}

// hanging are those of some followers that are connected and say nothing. A writer that stops
// sends its followers away when they have everything: that they are gone is no silence.
func (g *roleWatch) hanging(ids []kurabe.InstanceID) []kurabe.InstanceID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sight.hanging(ids)
}

// reached says whether a follower has as much of its log for good as its role asks for.
func (g *roleWatch) reached(r kurabe.Role) bool {
	v := g.view()
	return v != nil && !v.Writing && r.Reach > 0 && v.Kept >= r.Reach
}

// roleNews is what the worker looks again for.
type roleNews struct {
	report    kurabe.RoleReport // without the value of Position, which moves all the time
	seen      bool
	paused    bool
	reached   bool // Role.Reach
	streaming map[kurabe.InstanceID]bool
}

func (g *roleWatch) news() roleNews {
	a, _ := g.worker.assignment()
	if a.Role == nil {
		return roleNews{}
	}
	n := roleNews{report: g.report(a.Role.Followers), streaming: map[kurabe.InstanceID]bool{}}
	n.report.Position = min(n.report.Position, 1) // that it is known is news
	n.reached = g.reached(*a.Role)
	if v := g.view(); v != nil {
		n.seen, n.paused = true, v.Paused
		for id, f := range v.Followers {
			n.streaming[id] = f.Streaming
		}
	}
	return n
}

// stopped says whether a process is in the state T, in which a signal has put it: there is
// no need to ask it. One that has the pid of another is not.
func stopped(pid int, process string) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// Fields 3 and 22 of proc(5); the command's name, which ends at the last ), may hold
	// anything.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	const stateField, startField = 0, 22 - 3
	return len(fields) > startField && fields[stateField] == "T" && fmt.Sprintf("%d@%s", pid, fields[startField]) == process
}
