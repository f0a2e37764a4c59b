package fake

import (
	"errors"
	"fmt"
	"slices"

	"kurabe"
)

// ErrHangs is what is asked of a server that does not answer: nobody says no either.
var ErrHangs = errors.New("the server does not answer")

// Session is a client's session with one process of a server that writes.
type Session struct {
	e       *Engine
	id      kurabe.InstanceID
	process string
}

// Connect opens a session. A server that follows, or keeps clients out, refuses.
func (e *Engine) Connect(id kurabe.InstanceID) (*Session, error) {
	e.net.Lock()
	defer e.net.Unlock()
	i := e.get(id)
	if i.frozen != nil {
		return nil, ErrHangs
	}
	if err := i.takesClients(); err != nil {
		return nil, err
	}
	return &Session{e, id, i.o.Process}, nil
}

// Process tells the session's process from any other.
func (s *Session) Process() string { return s.process }

func (i *instance) takesClients() error {
	if !i.o.Running || !i.o.Applied.Ready || i.o.Follower || i.runs.held {
		return fmt.Errorf("%s takes no writes", i.id)
	}
	return nil
}

// server is the session's, of which it demands that it is the same process and answers.
func (s *Session) server() (*instance, error) {
	i := s.e.get(s.id)
	switch {
	case !i.o.Running || i.o.Process != s.process:
		return nil, fmt.Errorf("the server of %s has ended", s.id)
	case i.frozen != nil:
		return nil, ErrHangs
	}
	return i, nil
}

// Commit sends a commit and says by which number it is known: it is in the server's log, and
// its client waits until it is Acknowledged.
func (s *Session) Commit() (number int64, err error) {
	s.e.net.Lock()
	defer s.e.net.Unlock()
	i, err := s.server()
	if err != nil {
		return 0, err
	}
	if s.e.full() {
		s.e.crash(i) // as a server does that cannot write its log
		return 0, fmt.Errorf("the disk of %s is full", s.id)
	}
	s.e.net.writes++
	i.write(s.e.net.writes)
	return s.e.net.writes, nil
}

// Acknowledged says whether a commit of this session is. An error says that nobody will ever
// say so.
func (s *Session) Acknowledged(number int64) (bool, error) {
	s.e.net.Lock()
	defer s.e.net.Unlock()
	i, err := s.server()
	if err != nil {
		return false, err
	}
	s.e.net.flow()
	for _, n := range slices.Backward(i.log[:i.show()]) {
		if n <= number { // a writer's own are in order
			return n == number, nil
		}
	}
	return false, nil
}

// Visible are the commits that a transaction of the session sees, in order: those of this
// process whose wait has ended, and all of before. The caller must not change it.
func (s *Session) Visible() ([]int64, error) {
	s.e.net.Lock()
	defer s.e.net.Unlock()
	i, err := s.server()
	if err != nil {
		return nil, err
	}
	s.e.net.flow()
	return slices.Clip(i.log[:i.show()]), nil
}

// show moves what clients of a writer see as far as what is waited for allows: a commit is
// waited for until any of those has it, and shows then.
func (i *instance) show() int {
	end := i.covered()
	i.visible = max(i.visible, end)
	return i.visible
}

// covered is how much of a log needs to be waited for no more.
func (i *instance) covered() int {
	if len(i.waits) == 0 || i.on.net.flaws&AcksAlone != 0 {
		return len(i.log)
	}
	end := 0
	for _, id := range i.waits {
		end = max(end, i.answers[id].flushed)
	}
	return end
}

// Flaw is what an engine does wrong so that a test of tests can see whether it is noticed.
type Flaw int

// AcksAlone: a commit is acknowledged though nobody waited for has it. Lies: a follower says
// that it has what was sent, and drops every hundredth commit. Outlives: a server that is fenced, or whose lease ends, goes on.
const (
	AcksAlone Flaw = 1 << iota
	Lies
	Outlives
)

// Break gives all engines of the network flaws.
func (e *Engine) Break(flaws Flaw) {
	e.net.Lock()
	defer e.net.Unlock()
	e.net.flaws = flaws
}

// Has says whether the engines of the network have a flaw.
func (e *Engine) Has(f Flaw) bool {
	e.net.Lock()
	defer e.net.Unlock()
	return e.net.flaws&f != 0
}
