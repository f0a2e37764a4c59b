package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
)

const (
	// saveRetry is how soon an assignment that could not be saved, or a report that could not
	// be dropped, is tried again. Nothing announces that a disk has room.
	saveRetry = 2 * time.Second
	// reportRetry is how soon a report that could not be delivered is tried again.
	reportRetry = time.Second
	// maxAttemptsNews is from which try on a failure with the same words is no news.
	maxAttemptsNews = 10
)

// report is what a host tells of a thing of some kind.
type report[R any] interface {
	kurabe.Word
	Unsaved(kurabe.Generation, *kurabe.Failure) R
}

// kind is what a unit leaves to the kind of its thing.
type kind[A, R kurabe.Word] interface {
	// save puts an assignment on disk, forget removes it; a save is never beside another one.
	save(a A) error
	forget() error
	// obeys is called when an assignment has come into force, retires when the thing is to be
	// left, end when the unit's goroutine ends.
	obeys(a A)
	retires()
	end()
	// pass looks at the thing and does what its assignment lacks, until nothing is left to do or
	// a step fails, and returns when to look again. unknown is that of a thing without an
	// assignment in force, of which waiting, if there is one, could not be saved.
	pass(ctx context.Context, a A) time.Duration
	unknown(ctx context.Context, waiting A, waits bool)
	// sameNews says whether two reports tell the same.
	sameNews(a, b R) bool
}

// unit drives one thing that is assigned to the host: saves, refuses, obeys, reports,
// retires. Only its own goroutine acts on the thing and reports of it.
type unit[ID ~string, A kurabe.Word, R report[R]] struct {
	kind   kind[A, R]
	agent  *Agent
	id     ID
	ref    kurabe.Ref
	log    *slog.Logger
	signal chan struct{} // capacity 1: wake-ups melt together
	done   chan struct{} // closed by retire
	looked chan struct{} // closed when the first report was made

	saving sync.Mutex // held while an assignment is saved; taken before mu

	mu      sync.Mutex // guards what follows
	have    A
	known   bool
	refused *kurabe.Failure         // why a newer assignment could not be saved
	waiting A                       // that assignment
	retired bool                    // done is closed
	cut     context.CancelCauseFunc // ends the step under way, nil between steps

	// The rest belongs to the goroutine of run.
	began    bool // a pass has had an assignment
	failure  *kurabe.Failure
	retryAt  time.Time // a failed step is not tried again before, whatever wakes us
	retryGen kurabe.Generation
	reported R
	unsent   bool // reported is not delivered yet
	failing  logOnce
}

func newUnit[ID ~string, A kurabe.Word, R report[R]](k kind[A, R], a *Agent, id ID, ref kurabe.Ref, key string) unit[ID, A, R] {
	return unit[ID, A, R]{
		kind: k, agent: a, id: id, ref: ref, log: a.Log.With(key, id),
		signal: make(chan struct{}, 1), done: make(chan struct{}), looked: make(chan struct{}),
	}
}

func (u *unit[ID, A, R]) assignment() (A, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.have, u.known
}

// unsaved is the assignment that could not be saved, if there is one.
func (u *unit[ID, A, R]) unsaved() (A, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.waiting, u.refused != nil
}

// receive saves an assignment, unless it is stale, and wakes the unit. The newest is one that
// waits to be saved, or the one in force: a lower one must not slip in while the higher one
// waits.
func (u *unit[ID, A, R]) receive(a A) {
	log := u.log.With(logkey.Generation, a.Envelope().Generation)
	have, known := u.unsaved()
	if !known {
		have, known = u.assignment()
	}
	if known {
		fresh, err := newer(have, a)
		if err != nil {
			log.Warn("assignment refused", logkey.Error, err)
			return
		}
		if !fresh {
			u.wake()
			return
		}
	}
	u.saving.Lock()
	defer u.saving.Unlock()
	if err := u.acceptLocked(a); err != nil {
		log.Error("assignment not saved", logkey.Error, err)
		u.wake()
	}
}

// newer says whether an assignment takes the place of the one in force. A lower generation
// comes from a planner that was deposed; the same generation with other content from two
// planners at once: neither is obeyed.
func newer[A kurabe.Word](have, next A) (bool, error) {
	before, after := have.Envelope().Generation, next.Envelope().Generation
	switch {
	case after < before:
		return false, fmt.Errorf("generation %d is older than %d, which is in force", after, before)
	case after > before:
		return true, nil
	case !reflect.DeepEqual(have, next):
		return false, fmt.Errorf("generation %d is in force with other content", before)
	}
	return false, nil
}

