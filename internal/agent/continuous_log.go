package agent

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/agent/watch"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
)

// OpenLog looks at the log of a running server.
type OpenLog func(context.Context) (engine.Log, error)

// Logs keeps the continuous logs of the host's instances. The servers of one instance
// have one log: that of whoever writes.
type Logs interface {
	// Follow keeps the log of an instance, as server writes it, until ctx ends, through
	// crashes and restarts of that; what breaks is part of what Log says. While another
	// Follow of that instance goes on, it waits for its end.
	Follow(ctx context.Context, id, server kurabe.InstanceID, open OpenLog) error
	// Finish keeps all of the log that the server has by now, for an instance that goes.
	Finish(ctx context.Context, id, server kurabe.InstanceID, open OpenLog) error
	// End ends the run that goes on: what is followed later is another one.
	End(id kurabe.InstanceID, reason string) error
	// Trim removes what nobody needs who restores from the snapshot of keepSince on,
	// Remove everything.
	Trim(ctx context.Context, id kurabe.InstanceID, keepSince time.Time) error
	Remove(ctx context.Context, id kurabe.InstanceID) error
	// Adopt keeps the log that other hosts brought into the repository and that goes with a
	// snapshot which was imported: nobody else keeps it.
	Adopt(ctx context.Context, id kurabe.InstanceID, takenAt time.Time, from kurabe.LogPosition) error
	// Elsewhere is up to where other hosts' log of an instance is in a repository that this
	// host reads too, false where there is none. It lists the repository.
	Elsewhere(ctx context.Context, id kurabe.InstanceID) (kurabe.LogPosition, bool, error)
	// Log says what there is of one instance, All of every one. Both are quick.
	Log(id kurabe.InstanceID) (kurabe.InstanceLog, bool)
	All() []kurabe.InstanceLog
}

const (
	// logReport is how often the logs are told of. A mark is made at each full second,
	// so that one made soon after is told while it is fresh.
	logReport      = 2 * time.Second
	logReportAfter = 400 * time.Millisecond
	trimEvery      = time.Minute
	finishLimit    = 30 * time.Second
)

// follower follows the log of one instance.
type follower struct {
	cancel context.CancelFunc
	done   chan struct{}
	ending bool // it was cancelled, and nobody waits for its end
}

// keepLog follows the log of a server that serves, if it is to be kept, or ends that.
// Only the worker's goroutine calls it.
func (w *worker) keepLog(ctx context.Context, a kurabe.Assignment, o engine.Observation) {
	if w.agent.Logs == nil {
		return
	}
	e := w.agent.Engines[a.Engine]
	w.dropEndedFollower()
	w.holdLog(ctx, e, a, o)
	switch {
	case a.Goal == kurabe.GoalAbsent:
		w.finishLog(ctx, e, a)
	case a.Goal != kurabe.GoalRunning:
		w.unfollow()
	case w.losesLog(a, o):
		w.unfollowAside()
		w.endLog(a)
	case a.Log && w.follower == nil && w.hasLog(a, o):
		w.follow(ctx, e)
	case !a.Log && (a.Role == nil || w.servesClients(a, o)):
		// All that this can come back with is that it was cut.
		_ = w.upkeep(ctx, a, "drop-log", func(ctx context.Context) error {
			w.unfollow()
			w.dropLog(ctx, e, a, o)
			return nil
		})
	}
}

// hasLog says whether the server is the one whose log is the instance's.
func (w *worker) hasLog(a kurabe.Assignment, o engine.Observation) bool {
	if a.Role == nil {
		return o.Serving()
	}
	return w.servesClients(a, o)
}

// losesLog says whether it is not, for sure: one that was not asked yet may be.
func (w *worker) losesLog(a kurabe.Assignment, o engine.Observation) bool {
	if a.Role == nil {
		return false
	}
	return !a.Writes() || !o.Running || o.Role != nil && !w.servesClients(a, o)
}

func (w *worker) follow(ctx context.Context, e engine.Engine) {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{cancel: cancel, done: make(chan struct{})}
	w.follower = f
	w.agent.host.Wait.Add(1)
	go func() {
		defer w.agent.host.Wait.Done()
		defer close(f.done)
		open := w.openLog(e)
		err := w.agent.Logs.Follow(ctx, w.ID.Owner(), w.ID, func(ctx context.Context) (engine.Log, error) {
			if w.hangs() {
				return nil, watch.ErrUnanswered
			}
			return open(ctx)
		})
		if err != nil && ctx.Err() == nil {
			w.Log.Error("continuous log stopped", logkey.Error, err)
		}
	}()
}

// openLog looks at the log as the newest assignment says.
func (w *worker) openLog(e engine.Engine) OpenLog {
	return func(ctx context.Context) (engine.Log, error) {
		a, _ := w.Assignment()
		log, err := e.OpenLog(ctx, a)
		if err != nil {
			return nil, err
		}
		return leasedLog{log, func() bool {
			a, _ := w.Assignment()
			l := w.guards.Load()
			return !a.Writes() || l != nil && l.hasEnded()
		}}, nil
	}
}

