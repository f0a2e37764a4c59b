package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/plan"
	"kurabe/internal/store"
)

// Term is an election that was won. Fence is its proof, Lost closes when it may
// be over.
type Term struct {
	Fence  store.Fence
	Lost   <-chan struct{}
	Resign func() error
}

// Config is what a Loop needs.
type Config struct {
	KV    store.KV
	View  *store.View
	Elect func(ctx context.Context) (Term, error)
	Log   *slog.Logger
	Now   func() time.Time
	// Heard is the newest word of a host that speaks over the network; false for one that does
	// not, nil when none does.
	Heard func(kurabe.HostID) (time.Time, bool)
	// VerifyEvery is how often a snapshot of each instance is verified without a
	// wish, 0 for never.
	VerifyEvery time.Duration
	// InTerm are what else only the elected server does. Each runs until its context ends,
	// which is when the term does, and commits nothing without the fence.
	InTerm []func(ctx context.Context, fence store.Fence)
}

// Intervals.
const (
	fullScan   = 30 * time.Second
	pruneEvery = time.Hour
	electPause = time.Second // before the next try at an election
	retryPause = 100 * time.Millisecond
)

// Loop plans while it is elected.
type Loop struct {
	Config
	again map[kurabe.Ref]time.Time     // when time alone may change a plan
	told  map[kurabe.InstanceID]string // why instances are left alone, as the log has it

	first    sync.Once
	answered chan struct{} // closed after the first pass over everything
}

// New returns a Loop; Run starts it.
func New(c Config) *Loop {
	return &Loop{Config: c, answered: make(chan struct{}), told: map[kurabe.InstanceID]string{}}
}

// Run plans until ctx ends, through as many terms as it takes.
func (l *Loop) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		term, err := l.Elect(ctx)
		if err != nil {
			if ctx.Err() == nil {
				l.Log.Warn("no election", logkey.Error, err)
				pause(ctx, electPause)
			}
			continue
		}
		l.Log.Info("elected planner")
		l.serve(ctx, term)
		if err := term.Resign(); err != nil && ctx.Err() == nil {
			l.Log.Warn("election not given back", logkey.Error, err)
		}
	}
	return ctx.Err()
}

// Answered closes when every instance was planned once: status is true then of
// what the hosts have reported. Where another server is the planner, it stays
// open.
func (l *Loop) Answered() <-chan struct{} { return l.answered }

