package load

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"kurabe/lab/load/script"
	"kurabe/lab/result"
	"kurabe/lab/study"
)

// fakeServer gives sessions that answer at once, unless answer says otherwise.
type fakeServer struct {
	answer func(f *fakeSession, text string) error // nil for at once

	mu      sync.Mutex // guards what follows
	opened  int
	open    int
	refuse  error
	until   int      // so many openings are refused; 0 for all
	asked   []string // statements with variables in them, if keep
	keep    bool
	started int // statements
}

type fakeSession struct {
	server *fakeServer
	gone   chan struct{}
	once   sync.Once
	buffer []byte
	task   *task
}

func (s *fakeServer) opener() opener {
	return func(context.Context) (session, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.refuse; err != nil {
			if s.until--; s.until == 0 {
				s.refuse = nil
			}
			return nil, err
		}
		s.opened++
		s.open++
		return &fakeSession{server: s, gone: make(chan struct{})}, nil
	}
}

func (f *fakeSession) do(st *script.Statement, vars []int64) error {
	if f.server.answer == nil && !f.server.keep {
		return nil
	}
	f.buffer = st.AppendText(f.buffer[:0], vars)
	return f.take(string(f.buffer))
}

func (f *fakeSession) take(text string) error {
	f.server.mu.Lock()
	f.server.started++
	if f.server.keep {
		f.server.asked = append(f.server.asked, text)
	}
	f.server.mu.Unlock()
	if f.server.answer == nil {
		return nil
	}
	return f.server.answer(f, text)
}

func (f *fakeSession) rollback() error {
	if f.server.answer == nil && !f.server.keep {
		return nil
	}
	return f.take("ROLLBACK")
}

func (f *fakeSession) lost() bool {
	select {
	case <-f.gone:
		return true
	default:
		return false
	}
}

func (f *fakeSession) enter(t *task) error { f.task = t; return nil }
func (f *fakeSession) leave()              { f.task = nil }
func (f *fakeSession) interrupt()          { f.once.Do(func() { close(f.gone) }) }

func (f *fakeSession) close() {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	f.server.open--
}

var errGone = errors.New("the connection is gone")

// hold answers when the channel is closed, or the connection is.
func (f *fakeSession) hold(until <-chan struct{}) (err error) {
	f.task.outside(func() {
		select {
		case <-until:
		case <-f.gone:
			err = errGone
		}
	})
	return err
}

// stall keeps the session busy.
func (f *fakeSession) stall(d time.Duration) error {
	due := make(chan struct{})
	timer := time.AfterFunc(d, func() { close(due) })
	defer timer.Stop()
	return f.hold(due)
}

func openLoad(clients int, rate float64) study.Workload {
	return study.Workload{Name: "w", Generator: study.GeneratorOwn, Script: "SELECT 1;", Mode: study.ModeOpen, Arrival: study.ArrivalConstant, Clients: clients, Rate: rate}
}

func closedLoad(clients int) study.Workload {
	return study.Workload{Name: "w", Generator: study.GeneratorOwn, Script: "SELECT 1;", Mode: study.ModeClosed, Clients: clients}
}

func generator(t testing.TB, w study.Workload) *own {
	t.Helper()
	g, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	return g.(*own)
}

// loadOf runs and gives the outcome, with all sessions closed.
func loadOf(t testing.TB, s *fakeServer, w study.Workload, o Options) *Outcome {
	t.Helper()
	out, err := generator(t, w).load(context.Background(), s.opener(), o)
	if err != nil {
		t.Fatal(err)
	}
	if s.open != 0 {
		t.Errorf("%d sessions are open after the run", s.open)
	}
	return out
}

func phase(t testing.TB, out *Outcome, name string) result.Phase {
	t.Helper()
	for _, p := range out.Phases {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no phase %s in %+v", name, out.Phases)
	return result.Phase{}
}

// quantile of an encoded histogram, ms.
func quantile(t testing.TB, text string, q float64) float64 {
	t.Helper()
	h, err := result.DecodeHistogram(text)
	if err != nil {
		t.Fatal(err)
	}
	return float64(h.ValueAtQuantile(q)) / 1000
}

func countOf(t testing.TB, text string) int64 {
	t.Helper()
	h, err := result.DecodeHistogram(text)
	if err != nil {
		t.Fatal(err)
	}
	return h.TotalCount()
}

func failures(l *result.Load) int64 {
	sum := int64(0)
	for _, n := range l.Errors {
		sum += n
	}
	return sum
}

// balanced checks that nothing vanished.
func balanced(t testing.TB, l *result.Load) {
	t.Helper()
	if l.Offered != l.Transactions+l.Skipped+failures(l) {
		t.Errorf("offered %d is not answered %d + skipped %d + failed %v", l.Offered, l.Transactions, l.Skipped, l.Errors)
	}
}

func wrong(err error, part string) bool { return err == nil || !strings.Contains(err.Error(), part) }
