package alarm

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// Times of evaluations. An alarm is evaluated every minute, one with a period below a minute every
// ten seconds, one that looks at more than a day every hour once it has a state. Each alarm has its
// place in the half of that time that begins after settle, so that the work is spread.
const (
	tick     = 5 * time.Second
	settle   = 5 * time.Second // for the last seconds of a period to be written
	often    = 10 * time.Second
	normally = time.Minute
	seldom   = time.Hour
	catchUp  = normally // how far back evaluations are made up that came too late
)

const dayLong = 86400 // seconds

// Points are the data points of an alarm, or why there can be none.
type Points struct {
	Points []Point
	Err    error
}

// Loop evaluates alarms while its server is the elected one.
type Loop struct {
	KV    store.KV
	View  *store.View
	Place Place
	Log   *slog.Logger
	Now   func() time.Time
	// Read returns the data points of each alarm; an error says that none can be read now, and
	// that nothing is known of any.
	Read func(context.Context, []Due) ([]Points, error)

	silent bool // nothing could be read at the last try
}

// Run evaluates until ctx ends. It commits nothing without the fence. A transition that was not
// committed is found again at the next evaluation, here or at the next elected server.
func (l *Loop) Run(ctx context.Context, fence store.Fence) {
	last := l.Now()
	for ctx.Err() == nil {
		timer := time.NewTimer(last.Truncate(tick).Add(tick).Sub(l.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		now := l.Now()
		if now.Before(last) || now.Sub(last) > catchUp {
			last = now.Add(-catchUp) // the clock was set, or the machine slept
		}
		l.pass(ctx, fence, last, now)
		last = now
	}
}

// pass evaluates the alarms whose time has come after last, up to now.
func (l *Loop) pass(ctx context.Context, fence store.Fence, last, now time.Time) {
	var due []Due
	var alarms []store.Alarm
	for _, a := range l.View.Alarms() {
		if at, ok := dueIn(a, last, now); ok {
			due = append(due, Due{a.Value, at.Add(-settle).Truncate(sliding(a.Value)).Unix()})
			alarms = append(alarms, a)
		}
	}
	if len(due) == 0 {
		return
	}
	points, err := l.Read(ctx, due)
	if ctx.Err() != nil {
		return
	}
	if silent := err != nil; silent != l.silent {
		l.silent = silent
		if silent {
			l.Log.Warn("alarms not evaluated: no metrics can be read", logkey.Error, err)
		}
	}
	if err != nil {
		return
	}
	for n, a := range alarms {
		v, ok := Evaluate(due[n], points[n].Points, now)
		if points[n].Err != nil {
			v, ok = Verdict{State: kurabe.AlarmInsufficientData, Reason: "Insufficient Data: " + points[n].Err.Error()}, true
		}
		if ok && v.State != a.Status.Value.State {
			l.enter(ctx, fence, a, v)
		}
	}
}

// enter commits a transition. One that conflicts was evaluated with what is old by now.
func (l *Loop) enter(ctx context.Context, fence store.Fence, a store.Alarm, v Verdict) {
	change := l.Place.Enter(store.NewChange().RequireElected(fence), l.View, a, v, l.Now())
	revision, err := change.Commit(ctx, l.KV)
	if err == nil {
		err = l.View.WaitRevision(ctx, revision)
	}
	log := l.Log.With(logkey.Alarm, a.Value.Name)
	switch {
	case ctx.Err() != nil || errors.Is(err, store.ErrConflict):
	case err != nil:
		log.Warn("state of alarm not stored, tried again", logkey.Error, err)
	default:
		log.Info("alarm changed", logkey.Status, v.State, logkey.Reason, v.Reason)
	}
}

// sliding is how often the periods of an alarm move on: each evaluation looks at whole periods
// that end then, as CloudWatch's do.
func sliding(a kurabe.Alarm) time.Duration {
	if a.Period < int64(normally/time.Second) {
		return often
	}
	return normally
}

// dueIn says whether and when an evaluation of an alarm is due after last, up to now; of several
// it names the last.
func dueIn(a store.Alarm, last, now time.Time) (time.Time, bool) {
	every := sliding(a.Value)
	if a.Status.ModRevision != 0 && a.Value.Period*int64(a.Value.EvaluationPeriods) > dayLong {
		every = seldom
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(a.Value.Name)) // never fails
	offset := settle + time.Duration(h.Sum32())%max(every/2/tick, 1)*tick
	at := now.Add(-offset).Truncate(every).Add(offset)
	return at, at.After(last)
}
