//go:build integration

package mariadb

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/guard"
)

// Each client numbers its rows from its own thousand thousands on.
const (
	loadClients = 8
	loadTime    = 2 * time.Second
	loadFirst   = 1_000_000
)

// inserters are clients that insert until their server is gone.
type inserters struct {
	clients      sync.WaitGroup
	stop         context.CancelFunc
	acknowledged [loadClients]int
}

// startLoad returns after loadTime.
func startLoad(t *testing.T, p pair) *inserters {
	t.Helper()
	db, err := open(p.writer.Login())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	l := &inserters{stop: stop}
	for c := range loadClients {
		l.clients.Go(func() {
			for n := 0; ; n++ {
				if _, err := db.ExecContext(ctx, "INSERT INTO t VALUES (?, 'load')", (c+1)*loadFirst+n); err != nil {
					return
				}
				l.acknowledged[c]++
			}
		})
	}
	if err := guard.Pause(t.Context(), loadTime); err != nil {
		t.Fatal(err)
	}
	return l
}

// check ends the clients and looks for what they were told is there, in the server that has
// taken over; then the former writer becomes its follower.
func (l *inserters) check(t *testing.T, p pair) {
	t.Helper()
	l.stop()
	l.clients.Wait()
	began := time.Now()
	p.promote(t)
	t.Logf("promoted in %v, after %v rows", time.Since(began), l.acknowledged)
	for c, want := range l.acknowledged {
		first := (c + 1) * loadFirst
		got := p.follower.MustQuery(t, fmt.Sprintf("SELECT COUNT(*) FROM t WHERE id >= %d AND id < %d", first, first+want))
		if got != fmt.Sprint(want) {
			t.Errorf("client %d: %s rows of %d that were acknowledged", c, got, want)
		}
	}
	p.follower.MustQuery(t, "INSERT INTO t VALUES (600, 'of the new writer')")
	p.rejoin(t)
	awaitRow(t, p.writer, 600)
	same := "SELECT COUNT(*), SUM(id) FROM shop.t"
	if a, b := looking(t, p.writer, same), looking(t, p.follower, same); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("the former writer has %v, the new one %v", a, b)
	}
}

// With a writer that dies at some moment, whatever was acknowledged is in the server that
// takes over.
func TestGroupLosesNothing(t *testing.T) {
	enginetest.OnceIsEnough(t)
	p := newPair(t)
	p.waitForFollower(t)
	l := startLoad(t, p)
	p.writer.Crash(t)
	l.check(t, p)
}

// One that yields stops cleanly, clients or not, and its follower has all.
func TestGroupYields(t *testing.T) {
	enginetest.OnceIsEnough(t)
	p := newPair(t)
	p.waitForFollower(t)
	l := startLoad(t, p)
	p.writer.Want.Generation++
	p.writer.Want.Role.Duty = kurabe.DutyStepDown
	p.writer.Satisfy(t)
	l.check(t, p)
}

// One that is stopped, or restarted, stops as cleanly as one that yields.
func TestGroupStopsUnderLoad(t *testing.T) {
	enginetest.OnceIsEnough(t)
	p := newPair(t)
	p.waitForFollower(t)
	l := startLoad(t, p)
	p.writer.Want.Generation++
	p.writer.Want.Goal = kurabe.GoalStopped
	p.writer.Satisfy(t)
	o, err := p.writer.Lifecycle.Observe(t.Context(), p.writer.Want)
	if err != nil || !o.Applied.Stopped {
		t.Errorf("it has not stopped cleanly: %+v, %v", o.Applied, err)
	}
	p.writer.Want.Goal = kurabe.GoalRunning
	l.check(t, p)
}
