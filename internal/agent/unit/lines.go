package unit

import (
	"context"
	"sync"
)

// line is who waits for one thing; turn holds one entry while somebody has it.
type line struct {
	turn  chan struct{}
	users int
}

// Lines let those in one after the other that ask for the same thing.
type Lines struct {
	mu      sync.Mutex // guards waiting
	waiting map[string]*line
}

// Enter waits for the turn; leave gives it to the next. The error is the reason
// that ctx gives.
func (l *Lines) Enter(ctx context.Context, thing string) (leave func(), err error) {
	l.mu.Lock()
	q, ok := l.waiting[thing]
	if !ok {
		if l.waiting == nil {
			l.waiting = map[string]*line{}
		}
		q = &line{turn: make(chan struct{}, 1)}
		l.waiting[thing] = q
	}
	q.users++
	l.mu.Unlock()
	drop := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if q.users--; q.users == 0 {
			delete(l.waiting, thing)
		}
	}
	select {
	case q.turn <- struct{}{}:
		return func() { <-q.turn; drop() }, nil
	case <-ctx.Done():
		drop()
		return nil, context.Cause(ctx)
	}
}
