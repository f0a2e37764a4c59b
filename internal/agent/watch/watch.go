package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrUnanswered says that a server has not answered within the deadline. One that says no is
// alive, and its error is another.
var ErrUnanswered = errors.New("the server has not answered in time")

// Session is what a purpose keeps open in a server. Close may wait for it a little.
type Session interface{ Close() }

// Purpose is why a server is asked again and again.
type Purpose[S Session] struct {
	// Every is the time between the beginnings of two questions, Limit the deadline of the
	// next one, opening a session included.
	Every time.Duration
	Limit func() time.Duration
	// Poked has the next question come at once. nil: none ever does.
	Poked <-chan struct{}
	// Open opens the session, For says for what: another one is opened when that has
	// changed. nil: it never does.
	Open func(context.Context) (S, error)
	For  func() any
	// Due says before each question whether there is one, and may take its time over that. nil:
	// there always is.
	Due func(context.Context) bool
	// Ask asks once and takes in the answer. After an error its session is closed.
	Ask func(context.Context, S) error
	// Failed takes in why there is no answer.
	Failed func(error)
}

// Process is one process of a server.
type Process struct {
	PID  int
	Name string          // the pid, "@" and the start time of proc(5)
	Wait *sync.WaitGroup // for what is asked of it
	// Hangs says whether the server is known to give no answer: then it is not asked. nil for
	// the purpose that finds out.
	Hangs func() bool
}

// Subscribe asks a process for a purpose until ctx ends, and then ends the session. It waits
// for neither: the server may hang.
func Subscribe[S Session](ctx context.Context, of Process, p Purpose[S]) {
	of.Wait.Go(func() { (&subscription[S]{Purpose: p, process: of}).run(ctx) })
}

type subscription[S Session] struct {
	Purpose[S]
	process Process
	open    bool
	session S
	of      any           // what the session was opened for
	closed  chan struct{} // by the end of the session before; nil: there was none
}

func (s *subscription[S]) run(ctx context.Context) {
	defer s.close()
	for {
		timer := time.NewTimer(s.Every)
		err := s.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.close()
			s.Failed(err)
		}
		select {
		case <-ctx.Done():
		case <-s.Poked:
		case <-timer.C:
		}
		if timer.Stop(); ctx.Err() != nil {
			return
		}
	}
}

// ask asks once. A process that a signal has stopped, or that is known to hang, is not asked,
// and its session kept: what waits at its door while nobody opens is a pile as well.
func (s *subscription[S]) ask(ctx context.Context) (err error) {
	if s.Due != nil && !s.Due(ctx) {
		return nil
	}
	if s.process.stopped() || s.process.Hangs != nil && s.process.Hangs() {
		s.Failed(ErrUnanswered)
		return nil
	}
	var of any
	if s.For != nil {
		of = s.For()
	}
	if !reflect.DeepEqual(of, s.of) {
		s.close()
	}
	ctx, cancel := context.WithTimeout(ctx, s.Limit())
	defer cancel()
	if !s.open && s.closed != nil {
		select {
		case <-s.closed:
		case <-ctx.Done():
			return ErrUnanswered
		}
	}
	if !s.open {
		if s.session, err = s.Open(ctx); err == nil {
			s.open, s.of = true, of
		}
	}
	if err == nil {
		err = s.Ask(ctx, s.session)
	}
	// EAGAIN: nobody takes the sessions that wait at the socket already.
	if err != nil && (ctx.Err() != nil || errors.Is(err, syscall.EAGAIN)) {
		err = fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	return err
}

// close ends the session without waiting: a server that hangs says no goodbye.
func (s *subscription[S]) close() {
	if !s.open {
		return
	}
	session, closed := s.session, make(chan struct{})
	s.open, s.closed = false, closed
	s.process.Wait.Go(func() { session.Close(); close(closed) })
}

// stopped says whether a process is in the state T, in which a signal has put it: there is
// no need to ask it. One that has the pid of another is not.
func (p Process) stopped() bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return false
	}
	// Fields 3 and 22 of proc(5); the command's name, which ends at the last ), may hold
	// anything.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	const stateField, startField = 0, 22 - 3
	return len(fields) > startField && fields[stateField] == "T" && fmt.Sprintf("%d@%s", p.PID, fields[startField]) == p.Name
}
