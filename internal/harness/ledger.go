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

// Ledger is a client that writes numbered rows, each in a transaction of its own,
// and remembers which of them were acknowledged. It logs in again after every
// error, as applications do.
type Ledger struct {
	instance *Instance
	login    atomic.Pointer[Login]

	mu     sync.Mutex // guards the rest
	acked  []int64
	tried  int64
	errs   int
	newest error
	last   time.Time     // of the newest acknowledgement
	gap    time.Duration // the longest time between two

	cancel context.CancelFunc
	done   chan struct{}
}

// writePause keeps the ledger from being the load of a test.
const (
	writePause = 3 * time.Millisecond
	loginPause = 20 * time.Millisecond
	writeTime  = 5 * time.Second
)

// NewLedger makes the table and writes nothing yet.
func NewLedger(t testing.TB, i *Instance) *Ledger {
	t.Helper()
	l := &Ledger{instance: i}
	l.Follow(t)
	i.Query(t, "CREATE TABLE IF NOT EXISTS ledger (n bigint PRIMARY KEY)")
	return l
}

// Follow has the ledger use the endpoint and password that hold now.
func (l *Ledger) Follow(t testing.TB) {
	t.Helper()
	login := l.instance.Login(t)
	l.login.Store(&login)
}

// Write writes some rows now, all of which must be acknowledged.
func (l *Ledger) Write(t testing.TB, rows int) {
	t.Helper()
	s, err := Open(t.Context(), *l.login.Load())
	if err != nil {
		t.Fatalf("ledger: %v", err)
	}
	defer s.Close()
	for range rows {
		if err := l.write(t.Context(), s); err != nil {
			t.Fatalf("ledger: %v", err)
		}
	}
}

// Start writes until Stop.
func (l *Ledger) Start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel, l.done = cancel, make(chan struct{})
	l.mu.Lock()
	l.last, l.gap, l.errs = time.Time{}, 0, 0
	l.mu.Unlock()
	go func() {
		defer close(l.done)
		for ctx.Err() == nil {
			l.session(ctx)
			Pause(ctx, loginPause)
		}
	}()
	t.Cleanup(l.Stop)
}

// Stop ends the writing; it may be called twice.
func (l *Ledger) Stop() {
	if l.cancel != nil {
		l.cancel()
		<-l.done
	}
}

func (l *Ledger) session(ctx context.Context) {
	s, err := Open(ctx, *l.login.Load())
	if err != nil {
		l.failed(ctx, err)
		return
	}
	defer s.Close()
	for ctx.Err() == nil {
		if err := l.write(ctx, s); err != nil {
			l.failed(ctx, err)
			return
		}
		Pause(ctx, writePause)
	}
}

// Pause waits, and no longer than ctx.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (l *Ledger) failed(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() == nil {
		l.errs++
		l.newest = err
	}
}

// write writes the next row.
func (l *Ledger) write(ctx context.Context, s Session) error {
	l.mu.Lock()
	l.tried++
	n := l.tried
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	if err := s.Exec(ctx, "INSERT INTO ledger VALUES ("+strconv.FormatInt(n, 10)+")"); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.last.IsZero() {
		l.gap = max(l.gap, now.Sub(l.last))
	}
	l.last = now
	l.acked = append(l.acked, n)
	return nil
}

// Acked is how many rows were acknowledged.
func (l *Ledger) Acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// Errors are how many logins and writes failed since Start, and the newest one.
func (l *Ledger) Errors() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errs, l.newest
}

// Gap is the longest time without an acknowledgement since Start.
func (l *Ledger) Gap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.IsZero() {
		return 0
	}
	return max(l.gap, time.Since(l.last))
}

// WaitMore waits until so many more rows were acknowledged.
func (l *Ledger) WaitMore(t testing.TB, rows int) time.Duration {
	t.Helper()
	from := l.Acked()
	return Wait(t, availableTime, "the ledger goes on", func() string {
		if l.Acked() >= from+rows {
			return ""
		}
		_, err := l.Errors()
		return fmt.Sprintf("%d rows, %v", l.Acked(), err)
	})
}

// Verify demands that every acknowledged row is there, and none that was never
// written.
func (l *Ledger) Verify(t testing.TB) {
	t.Helper()
	l.Follow(t)
	s, err := Open(t.Context(), *l.login.Load())
	if err != nil {
		t.Fatalf("ledger: %v", err)
	}
	defer s.Close()
	rows, err := s.Rows(t.Context(), "SELECT n FROM ledger")
	if err != nil {
		t.Fatalf("ledger: %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	have := map[int64]bool{}
	for _, r := range rows {
		n, err := strconv.ParseInt(r, 10, 64)
		if err != nil || n < 1 || n > l.tried || have[n] {
			t.Errorf("ledger: row %q was never written", r)
		}
		have[n] = true
	}
	lost := slices.DeleteFunc(slices.Clone(l.acked), func(n int64) bool { return have[n] })
	if len(lost) > 0 {
		t.Errorf("ledger: %d of %d acknowledged rows are lost: %v", len(lost), len(l.acked), lost[:min(len(lost), 10)])
	}
}

// WaitBack waits until the endpoint takes rows again.
func (l *Ledger) WaitBack(t testing.TB) time.Duration {
	t.Helper()
	return Wait(t, availableTime, "the endpoint serves", func() string {
		s, err := Open(t.Context(), *l.login.Load())
		if err != nil {
			return err.Error()
		}
		defer s.Close()
		if err := l.write(t.Context(), s); err != nil {
			return err.Error()
		}
		return ""
	})
}