// acceptLocked saves an assignment and puts it in force. One that cannot be saved is not
// obeyed: an order that a restart would forget is no order. It waits in the unit, which
// reports why and tries again.
func (u *unit[ID, A, R]) acceptLocked(a A) error {
	err := u.kind.save(a)
	if err == nil {
		u.give(a)
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	attempts := 1
	if u.refused != nil {
		attempts = u.refused.Attempts + 1
	}
	u.refused = &kurabe.Failure{Kind: kurabe.FailureStorage, Step: "save-assignment", Message: err.Error(), Attempts: attempts, At: u.agent.Now().UTC()}
	u.waiting = a
	return err
}

// acceptAgain tries to save what could not be saved.
func (u *unit[ID, A, R]) acceptAgain() {
	u.saving.Lock()
	defer u.saving.Unlock()
	if a, waits := u.unsaved(); waits && u.acceptLocked(a) == nil {
		u.log.Info("assignment saved after retries", logkey.Generation, a.Envelope().Generation)
	}
}

// give puts a saved assignment in force.
func (u *unit[ID, A, R]) give(a A) {
	u.mu.Lock()
	u.have, u.known, u.refused = a, true, nil
	if u.cut != nil {
		// A step may wait long, for a recovery for example; steps are idempotent, and the new
		// order may want something else.
		u.cut(errCut)
	}
	u.mu.Unlock()
	u.kind.obeys(a)
	u.wake()
}

// wake says "look again" and carries no data.
func (u *unit[ID, A, R]) wake() {
	select {
	case u.signal <- struct{}{}:
	default:
	}
}

// cuttable is ctx for a step of an assignment, which a newer one ends; errCut when there is
// one already. The caller ends it with the step.
func (u *unit[ID, A, R]) cuttable(ctx context.Context, a A) (limited context.Context, end func(), err error) {
	limited, cut := context.WithCancelCause(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.have.Envelope().Generation != a.Envelope().Generation {
		cut(nil)
		return nil, nil, errCut
	}
	u.cut = cut
	return limited, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.cut = nil
		cut(nil)
	}, nil
}

// cutStep ends the step under way, if there is one.
func (u *unit[ID, A, R]) cutStep(why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cut != nil {
		u.cut(why)
	}
}

// withdraw forgets a thing whose records are gone. Its data is gone too when its last
// assignment said so; otherwise it stays and is obeyed on. Of one that is not known only a
// report of an earlier life can be left.
func (u *unit[ID, A, R]) withdraw() {
	if have, known := u.assignment(); known && !have.Envelope().Absent {
		u.log.Warn("assignment withdrawn without an order to remove the server; the server is kept", "kind", u.ref.Kind)
		return
	}
	u.kind.retires()
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.retired { // it may be asked twice
		u.retired = true
		close(u.done)
	}
}

// run looks and acts until ctx ends or the thing is retired.
func (u *unit[ID, A, R]) run(ctx context.Context) {
	defer u.kind.end()
	for {
		u.acceptAgain()
		pause := u.passes(ctx)
		// A pass before the first assignment was given has seen nothing: counted as a look, it
		// would let the service answer with what was true before.
		if u.began {
			u.look()
		}
		if _, waits := u.unsaved(); waits {
			pause = min(pause, saveRetry)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-u.done:
			timer.Stop()
			u.leave(ctx)
			return
		case <-u.signal:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// passes makes passes until one says when to look again.
func (u *unit[ID, A, R]) passes(ctx context.Context) time.Duration {
	for ctx.Err() == nil {
		a, known := u.assignment()
		if !known {
			waiting, waits := u.unsaved()
			u.kind.unknown(ctx, waiting, waits)
			return u.retryReport(u.agent.Look)
		}
		u.began = true
		if generation := a.Envelope().Generation; u.retryGen != generation {
			// A new assignment may be the cure. Told beside the new generation, the old failure
			// would be taken for its own.
			u.failure, u.retryAt, u.retryGen = nil, time.Time{}, generation
		}
		if pause := u.kind.pass(ctx, a); pause > 0 {
			return pause
		}
	}
	return 0
}

// rest is what is left of the pause before a failed step is tried again. The end of a server
// that could not start wakes its unit too: only a new assignment may cut the pause short.
func (u *unit[ID, A, R]) rest() time.Duration { return u.retryAt.Sub(u.agent.Now()) }

// fails counts a failure; restFor has the next try wait.
func (u *unit[ID, A, R]) fails(kind kurabe.FailureKind, step, message string) (attempts int) {
	u.failure = failedAgain(u.failure, kurabe.Failure{Kind: kind, Step: step, Message: message, At: u.agent.Now().UTC()})
	return u.failure.Attempts
}

func (u *unit[ID, A, R]) restFor(pause time.Duration) time.Duration {
	u.retryAt = u.agent.Now().Add(pause)
	return u.retryReport(pause)
}

// leave ends the unit of a thing whose records are gone: nothing of it stays on disk or in
// the store. Only this goroutine reports, so no report can follow the removal.
func (u *unit[ID, A, R]) leave(ctx context.Context) {
	for {
		err := u.kind.forget()
		if err == nil {
			err = u.agent.Link.DropReport(ctx, u.agent.Host, u.ref)
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, hostlink.ErrRefused) {
			return // a service of an earlier version does not know the kind
		}
		u.log.Warn("report not removed", logkey.Error, err)
		wait(ctx, saveRetry)
	}
}

// tell tells the planner what is seen, when it differs from what it was told.
func (u *unit[ID, A, R]) tell(ctx context.Context, r R) {
	u.mu.Lock()
	if u.refused != nil {
		r = r.Unsaved(u.waiting.Envelope().Generation, u.refused)
	}
	u.mu.Unlock()
	if u.reported.Envelope().ID != "" && !u.unsent && u.kind.sameNews(u.reported, r) {
		return
	}
	u.reported, u.unsent = r, true
	u.resend(ctx)
}

// resend delivers the newest report, unless that was done.
func (u *unit[ID, A, R]) resend(ctx context.Context) {
	if !u.unsent {
		return
	}
	err := u.agent.Link.PutReport(ctx, u.reported)
	u.unsent = err != nil
	if err == nil {
		u.failing = logOnce{}
	} else if ctx.Err() == nil {
		u.failing.tell(u.log, "report not delivered", err)
	}
}

// retryReport shortens a pause while the newest report is not delivered.
func (u *unit[ID, A, R]) retryReport(pause time.Duration) time.Duration {
	if u.unsent {
		return min(pause, reportRetry)
	}
	return pause
}

// look notes that the thing was looked at. Only this goroutine calls it.
func (u *unit[ID, A, R]) look() {
	select {
	case <-u.looked:
	default:
		close(u.looked)
	}
}

// awaitLook waits for that.
func (u *unit[ID, A, R]) awaitLook(ctx context.Context) error {
	select {
	case <-u.looked:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// asBefore makes a failure that is no news equal to the one told before: it has the same
// words after many tries.
func asBefore(told, now *kurabe.Failure) *kurabe.Failure {
	if told == nil || now == nil || told.Attempts < maxAttemptsNews {
		return now
	}
	f := *now
	f.At, f.Attempts = told.At, told.Attempts
	return &f
}

// driven is a unit, as the table of its kind needs it.
type driven[A any] interface {
	receive(A)
	withdraw()
	run(context.Context)
	awaitLook(context.Context) error
}

// units are those of one kind on this host.
type units[ID ~string, A kurabe.Word, U driven[A]] struct {
	kind kurabe.Kind
	make func(ID) U
	wait *sync.WaitGroup

	mu  sync.Mutex // guards all
	all map[ID]U
}

func newUnits[ID ~string, A kurabe.Word, U driven[A]](kind kurabe.Kind, wait *sync.WaitGroup, one func(ID) U) *units[ID, A, U] {
	return &units[ID, A, U]{kind: kind, make: one, wait: wait, all: map[ID]U{}}
}

// list returns the units of the moment.
func (s *units[ID, A, U]) list() []U {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.all))
}

// find returns the unit of a thing, false for none.
func (s *units[ID, A, U]) find(id ID) (U, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.all[id]
	return u, ok
}

// get returns the unit of a thing and starts it at first.
func (s *units[ID, A, U]) get(ctx context.Context, id ID) U {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u, ok := s.all[id]; ok {
		return u
	}
	u := s.make(id)
	s.all[id] = u
	s.wait.Go(func() {
		u.run(ctx)
		if ctx.Err() != nil {
			return // what it has told of last is asked for when the agent ends
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, id)
	})
	return u
}

// obey is what an update says of things of the kind. What a full one does not name went
// while nobody listened.
func (s *units[ID, A, U]) obey(ctx context.Context, update hostlink.Update) {
	named := map[ID]bool{}
	var orders []A
	for _, w := range update.Orders {
		if a, ok := w.(A); ok && a.Envelope().Kind == s.kind {
			orders = append(orders, a)
			named[ID(a.Envelope().ID)] = true
		}
	}
	if update.Full {
		s.mu.Lock()
		others := slices.DeleteFunc(slices.Collect(maps.Keys(s.all)), func(id ID) bool { return named[id] })
		s.mu.Unlock()
		for _, id := range others {
			s.get(ctx, id).withdraw()
		}
	}
	for _, a := range orders {
		s.get(ctx, ID(a.Envelope().ID)).receive(a)
	}
	for _, ref := range update.Withdrawn {
		if ref.Kind == s.kind {
			s.get(ctx, ID(ref.ID)).withdraw()
		}
	}
}