// serve is one term. Each term begins with a look at everything.
func (l *Loop) serve(ctx context.Context, term Term) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the term
		select {
		case <-term.Lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	// A view that has not come as far as the election may lack reports that were
	// made before it, and the first answer would be a stale one.
	if err := l.View.WaitRevision(ctx, term.Fence.ModRevision); err != nil {
		return
	}
	var others sync.WaitGroup
	defer func() { cancel(); others.Wait() }()
	for _, run := range l.InTerm {
		others.Go(func() { run(ctx, term.Fence) })
	}
	wake, stop := l.View.Subscribe()
	defer stop()
	l.again = map[kurabe.Ref]time.Time{}
	scan, prune := l.Now(), l.Now()
	for ctx.Err() == nil {
		now := l.Now()
		dirty := l.View.TakeDirty()
		if !now.Before(scan) {
			dirty.All, scan = true, now.Add(fullScan)
		}
		l.pass(ctx, term, dirty, now)
		l.first.Do(func() { close(l.answered) })
		if !now.Before(prune) {
			prune = now.Add(pruneEvery)
			l.prune(ctx, now)
		}
		next := scan
		for _, t := range l.again {
			if t.Before(next) {
				next = t
			}
		}
		timer := time.NewTimer(max(next.Sub(l.Now()), time.Millisecond))
		select {
		case <-ctx.Done():
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pass plans every instance and snapshot that may need it.
func (l *Loop) pass(ctx context.Context, term Term, dirty store.Dirty, now time.Time) {
	fleet := newFleet(l.View)
	for _, i := range l.View.Instances() {
		due, waiting := l.again[i.ID.Ref()]
		_, touched := dirty.Instances[i.ID]
		if ctx.Err() != nil {
			return
		}
		if dirty.All || touched || waiting && !now.Before(due) {
			l.plan(ctx, term, fleet, i.ID, now)
		}
	}
	l.planProxies(ctx, term, fleet, now)
	for _, id := range l.dueSnapshots(dirty, now) {
		if ctx.Err() != nil {
			return
		}
		l.planSnapshot(ctx, term, id, now)
	}
}

// plan plans one instance and writes what changed.
func (l *Loop) plan(ctx context.Context, term Term, fleet *fleet, id kurabe.InstanceID, now time.Time) {
	delete(l.again, id.Ref())
	i, ok := l.View.Instance(id)
	if !ok || l.leftAlone(i) {
		return
	}
	w := fleet.world(i, now)
	l.addHeard(&w)
	result := plan.Next(w)
	log := l.Log.With(logkey.Instance, id)
	planned := func() {
		fleet.planned(i, result)
		log.Info("planned", logkey.Generation, generation(result.Assignment, w.Assignment), logkey.Status, state(result, w), logkey.Reason, result.Reasons)
	}
	change := l.change(i, w, result)
	changeFollowers(change, fleet.linked, result)
	for _, host := range result.RequireSilent {
		change.RequireUnheard(host, fleet.presence[host])
	}
	l.write(ctx, term, id.Ref(), result.LookAgain, change, log, planned)
}

// addHeard tells when the hosts of an instance with several servers have spoken.
func (l *Loop) addHeard(w *plan.World) {
	if l.Heard == nil || w.Group == nil {
		return
	}
	w.HeardAt = map[kurabe.HostID]time.Time{}
	for _, m := range w.Group.Members {
		if at, speaks := l.Heard(m.Host); speaks {
			w.HeardAt[m.Host] = at
		}
	}
}

// write commits the plan of a thing and waits until the view shows it, so that the plans that
// follow see it. It notes when to decide again: at a moment that the plan names, zero for none,
// or after a pause when it could not be written.
func (l *Loop) write(ctx context.Context, term Term, ref kurabe.Ref, again time.Time, change *store.Change, log *slog.Logger, planned func()) {
	if !again.IsZero() {
		l.again[ref] = again
	}
	if change.Empty() {
		return
	}
	revision, err := change.RequireElected(term.Fence).Commit(ctx, l.KV)
	switch {
	case err == nil:
		planned()
		if err := l.View.WaitRevision(ctx, revision); err != nil && ctx.Err() == nil {
			log.Warn("view is not current", logkey.Error, err)
		}
	case errors.Is(err, store.ErrConflict):
		l.again[ref] = l.Now().Add(retryPause) // somebody wrote first
	case ctx.Err() == nil:
		log.Warn("plan not stored", logkey.Error, err)
		l.again[ref] = l.Now().Add(electPause)
	}
}

// change is the transaction of a plan. It compares the spec and everything else
// that the plan was made from and that it overwrites.
func (l *Loop) change(i *store.Instance, w plan.World, r plan.Result) *store.Change {
	change := store.NewChange()
	for _, e := range r.Events {
		change.AddEvent(told(e, i.Spec != nil && i.Spec.Cluster))
	}
	if r.Gone {
		return change.DeleteInstance(i)
	}
	if unchanged(r) {
		return change
	}
	change.RequireInstance(i.ID, i.SpecMod)
	if r.Snapshot != nil {
		change.CreateSnapshot(*r.Snapshot)
	}
	if r.Status != nil {
		change.PutStatus(*r.Status, i.StatusMod)
	}
	if r.Assignment != nil {
		change.PutAssignment(*r.Assignment, assignmentMod(i, *r.Assignment))
	}
	changeGroup(change, i, r)
	mod := func(o kurabe.Task) int64 {
		n := slices.IndexFunc(i.Tasks, func(h store.Record[kurabe.Task]) bool { return h.Value.Kind == o.Kind && h.Value.Host == o.Host })
		if n < 0 {
			return 0
		}
		return i.Tasks[n].ModRevision
	}
	for _, o := range r.Tasks {
		change.PutAssignment(o, mod(o))
	}
	for _, o := range r.TasksGone {
		change.DeleteAssignment(o.Host, o.Envelope().Ref, mod(o))
	}
	return change
}

// unchanged says that a plan writes no record.
func unchanged(r plan.Result) bool {
	return r.Status == nil && r.Assignment == nil && r.Snapshot == nil && r.Group == nil && !r.GroupGone &&
		len(r.Members) == 0 && len(r.MembersGone) == 0 && len(r.Tasks)+len(r.TasksGone) == 0
}

func (l *Loop) prune(ctx context.Context, now time.Time) {
	for ctx.Err() == nil {
		n, err := store.PruneEvents(ctx, l.KV, l.View, now)
		if err != nil && ctx.Err() == nil {
			l.Log.Warn("old events not removed", logkey.Error, err)
		}
		if err != nil || n < store.TxnOpsMax {
			return
		}
	}
}

// generation is that of the first word that there is.
func generation[A kurabe.Word](words ...*A) kurabe.Generation {
	for _, w := range words {
		if w != nil {
			return (*w).Envelope().Generation
		}
	}
	return 0
}

func state(r plan.Result, w plan.World) kurabe.State {
	switch {
	case r.Gone:
		return "gone"
	case r.Status != nil:
		return r.Status.State
	case w.Status != nil:
		return w.Status.State
	}
	return ""
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