// leasedLog makes no mark once the lease of its server is over, or it is to write no more. All of a host may freeze and
// go on much later: then a server on another host has acknowledged what this log lacks, and
// a mark made before the server here is ended would claim that moment.
type leasedLog struct {
	engine.Log
	over func() bool
}

// Mark implements engine.Log.
func (l leasedLog) Mark(ctx context.Context) (kurabe.LogMark, error) {
	m, err := l.Log.Mark(ctx)
	if err == nil && l.over() { // asked after the reading, so that it is true of that
		return kurabe.LogMark{}, errors.New("the server must not write any more, or its lease has ended")
	}
	return m, err
}

func (w *worker) unfollow() {
	if w.follower != nil {
		w.follower.cancel()
		<-w.follower.done
		w.follower = nil
	}
}

// unfollowAside ends the continuous log of a former primary without waiting: its server may hang.
// The next primary's continuous log begins when this one has ended.
func (w *worker) unfollowAside() {
	f := w.follower
	if f == nil || f.ending {
		return
	}
	f.ending = true
	f.cancel()
	w.agent.host.Wait.Go(func() {
		<-f.done
		w.Wake()
	})
}

// endLog ends the log here once the server follows one on another host: what it writes when
// it is the primary again does not go on from there, whatever its files look like. Where that
// one is on this host, it is followed in the same log, which sees the end itself.
func (w *worker) endLog(a kurabe.Assignment) {
	owner := w.ID.Owner()
	if w.follower != nil || sourceHost(a) == "" || sourceHost(a) == a.Host {
		return
	}
	log, there := w.agent.Logs.Log(owner)
	if n := len(log.Runs); !there || n == 0 || log.Runs[n-1].Ended != "" {
		return
	}
	if err := w.agent.Logs.End(owner, kurabe.WrittenElsewhere); err != nil {
		w.Log.Warn("log not ended", logkey.Error, err)
	}
}

// sourceHost is the host of the server that one of a group follows, "" of one that does not.
func sourceHost(a kurabe.Assignment) kurabe.HostID {
	if a.Role == nil || a.Role.Duty != kurabe.DutyFollow || a.Role.Source == nil {
		return ""
	}
	return a.Role.Source.Host
}

// dropEndedFollower forgets a continuous log that was ended aside, once it has ended.
func (w *worker) dropEndedFollower() {
	if w.follower == nil || !w.follower.ending {
		return
	}
	select {
	case <-w.follower.done:
		w.follower = nil
	default:
	}
}

// finishLog keeps the end of the log of an instance that goes, when its automated
// backups stay. It is tried once: an instance whose server is broken can go too. Of a
// group the primary's log is the one to keep.
func (w *worker) finishLog(ctx context.Context, e engine.Engine, a kurabe.Assignment) {
	w.unfollow()
	owner := w.ID.Owner()
	if len(w.agent.snapshots.Automated(owner)) == 0 {
		w.agent.removeLog(ctx, owner)
		return
	}
	if w.logFinished || !a.Log || !a.Writes() {
		return
	}
	w.logFinished = true
	ctx, cancel := context.WithTimeout(ctx, finishLimit)
	defer cancel()
	if err := w.agent.Logs.Finish(ctx, owner, w.ID, w.openLog(e)); err != nil {
		w.Log.Warn("the end of the log could not be stored", logkey.Error, err)
	}
}

// dropLog has a server hold back no log that nobody follows, once for each process of
// it, and removes what was kept when no automated snapshot needs it.
func (w *worker) dropLog(ctx context.Context, e engine.Engine, a kurabe.Assignment, o engine.Observation) {
	if o.Serving() && w.logDropped != o.Process {
		if !w.answers() {
			return
		}
		limited, cancel := context.WithTimeout(ctx, holdLimit)
		defer cancel()
		if err := e.DropLog(limited, a); err != nil {
			w.Log.Warn("the server could not be told to release its log", logkey.Error, err)
			return
		}
		w.logDropped = o.Process
	}
	owner := w.ID.Owner()
	if err := w.agent.Logs.End(owner, "automated backups were switched off"); err != nil {
		w.Log.Warn("log not ended", logkey.Error, err)
	}
	w.agent.removeLog(ctx, owner)
}

