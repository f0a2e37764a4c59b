package agent

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kurabe"
	"kurabe/internal/agent/replication"
	"kurabe/internal/agent/watch"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
)

// roleWatch looks at one process of a server until its watch ends. The worker begins and ends
// it and reads what it has seen, and waits for it never: the server may hang.
type roleWatch struct {
	worker  *worker
	engine  engine.Engine
	process string // its identity, see engine.Observation
	alone   bool   // it is in no group: all that is asked is whether it answers
	cancel  context.CancelFunc
	poked   chan struct{} // capacity 1: look now
	proves  atomic.Bool   // its followers are to be asked whether they follow now
	told    roleNews      // of the goroutine that looks

	mu    sync.Mutex // guards the rest
	state replication.State
	waits *kurabe.ServerWaits // as counted last; nil: not yet
	// done is what the server was made to do; turn rises when that changes, so that a look
	// which was under way meanwhile is held against nothing.
	done replication.InForce
	turn int
	// silent are the followers that are not heard, heard says that the service was since they
	// are just these; await ends the wait for that.
	silent []kurabe.InstanceID
	heard  bool
	await  context.CancelFunc
}

// observeRole adds the observed role of a running server to an observation. Only the worker's
// goroutine calls it.
func (w *worker) observeRole(ctx context.Context, a kurabe.Assignment, o *engine.Observation) {
	w.keepWatch(ctx, a, *o)
	if w.role == nil || w.role.alone {
		return
	}
	w.role.noteInForce(replication.InForce{WaitsFor: o.WaitsFor(), Slots: o.SeenTo()})
	o.Role, o.Covered = w.role.view(), w.role.report(a.Role.Followers).CaughtUp
}

// keepWatch watches one process, and by another watch once the server is in a group or in none.
func (w *worker) keepWatch(ctx context.Context, a kurabe.Assignment, o engine.Observation) {
	process := ""
	if o.Running {
		process = o.Process
	}
	if w.role != nil && (w.role.process != process || w.role.alone != (a.Role == nil)) {
		w.role.cancel()
		w.role = nil
		w.watched.Store(nil)
	}
	if w.role != nil || process == "" {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	g := &roleWatch{worker: w, engine: w.agent.Engines[a.Engine], process: process, alone: a.Role == nil, cancel: cancel, poked: make(chan struct{}, 1)}
	g.state.Alone = g.alone
	every, _ := g.state.Pace()
	watch.Subscribe(ctx, w.process(o, nil), watch.Purpose[engine.Watcher]{
		Every: every, Limit: g.limit, Poked: g.poked, For: g.shape, Failed: g.failed,
		Open: func(asking context.Context) (engine.Watcher, error) {
			a, _ := w.Assignment()
			return g.engine.OpenWatch(asking, a)
		},
		Ask: func(asking context.Context, s engine.Watcher) error { return g.look(ctx, asking, s) },
	})
	w.role = g
	w.watched.Store(g)
	if w.agent.Series != nil {
		w.subscribeSampler(ctx, g.engine, o)
	}
	if !g.alone {
		w.agent.host.Wait.Go(func() { g.countWaits(ctx) })
	}
	if o.Wait != nil {
		w.agent.host.Wait.Go(func() {
			if o.Wait(ctx) == nil {
				w.wake()
			}
		})
	}
}

// process is that of the newest observation, as its subscribers need it.
func (w *worker) process(o engine.Observation, hangs func() bool) watch.Process {
	return watch.Process{PID: o.PID, Name: o.Process, Wait: &w.agent.host.Wait, Hangs: hangs}
}

// poke has the next look come at once: something was done to the server.
func (g *roleWatch) poke() {
	select {
	case g.poked <- struct{}{}:
	default:
	}
}

func (g *roleWatch) limit() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state.Limit(g.worker.agent.Now())
}

// shape is what of an assignment a session is opened for. It is kept otherwise: how long a
// follower has said nothing is known over one session.
func (g *roleWatch) shape() any {
	a, _ := g.worker.Assignment()
	if a.Role == nil {
		return nil
	}
	return kurabe.Role{Duty: a.Role.Duty, Followers: slices.Sorted(slices.Values(a.Role.Followers)), Source: a.Role.Source}
}

