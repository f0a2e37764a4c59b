package unit

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
	// SaveRetry is how soon an assignment that could not be saved, or a report that could not
	// be dropped, is tried again. Nothing announces that a disk has room.
	SaveRetry = 2 * time.Second
	// ReportRetry is how soon a report that could not be delivered is tried again.
	ReportRetry = time.Second
	// MaxAttemptsNews is from which try on a failure with the same words is no news.
	MaxAttemptsNews = 10
)

// Report is what a host tells of a thing of some kind.
type Report[R any] interface {
	kurabe.Word
	Unsaved(kurabe.Generation, *kurabe.Failure) R
}

// Kind is what a unit leaves to the kind of its thing.
type Kind[A, R kurabe.Word] interface {
	// Save puts an assignment on disk, Forget removes it; a save is never beside another one.
	Save(a A) error
	Forget() error
	// Obeys is called when an assignment has come into force, Retires when the thing is to be
	// left, End when the unit's goroutine ends.
	Obeys(a A)
	Retires()
	End()
	// Pass looks at the thing and does what its assignment lacks, until nothing is left to do or
	// a step fails, and returns when to look again. Unknown is that of a thing without an
	// assignment in force, of which waiting, if there is one, could not be saved.
	Pass(ctx context.Context, a A) time.Duration
	Unknown(ctx context.Context, waiting A, waits bool)
	// SameNews says whether two reports tell the same.
	SameNews(a, b R) bool
}

// Host is what units need of the host that they are on.
type Host struct {
	ID   kurabe.HostID
	Link hostlink.Link
	Log  *slog.Logger
	Now  func() time.Time
	// Look is how often a thing is looked at although nothing woke its unit.
	Look time.Duration
	// Wait is for the goroutines of the units.
	Wait sync.WaitGroup
	// Lines are for deeds of which one at a time is enough.
	Lines Lines
}

// ErrCut says that a newer assignment ended the step.
var ErrCut = errors.New("interrupted by a newer assignment")

// Unit drives one thing that is assigned to the host: saves, refuses, obeys, reports,
// retires. Only its own goroutine acts on the thing and reports of it.
type Unit[ID ~string, A kurabe.Word, R Report[R]] struct {
	kind   Kind[A, R]
	host   *Host
	ID     ID
	Ref    kurabe.Ref
	Log    *slog.Logger
	signal chan struct{} // capacity 1: wake-ups melt together
	done   chan struct{} // closed by retire
	looked chan struct{} // closed when the first report was made

	Saving sync.Mutex // held while an assignment is saved; taken before mu

	mu      sync.Mutex // guards what follows
	have    A
	known   bool
	refused *kurabe.Failure         // why a newer assignment could not be saved
	waiting A                       // that assignment
	retired bool                    // done is closed
	cut     context.CancelCauseFunc // ends the step under way, nil between steps

	// The rest belongs to the goroutine of run.
	began    bool // a pass has had an assignment
	Failure  *kurabe.Failure
	retryAt  time.Time // a failed step is not tried again before, whatever wakes us
	retryGen kurabe.Generation
	Reported R
	Unsent   bool // Reported is not delivered yet
	failing  LogOnce
}

func New[ID ~string, A kurabe.Word, R Report[R]](k Kind[A, R], h *Host, id ID, ref kurabe.Ref, key string) Unit[ID, A, R] {
	return Unit[ID, A, R]{
		kind: k, host: h, ID: id, Ref: ref, Log: h.Log.With(key, id),
		signal: make(chan struct{}, 1), done: make(chan struct{}), looked: make(chan struct{}),
	}
}

func (u *Unit[ID, A, R]) Assignment() (A, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.have, u.known
}

// unsaved is the assignment that could not be saved, if there is one.
func (u *Unit[ID, A, R]) unsaved() (A, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.waiting, u.refused != nil
}

// Receive saves an assignment, unless it is stale, and wakes the unit. The newest is one that
// waits to be saved, or the one in force: a lower one must not slip in while the higher one
// waits.
func (u *Unit[ID, A, R]) Receive(a A) {
	log := u.Log.With(logkey.Generation, a.Envelope().Generation)
	have, known := u.unsaved()
	if !known {
		have, known = u.Assignment()
	}
	if known {
		fresh, err := Newer(have, a)
		if err != nil {
			log.Warn("assignment refused", logkey.Error, err)
			return
		}
		if !fresh {
			u.Wake()
			return
		}
	}
	u.Saving.Lock()
	defer u.Saving.Unlock()
	if err := u.acceptLocked(a); err != nil {
		log.Error("assignment not saved", logkey.Error, err)
		u.Wake()
	}
}