// removeLog removes the log of an instance that neither follows it nor has automated
// snapshots. A standby of a server on another host will follow another one.
func (a *Agent) removeLog(ctx context.Context, id kurabe.InstanceID) {
	if a.Logs == nil || len(a.snapshots.Automated(id)) > 0 {
		return
	}
	if slices.ContainsFunc(a.members(id), func(m kurabe.Assignment) bool {
		return m.Log && m.Goal != kurabe.GoalAbsent && (sourceHost(m) == "" || sourceHost(m) == m.Host)
	}) {
		return
	}
	if _, there := a.Logs.Log(id); !there {
		return
	}
	// A repository that does not answer must not hold up whoever watches the instance.
	limited, cancel := context.WithTimeout(ctx, finishLimit)
	defer cancel()
	err := a.Logs.Remove(limited, id)
	if err != nil && ctx.Err() == nil {
		a.Log.Warn("log not removed", logkey.Instance, id, logkey.Error, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		delete(a.unneeded, id)
		return
	}
	a.unneeded[id] = true
}

// removeUnneeded tries again to remove logs that could not be removed. Others that
// nobody here knows are left alone: an import may come to know them.
func (a *Agent) removeUnneeded(ctx context.Context) {
	a.mu.Lock()
	ids := slices.Collect(maps.Keys(a.unneeded))
	a.mu.Unlock()
	for _, id := range ids {
		a.removeLog(ctx, id)
	}
}

// logTeller tells of the logs; it remembers what it told.
type logTeller struct {
	shape map[kurabe.InstanceID]logShape
}

// logShape is what of a log is news for the plan of its instance.
type logShape struct {
	began, since time.Time
	from         kurabe.LogPosition
	ended        string
	damaged      bool
	continues    *kurabe.LogContinues
}

// shapeOf is that of a log: when the run that goes on began and from when on it is
// there, what it goes on from, and why the newest of the others ended that has a gap
// behind it, or the last one.
func shapeOf(l kurabe.InstanceLog) logShape {
	var s logShape
	var before []kurabe.LogRun // what the next run goes on from
	for n, r := range l.Runs {
		if n > 0 && !l.Continued(n-1) {
			before = nil
		}
		switch {
		case l.Continued(n):
			r.Pushed = kurabe.LogMark{} // it moves, and is nothing to the plan
			before = append(before, r)
		case r.Ended != "":
			s.ended, s.damaged = r.Ended, r.Damaged
		case n == len(l.Runs)-1:
			s.began, s.since, s.from = r.Began, r.First.At, r.First.Position
			if len(before) > 0 || r.Elsewhere {
				s.continues = &kurabe.LogContinues{Began: r.Continues, After: r.After, Elsewhere: r.Elsewhere, Before: before}
			}
		}
	}
	return s
}

// watchLogs tells of the logs every few seconds, wakes an instance whose log has a
// gap or goes on after one, and has them trimmed.
func (a *Agent) watchLogs(ctx context.Context) {
	if a.Logs == nil {
		return
	}
	a.host.Wait.Go(func() { a.keepTrimmed(ctx) })
	teller := logTeller{shape: map[kurabe.InstanceID]logShape{}}
	var told []kurabe.InstanceLog
	var trouble unit.LogOnce
	for {
		now := a.Now()
		next := now.Truncate(logReport).Add(logReport + logReportAfter)
		if !unit.Wait(ctx, next.Sub(now)) {
			return
		}
		all := a.Logs.All()
		teller.wake(a, all)
		if !reflect.DeepEqual(all, told) {
			err := a.Link.PutLogs(ctx, kurabe.LogReport{Host: a.Host, At: a.Now().UTC(), Logs: all})
			if err == nil {
				told, trouble = all, unit.LogOnce{}
			} else if ctx.Err() == nil {
				trouble.Warn(a.Log, "log report not delivered", err)
			}
		}
	}
}

// keepTrimmed removes every minute what nobody needs. It waits for the repository, and
// a report of how far the logs reach must not.
func (a *Agent) keepTrimmed(ctx context.Context) {
	for more := true; more; more = unit.Wait(ctx, trimEvery) {
		a.trimLogs(ctx, a.Logs.All())
		a.removeUnneeded(ctx)
	}
}

// LogChanged has the workers of an instance look again: a run of its log began or
// ended.
func (a *Agent) LogChanged(id kurabe.InstanceID) {
	for _, w := range a.workers.List() {
		if w.ID.Owner() == id {
			w.Wake()
		}
	}
}

// wake makes the worker observe again, and report even while a step is under way.
func (t *logTeller) wake(a *Agent, all []kurabe.InstanceLog) {
	for _, l := range all {
		shape := shapeOf(l)
		if reflect.DeepEqual(t.shape[l.Instance], shape) {
			continue
		}
		t.shape[l.Instance] = shape
		a.LogChanged(l.Instance)
	}
}

// trimLogs removes what is older than the oldest automated snapshot of an instance.
func (a *Agent) trimLogs(ctx context.Context, all []kurabe.InstanceLog) {
	for _, l := range all {
		var oldest time.Time
		for _, at := range a.snapshots.Automated(l.Instance) {
			if !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
				oldest = at
			}
		}
		if oldest.IsZero() {
			continue
		}
		for _, m := range a.members(l.Instance) {
			if !m.LogSince.IsZero() && m.LogSince.Before(oldest) {
				oldest = m.LogSince // a snapshot of another host goes on with the log here
			}
		}
		if err := a.Logs.Trim(ctx, l.Instance, oldest); err != nil && ctx.Err() == nil {
			a.Log.Warn("log not trimmed", logkey.Instance, l.Instance, logkey.Error, err)
		}
	}
}
