package failover

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kurabe/internal/harness"
	"kurabe/test/bench/bed"
)

const (
	// readClients read at a reader endpoint, which gives each of two readers half of them.
	readClients = 4
	readEvery   = 10 * time.Millisecond
	// readTry bounds the wait for one answer, as that for a row is.
	readTry = 5 * time.Second
	// readsAfter are the answers that each has to have after a loss before that is over.
	readsAfter = 20
)

// whichReader asks a server for what no other one of its cluster says.
var whichReader = map[string]string{
	bed.Postgres: "SELECT host(inet_server_addr())",
	bed.MariaDB:  "SELECT @@server_id",
}

// reads are clients that keep a session each and ask by it every 10 ms, and log in again when
// they are not answered.
type reads struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex // guards the rest
	answers  [readClients][]time.Time
	at       [readClients]string // by whom it was answered last
	newest   error
	endedNow time.Time // zero while they read
}

func readCluster(ctx context.Context, l harness.Login) *reads {
	ctx, cancel := context.WithCancel(ctx)
	r := &reads{cancel: cancel}
	for n := range readClients {
		r.done.Go(func() { r.client(ctx, l, n) })
	}
	return r
}

// readBoth begins them when both readers take sessions: of those that begin while one does not
// yet, all are at the other one, and stay there.
func readBoth(ctx context.Context, l harness.Login) (*reads, error) {
	list := readCluster(ctx, l)
	err := until(ctx, func() error {
		if err := until(ctx, list.served); err != nil {
			return err
		}
		err := list.spread()
		if err != nil {
			list.end()
			list = readCluster(ctx, l)
		}
		return err
	})
	return list, err
}

func (r *reads) client(ctx context.Context, l harness.Login, n int) {
	var s harness.Session
	defer func() {
		if s != nil {
			s.Close()
		}
	}()
	for ctx.Err() == nil {
		err := r.ask(ctx, l, &s, n)
		if err != nil && s != nil {
			s.Close()
			s = nil
		}
		if err != nil && ctx.Err() == nil {
			r.mu.Lock()
			r.newest = err
			r.mu.Unlock()
		}
		_ = bed.Wait(ctx, readEvery)
	}
}

func (r *reads) ask(ctx context.Context, l harness.Login, s *harness.Session, n int) (err error) {
	limited, cancel := context.WithTimeout(ctx, readTry)
	defer cancel()
	if *s == nil {
		if *s, err = harness.Open(limited, l); err != nil {
			*s = nil
			return err
		}
	}
	rows, err := (*s).Rows(limited, whichReader[l.Engine])
	if err != nil {
		return err
	}
	r.answered(n, rows[0], time.Now())
	return nil
}

func (r *reads) answered(n int, by string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[n], r.at[n] = append(r.answers[n], at), by
}

// end ends them; it may be called twice.
func (r *reads) end() {
	r.cancel()
	r.done.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.endedNow.IsZero() {
		r.endedNow = time.Now()
	}
}

// served says who has not been answered yet.
func (r *reads) served() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, name := range r.at {
		if name == "" {
			return fmt.Errorf("client %d is not answered, the newest error: %v", n, r.newest)
		}
	}
	return nil
}

// spread says what is missing until two readers are read at.
func (r *reads) spread() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	by := map[string]int{}
	for _, name := range r.at {
		by[name]++
	}
	if by[""] > 0 || len(by) != 2 {
		return fmt.Errorf("clients read at %v, the newest error: %v", by, r.newest)
	}
	return nil
}

// answeredSince says who was not answered so often since a moment.
func (r *reads) answeredSince(from time.Time, times int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, list := range r.answers {
		if len(list) < times || !list[len(list)-times].After(from) {
			return fmt.Errorf("client %d is not answered, the newest error: %v", n, r.newest)
		}
	}
	return nil
}

// gap is the longest time without an answer, of the client for which it was longest, from a
// moment on and counted from its last answer before that.
func (r *reads) gap(from time.Time) (longest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.endedNow
	if now.IsZero() {
		now = time.Now()
	}
	for _, list := range r.answers {
		last := from
		for n, at := range append(list[:len(list):len(list)], now) {
			if at.After(from) {
				longest = max(longest, at.Sub(last))
			}
			if n < len(list) {
				last = at
			}
		}
	}
	return longest
}
