package agent

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/replication"
	"kurabe/internal/engine"
)

// testLeases is the service's word and the guards of a host, in virtual time.
type testLeases struct {
	b     *bed
	began time.Time

	mu     sync.Mutex // guards the rest
	grants bool       // each look at it finds a lease of a whole length
	wanted map[kurabe.InstanceID]kurabe.Epoch
	until  int64
	guard  *testGuard // nil: there is none
	opened int
}

// testGuard ends the server with its lease.
type testGuard struct {
	of    *testLeases
	until int64
	timer *time.Timer
	done  chan struct{}
}

func (l *testLeases) now() int64 { return int64(time.Since(l.began)) + int64(time.Hour) }

func (l *testLeases) Want(id kurabe.InstanceID, epoch kurabe.Epoch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted[id] = epoch
}

func (l *testLeases) Drop(id kurabe.InstanceID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.wanted, id)
}

func (l *testLeases) Until(id kurabe.InstanceID) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, asked := l.wanted[id]; asked && l.grants {
		l.until = l.now() + int64(kurabe.LeaseTime)
	}
	return l.until
}

// Confirm is answered while leases are granted.
func (l *testLeases) Confirm(ctx context.Context) error {
	for {
		l.mu.Lock()
		answers := l.grants
		l.mu.Unlock()
		if answers || ctx.Err() != nil {
			return ctx.Err()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (l *testLeases) setGrants(grants bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants = grants
}

func (l *testLeases) Find(context.Context, kurabe.Assignment) (Guard, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.guard == nil {
		return nil, nil
	}
	return l.guard, nil
}

func (l *testLeases) Open(context.Context, kurabe.Assignment) (Guard, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.guard == nil {
		l.guard = &testGuard{of: l, done: make(chan struct{})}
		l.opened++
	}
	return l.guard, nil
}

func (g *testGuard) Extend(_ context.Context, until int64) error {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.until = until
	rest := time.Duration(until - g.of.now())
	if g.timer == nil {
		g.timer = time.AfterFunc(rest, g.end)
	}
	g.timer.Reset(rest)
	return nil
}

func (g *testGuard) end() {
	g.of.b.engine.Crash("db-1")
	g.gone()
}

func (g *testGuard) gone() {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	if g.of.guard == g {
		g.of.guard = nil
		close(g.done)
	}
}

func (g *testGuard) Disarm(context.Context) error {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.gone()
	return nil
}

func (g *testGuard) Until(context.Context) (int64, error) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	return g.until, nil
}

func (g *testGuard) Done() <-chan struct{} { return g.done }

// leasedWriter is a primary whose standby is on another host.
func leasedWriter(generation kurabe.Generation, startSeq int64) kurabe.Assignment {
	a := primary(generation, startSeq)
	a.Role.Leased = true
	return a
}

// inLease has a primary that is guarded.
func inLease(t *testing.T, test func(*bed)) {
	t.Helper()
	inGroup(t, func(b *bed) {
		b.leases = &testLeases{b: b, began: time.Now(), grants: true, wanted: map[kurabe.InstanceID]kurabe.Epoch{}}
		b.startWriter()
		b.send(leasedWriter(3, 0))
		time.Sleep(time.Second)
		synctest.Wait()
		if r := b.lastMember("db-1"); !r.Running || !r.Role.Leased || b.leases.guard == nil {
			b.Fatalf("it is not guarded: %+v, %+v", r, r.Role)
		}
		test(b)
	})
}

func TestLeaseGoesOn(t *testing.T) {
	inLease(t, func(b *bed) {
		time.Sleep(time.Minute)
		synctest.Wait()
		if r := b.lastMember("db-1"); !r.Running || !r.Role.Leased || r.Crashes > 0 || b.leases.opened != 1 {
			b.Errorf("after a minute: %+v, %d guards", r, b.leases.opened)
		}
	})
}

// Neither the service nor the standby is heard: the server ends, and stays down until it is
// ordered to start under a new lease.
func TestLeaseEnds(t *testing.T) {
	inLease(t, func(b *bed) {
		b.leases.setGrants(false)
		time.Sleep(kurabe.LeaseTime + time.Second)
		synctest.Wait()
		if r := b.lastMember("db-1"); r.Running || r.Role.Leased {
			b.Fatalf("it goes on without a lease: %+v, %+v", r, r.Role)
		}
		b.send(leasedWriter(4, 1))
		time.Sleep(time.Second)
		synctest.Wait()
		if starts := b.engine.Starts("db-1"); starts != 1 {
			b.Fatalf("it was started without a lease, %d times", starts)
		}
		b.leases.setGrants(true)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if r := b.lastMember("db-1"); !r.Running || !r.Role.Leased || b.engine.Starts("db-1") != 2 {
			b.Errorf("under a new lease: %d starts, %+v, %+v", b.engine.Starts("db-1"), r, r.Role)
		}
	})
}

// The service is away, and the standby is seen to follow.
func TestLeaseByTheStandby(t *testing.T) {
	inLease(t, func(b *bed) {
		follows := true
		var mu sync.Mutex
		b.group.say("db-1", func(context.Context) (engine.RoleView, error) {
			mu.Lock()
			defer mu.Unlock()
			v := obeys(leasedWriter(3, 0), b.leases.now())
			f := v.Followers[second]
			if f.FollowedAt = b.leases.now(); !follows {
				f.FollowedAt = int64(time.Hour) // long ago
			}
			v.Followers[second] = f
			return v, nil
		})
		b.leases.setGrants(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if r := b.lastMember("db-1"); !r.Running || !r.Role.Leased {
			b.Fatalf("its standby vouches for it: %+v, %+v", r, r.Role)
		}
		mu.Lock()
		follows = false
		mu.Unlock()
		time.Sleep(kurabe.StandbyLeaseTime + time.Second)
		synctest.Wait()
		if r := b.lastMember("db-1"); r.Running {
			b.Errorf("nobody vouches for it: %+v, %+v", r, r.Role)
		}
	})
}

// A primary that hangs is ended before another one can take its place.
func TestLeaseOfOneThatHangs(t *testing.T) {
	inLease(t, func(b *bed) {
		b.group.say("db-1", hangs)
		time.Sleep(replication.StuckAfter + 2*time.Second)
		synctest.Wait()
		if r := b.lastMember("db-1"); r.Running || r.Role.Unresponsive {
			b.Errorf("it is left to answer again: %+v, %+v", r, r.Role)
		}
	})
}

// A guard that dies is followed by another one; one that is needed no more ends without its
// server.
func TestGuardOfALease(t *testing.T) {
	inLease(t, func(b *bed) {
		b.leases.mu.Lock()
		guard := b.leases.guard
		b.leases.mu.Unlock()
		guard.timer.Stop()
		guard.gone()
		b.leases.setGrants(false)
		time.Sleep(2 * leaseEvery)
		synctest.Wait()
		// The next one takes over what was enforced, without another word.
		if until, _ := b.leases.guard.Until(b.Context()); b.leases.opened != 2 || until != guard.until {
			b.Fatalf("%d guards after the first has died, until %d; it was %d", b.leases.opened, until, guard.until)
		}
		b.leases.setGrants(true)
		b.send(primary(4, 0))
		time.Sleep(time.Minute)
		synctest.Wait()
		if r := b.lastMember("db-1"); !r.Running || r.Role.Leased || b.leases.guard != nil {
			b.Errorf("without a lease to keep: %+v, %+v", r, r.Role)
		}
	})
}

// The next agent finds the guard, and a server that nobody guards and nobody grants a lease to
// is ended.
func TestLeaseAfterARestart(t *testing.T) {
	inLease(t, func(b *bed) {
		_ = b.stop() // it says that it was told to
		b.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		if r := b.lastMember("db-1"); !r.Running || !r.Role.Leased || b.leases.opened != 1 {
			b.Fatalf("%d guards, %+v", b.leases.opened, r)
		}
		_ = b.stop() // it says that it was told to
		guard := b.leases.guard
		guard.timer.Stop()
		guard.gone()
		b.leases.setGrants(false)
		b.leases.until = 0
		b.start()
		time.Sleep(2 * kurabe.LeaseTime)
		synctest.Wait()
		if r := b.lastMember("db-1"); r.Running {
			b.Errorf("a server without guard and lease goes on: %+v", r)
		}
	})
}