// look asks once; ctx lasts as long as the watch.
func (g *roleWatch) look(ctx, asking context.Context, session engine.Watcher) error {
	a, _ := g.worker.Assignment()
	if g.alone != (a.Role == nil) {
		return nil // the worker is about to end this
	}
	g.mu.Lock()
	done, turn := g.done, g.turn
	var ended int64
	if g.waits != nil {
		ended = g.waits.Sum()
	}
	g.mu.Unlock()
	if p, can := session.(engine.Prover); can {
		p.Prove(g.proves.Load())
	}
	view, err := session.Look(asking)
	if err != nil {
		return err
	}
	g.pushClones(ctx, a, view.Asks)
	g.note(func(s *replication.State, now time.Time) {
		if g.turn != turn {
			done = replication.InForce{}
		}
		s.Answered(now, view, done)
		s.Ended(ended, view)
	})
	if !g.alone {
		g.confirmServiceHeard(ctx, a.Role.Followers)
	}
	g.wakeWorker()
	return nil
}

// failed takes in that a look has shown nothing.
func (g *roleWatch) failed(err error) {
	g.note(func(s *replication.State, now time.Time) {
		if errors.Is(err, watch.ErrUnanswered) {
			s.Unanswered(now)
			return
		}
		g.worker.Log.Debug("server's role not observed", logkey.Error, err)
		s.Refused(now)
	})
	g.wakeWorker()
}

// wakeWorker wakes the worker with important news.
func (g *roleWatch) wakeWorker() {
	if news := g.news(); !reflect.DeepEqual(news, g.told) {
		g.told = news
		g.worker.wake()
	}
}

func (g *roleWatch) note(change func(s *replication.State, now time.Time)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.state, g.worker.agent.Now())
}

// noteInForce notes which orders the server obeys by now. What followers lacked before is
// forgotten when the server waits for other followers.
func (g *roleWatch) noteInForce(done replication.InForce) {
	g.mu.Lock()
	defer g.mu.Unlock()
	waits, slots := replication.SameMembers(done.WaitsFor, g.done.WaitsFor), replication.SameMembers(done.Slots, g.done.Slots)
	if waits && slots {
		return
	}
	g.done = done
	g.turn++
	if !waits {
		g.state.Unmark()
	}
	g.poke()
}

// setProving turns on or off the question to the followers of a running primary whether they
// follow now.
func (w *worker) setProving(on bool) {
	if g := w.watched.Load(); g != nil && g.proves.Swap(on) != on && on {
		g.poke()
	}
}

// vouchedAt is a moment at which one of those whom the primary waits for is known to have
// followed it, 0 without one.
func (w *worker) vouchedAt() int64 {
	a, _ := w.Assignment()
	g := w.watched.Load()
	if g == nil || a.Role == nil || len(a.Role.WaitFor) == 0 {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state.FollowedAt(a.Role.WaitFor)
}

// hangs says whether the server is one that does not answer any more.
func (w *worker) hangs() bool {
	g := w.watched.Load()
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state.Stuck()
}

// answering is since when the server does not answer any more, zero where that is not so, and
// whether it does. Neither is known at first.
func (g *roleWatch) answering() (mute time.Time, answers bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state.Mute()
}

// answers says whether a server may be asked although nothing waits for it: one that hangs, or
// that no look has shown yet, would hold up its worker.
func (w *worker) answers() bool {
	if w.role == nil {
		return true
	}
	_, answers := w.role.answering()
	return answers
}

// view is the newest answer, nil without one to go by.
func (g *roleWatch) view() *engine.RoleView {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state.Current(g.worker.agent.Now())
}

func (g *roleWatch) report(followers []kurabe.InstanceID) kurabe.RoleReport {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.state.Report(g.worker.agent.Now(), followers)
	r.Waits = g.waitsReport()
	r.CutOff = g.unheardLocked(r.SilentFollowers)
	return r
}

// hanging are those of some followers that are connected and say nothing. A primary that stops
// sends its followers away when they have everything: that they are gone is no silence.
func (g *roleWatch) hanging(ids []kurabe.InstanceID) []kurabe.InstanceID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state.Hanging(ids)
}

// reached says whether a follower has as much of its log for good as its role asks for.
func (g *roleWatch) reached(r kurabe.Role) bool {
	v := g.view()
	return v != nil && !v.Writing && r.SourceEnd > 0 && v.Kept >= r.SourceEnd
}

// roleNews is what the worker looks again for.
type roleNews struct {
	report    kurabe.RoleReport // without the value of Position, which moves all the time
	seen      bool
	paused    bool
	reached   bool // Role.SourceEnd
	streaming map[kurabe.InstanceID]bool
	mute      time.Time
	answers   bool
}

func (g *roleWatch) news() roleNews {
	a, _ := g.worker.Assignment()
	mute, answers := g.answering()
	if a.Role == nil || g.alone {
		return roleNews{mute: mute, answers: answers}
	}
	n := roleNews{mute: mute, answers: answers, report: g.report(a.Role.Followers), streaming: map[kurabe.InstanceID]bool{}}
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