// Newer says whether an assignment takes the place of the one in force. A lower generation
// comes from a planner that was deposed; the same generation with other content from two
// planners at once: neither is obeyed.
func Newer[A kurabe.Word](have, next A) (bool, error) {
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
func (u *Unit[ID, A, R]) acceptLocked(a A) error {
	err := u.kind.Save(a)
	if err == nil {
		u.Give(a)
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	attempts := 1
	if u.refused != nil {
		attempts = u.refused.Attempts + 1
	}
	u.refused = &kurabe.Failure{Kind: kurabe.FailureStorage, Step: "save-assignment", Message: err.Error(), Attempts: attempts, At: u.host.Now().UTC()}
	u.waiting = a
	return err
}

// acceptAgain tries to save what could not be saved.
func (u *Unit[ID, A, R]) acceptAgain() {
	u.Saving.Lock()
	defer u.Saving.Unlock()
	if a, waits := u.unsaved(); waits && u.acceptLocked(a) == nil {
		u.Log.Info("assignment saved after retries", logkey.Generation, a.Envelope().Generation)
	}
}

// Give puts a saved assignment in force.
func (u *Unit[ID, A, R]) Give(a A) {
	u.mu.Lock()
	u.have, u.known, u.refused = a, true, nil
	if u.cut != nil {
		// A step may wait long, for a recovery for example; steps are idempotent, and the new
		// order may want something else.
		u.cut(ErrCut)
	}
	u.mu.Unlock()
	u.kind.Obeys(a)
	u.Wake()
}

// Wake says "look again" and carries no data.
func (u *Unit[ID, A, R]) Wake() {
	select {
	case u.signal <- struct{}{}:
	default:
	}
}

// Cuttable is ctx for a step of an assignment, which a newer one ends; ErrCut when there is
// one already. The caller ends it with the step.
func (u *Unit[ID, A, R]) Cuttable(ctx context.Context, a A) (limited context.Context, end func(), err error) {
	limited, cut := context.WithCancelCause(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.have.Envelope().Generation != a.Envelope().Generation {
		cut(nil)
		return nil, nil, ErrCut
	}
	u.cut = cut
	return limited, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.cut = nil
		cut(nil)
	}, nil
}

// CutStep ends the step under way, if there is one.
func (u *Unit[ID, A, R]) CutStep(why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cut != nil {
		u.cut(why)
	}
}

// Withdraw forgets a thing whose records are gone. Its data is gone too when its last
// assignment said so; otherwise it stays and is obeyed on. Of one that is not known only a
// report of an earlier life can be left.
func (u *Unit[ID, A, R]) Withdraw() {
	if have, known := u.Assignment(); known && !have.Envelope().Absent {
		u.Log.Warn("assignment withdrawn without an order to remove the server; the server is kept", "kind", u.Ref.Kind)
		return
	}
	u.kind.Retires()
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.retired { // it may be asked twice
		u.retired = true
		close(u.done)
	}
}

// Run looks and acts until ctx ends or the thing is retired.
func (u *Unit[ID, A, R]) Run(ctx context.Context) {
	defer u.kind.End()
	for {
		u.acceptAgain()
		pause := u.passes(ctx)
		// A pass before the first assignment was given has seen nothing: counted as a look, it
		// would let the service answer with what was true before.
		if u.began {
			u.Looked()
		}
		if _, waits := u.unsaved(); waits {
			pause = min(pause, SaveRetry)
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
func (u *Unit[ID, A, R]) passes(ctx context.Context) time.Duration {
	for ctx.Err() == nil {
		a, known := u.Assignment()
		if !known {
			waiting, waits := u.unsaved()
			u.kind.Unknown(ctx, waiting, waits)
			return u.RetryReport(u.host.Look)
		}
		u.began = true
		if generation := a.Envelope().Generation; u.retryGen != generation {
			// A new assignment may be the cure. Told beside the new generation, the old failure
			// would be taken for its own.
			u.Failure, u.retryAt, u.retryGen = nil, time.Time{}, generation
		}
		if pause := u.kind.Pass(ctx, a); pause > 0 {
			return pause
		}
	}
	return 0
}

// Rest is what is left of the pause before a failed step is tried again. The end of a server
// that could not start wakes its unit too: only a new assignment may cut the pause short.
func (u *Unit[ID, A, R]) Rest() time.Duration { return u.retryAt.Sub(u.host.Now()) }

// Fails counts a failure and RestFor has the next try wait.
func (u *Unit[ID, A, R]) Fails(kind kurabe.FailureKind, step, message string) (attempts int) {
	u.Failure = failedAgain(u.Failure, kurabe.Failure{Kind: kind, Step: step, Message: message, At: u.host.Now().UTC()})
	return u.Failure.Attempts
}

func (u *Unit[ID, A, R]) RestFor(pause time.Duration) time.Duration {
	u.retryAt = u.host.Now().Add(pause)
	return u.RetryReport(pause)
}

// leave ends the unit of a thing whose records are gone: nothing of it stays on disk or in
// the store. Only this goroutine reports, so no report can follow the removal.
func (u *Unit[ID, A, R]) leave(ctx context.Context) {
	for {
		err := u.kind.Forget()
		if err == nil {
			err = u.host.Link.DropReport(ctx, u.host.ID, u.Ref)
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, hostlink.ErrRefused) {
			return // a service of an earlier version does not know the kind
		}
		u.Log.Warn("report not removed", logkey.Error, err)
		Wait(ctx, SaveRetry)
	}
}

// Tell tells the planner what is seen, when it differs from what it was told.
func (u *Unit[ID, A, R]) Tell(ctx context.Context, r R) {
	u.mu.Lock()
	if u.refused != nil {
		r = r.Unsaved(u.waiting.Envelope().Generation, u.refused)
	}
	u.mu.Unlock()
	if u.Reported.Envelope().ID != "" && !u.Unsent && u.kind.SameNews(u.Reported, r) {
		return
	}
	u.Reported, u.Unsent = r, true
	u.Resend(ctx)
}

// Resend delivers the newest report, unless that was done.
func (u *Unit[ID, A, R]) Resend(ctx context.Context) {
	if !u.Unsent {
		return
	}
	err := u.host.Link.PutReport(ctx, u.Reported)
	u.Unsent = err != nil
	if err == nil {
		u.failing = LogOnce{}
	} else if ctx.Err() == nil {
		u.failing.Warn(u.Log, "report not delivered", err)
	}
}

// RetryReport shortens a pause while the newest report is not delivered.
func (u *Unit[ID, A, R]) RetryReport(pause time.Duration) time.Duration {
	if u.Unsent {
		return min(pause, ReportRetry)
	}
	return pause
}

// Looked notes that the thing was looked at. Only this goroutine calls it.
func (u *Unit[ID, A, R]) Looked() {
	select {
	case <-u.looked:
	default:
		close(u.looked)
	}
}

// AwaitLook waits for that.
func (u *Unit[ID, A, R]) AwaitLook(ctx context.Context) error {
	select {
	case <-u.looked:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// AsBefore makes a failure that is no news equal to the one told before: it has the same
// words after many tries.
func AsBefore(told, now *kurabe.Failure) *kurabe.Failure {
	if told == nil || now == nil || told.Attempts < MaxAttemptsNews {
		return now
	}
	f := *now
	f.At, f.Attempts = told.At, told.Attempts
	return &f
}

// driven is a unit, as the table of its kind needs it.
type driven[A any] interface {
	Receive(A)
	Withdraw()
	Run(context.Context)
	AwaitLook(context.Context) error
}

// Table has those of one kind on this host.
type Table[ID ~string, A kurabe.Word, U driven[A]] struct {
	kind kurabe.Kind
	make func(ID) U
	host *Host

	mu  sync.Mutex // guards all
	all map[ID]U
}

func NewTable[ID ~string, A kurabe.Word, U driven[A]](kind kurabe.Kind, host *Host, one func(ID) U) *Table[ID, A, U] {
	return &Table[ID, A, U]{kind: kind, make: one, host: host, all: map[ID]U{}}
}

// List returns the units of the moment.
func (s *Table[ID, A, U]) List() []U {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.all))
}

// Find returns the unit of a thing, false for none.
func (s *Table[ID, A, U]) Find(id ID) (U, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.all[id]
	return u, ok
}

// Get returns the unit of a thing and starts it at first.
func (s *Table[ID, A, U]) Get(ctx context.Context, id ID) U {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u, ok := s.all[id]; ok {
		return u
	}
	u := s.make(id)
	s.all[id] = u
	s.host.Wait.Go(func() {
		u.Run(ctx)
		if ctx.Err() != nil {
			return // what it has told of last is asked for when the agent ends
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, id)
	})
	return u
}

// Obey is what an update says of things of the kind. What a full one does not name went
// while nobody listened.
func (s *Table[ID, A, U]) Obey(ctx context.Context, update hostlink.Update) {
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
			s.Get(ctx, id).Withdraw()
		}
	}
	for _, a := range orders {
		s.Get(ctx, ID(a.Envelope().ID)).Receive(a)
	}
	for _, ref := range update.Withdrawn {
		if ref.Kind == s.kind {
			s.Get(ctx, ID(ref.ID)).Withdraw()
		}
	}
}
