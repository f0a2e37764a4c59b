package pulse

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Pulse is a client that writes a numbered row every 10 ms, each in a transaction of its
// own, and remembers when each was begun and acknowledged. It logs in again after every
// error. A number is tried once, and nothing forbids the table to have it twice: so an
// acknowledged row must be there exactly once, and one that failed at most once.
type Pulse struct {
	login Login
	table string // its own

	mu     sync.Mutex // guards the rest
	beats  []Beat
	tried  int64
	errs   []Failure
	ended  time.Time          // zero while it writes
	cancel context.CancelFunc // ends the writing after the row that is under way
	abort  context.CancelFunc // and this one ends that too
	done   chan struct{}
}

// Beat is one row that was acknowledged.
type Beat struct {
	N            int64
	Began, Acked time.Time
}

// Failure is a login or a write that failed.
type Failure struct {
	At  time.Time
	Err error
}

// Every is how often it writes; while one row waits no other is begun.
const Every = 10 * time.Millisecond

// tryTime bounds the wait for one row, and endTime that for the last one: an answer that
// nobody waits for makes a row that is there without having been acknowledged.
const (
	tryTime = 5 * time.Second
	endTime = time.Second
)

// New writes nothing yet, into a table that has one column n of numbers and no rows. The
// endpoint of an instance stays what it is, so it is asked for once.
func New(l Login, table string) *Pulse { return &Pulse{login: l, table: table} }

// Start writes until Stop.
func (p *Pulse) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	work, abort := context.WithCancel(context.Background())
	done := make(chan struct{})
	p.mu.Lock()
	p.cancel, p.abort, p.done, p.ended = cancel, abort, done, time.Time{}
	p.mu.Unlock()
	go func() {
		defer close(done)
		p.run(ctx, work)
	}()
}

// Stop ends the writing; it may be called twice.
func (p *Pulse) Stop() {
	p.mu.Lock()
	cancel, abort, done := p.cancel, p.abort, p.done
	p.cancel = nil
	p.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	late := time.AfterFunc(endTime, abort)
	<-done
	late.Stop()
	abort()
	p.mu.Lock()
	p.ended = time.Now()
	p.mu.Unlock()
}

func (p *Pulse) run(ctx, work context.Context) {
	tick := time.NewTicker(Every)
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
			s, err = Open(work, p.login)
		}
		if err == nil {
			err = p.Attempt(work, s)
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
		p.errs = append(p.errs, Failure{time.Now(), err})
	}
}

// Attempt writes the next row on a session of the caller.
func (p *Pulse) Attempt(ctx context.Context, s Session) error {
	p.mu.Lock()
	p.tried++
	n := p.tried
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, tryTime)
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
		if !e.At.Before(from) {
			count, newest = count+1, e.Err
		}
	}
	return count, newest
}

// Failures are the logins and writes that failed from a moment on, in order.
func (p *Pulse) Failures(from time.Time) []Failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := slices.IndexFunc(p.errs, func(e Failure) bool { return !e.At.Before(from) })
	if n < 0 {
		return nil
	}
	return slices.Clone(p.errs[n:])
}
