package harness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Pulse is a client that writes a numbered row every 10 ms, each in a transaction of its
// own, and remembers when each was begun and acknowledged. It logs in again after every
// error. A number is tried once, and nothing forbids the table to have it twice: so an
// acknowledged row must be there exactly once, and one that failed at most once.
type Pulse struct {
	login Login
	table string // its own: numbers begin anew with each pulse

	mu     sync.Mutex // guards the rest
	beats  []Beat
	tried  int64
	errs   []pulseError
	ended  time.Time // zero while it writes
	cancel context.CancelFunc
	done   chan struct{}
}

// Beat is one row that was acknowledged.
type Beat struct {
	N            int64
	Began, Acked time.Time
}

type pulseError struct {
	at  time.Time
	err error
}

// pulseEvery is how often it writes; while one row waits no other is begun.
const pulseEvery = 10 * time.Millisecond

// pulses numbers the tables.
var pulses atomic.Int64

// NewPulse makes the table and writes nothing yet. The endpoint of an instance stays what
// it is, so it is asked for once.
func NewPulse(ctx context.Context, l Login) (*Pulse, error) {
	s, err := Open(ctx, l)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p := &Pulse{login: l, table: fmt.Sprintf("pulse_%d", pulses.Add(1))}
	return p, s.Exec(ctx, "CREATE TABLE "+p.table+" (n bigint)")
}

// Pulse is a pulse that beats until the test ends.
func (i *Instance) Pulse(t testing.TB) *Pulse {
	t.Helper()
	p, err := NewPulse(t.Context(), i.Login(t))
	if err != nil {
		t.Fatalf("pulse: %v", err)
	}
	p.Start()
	t.Cleanup(p.Stop)
	return p
}

// Start writes until Stop.
func (p *Pulse) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	p.mu.Lock()
	p.cancel, p.done, p.ended = cancel, done, time.Time{}
	p.mu.Unlock()
	go func() {
		defer close(done)
		p.run(ctx)
	}()
}

// Stop ends the writing; it may be called twice.
func (p *Pulse) Stop() {
	p.mu.Lock()
	cancel, done := p.cancel, p.done
	p.cancel = nil
	p.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	<-done
	p.mu.Lock()
	p.ended = time.Now()
	p.mu.Unlock()
}

func (p *Pulse) run(ctx context.Context) {
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	var s Session
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			if s != nil {
				s.Close()
			}
			return
		}
		var err error
		if s == nil {
			s, err = Open(ctx, p.login)
		}
		if err == nil {
			err = p.Attempt(ctx, s)
		}
		if err == nil {
			continue
		}
		p.failed(ctx, err)
		if s != nil {
			s.Close()
			s = nil
		}
	}
}

func (p *Pulse) failed(ctx context.Context, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil {
		p.errs = append(p.errs, pulseError{time.Now(), err})
	}
}

// Attempt writes the next row on a session of the caller.
func (p *Pulse) Attempt(ctx context.Context, s Session) error {
	p.mu.Lock()
	p.tried++
	n := p.tried
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	began := time.Now()
	if err := s.Exec(ctx, "INSERT INTO "+p.table+" VALUES ("+strconv.FormatInt(n, 10)+")"); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beats = append(p.beats, Beat{n, began, time.Now()})
	return nil
}

// Beats are the rows that were acknowledged so far, in the order in which they were.
func (p *Pulse) Beats() []Beat {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.beats)
}

// Acked is how many rows were acknowledged so far.
func (p *Pulse) Acked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.beats)
}

// Errors are how many logins and writes failed from a moment on, and the newest one.
func (p *Pulse) Errors(from time.Time) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var newest error
	count := 0
	for _, e := range p.errs {
		if !e.at.Before(from) {
			count, newest = count+1, e.err
		}
	}
	return count, newest
}

// WaitMore waits until so many more rows were acknowledged.
func (p *Pulse) WaitMore(t testing.TB, rows int) time.Duration {
	t.Helper()
	from, began := p.Acked(), time.Now()
	return Wait(t, availableTime, "the pulse goes on", func() string {
		if now := p.Acked(); now < from+rows {
			n, err := p.Errors(began)
			return fmt.Sprintf("%d rows more, %d errors, the newest: %v", now-from, n, err)
		}
		return ""
	})
}
