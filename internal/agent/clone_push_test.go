package agent

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

// feedingEngine brings copies as the test says.
type feedingEngine struct {
	*watchedEngine

	mu    sync.Mutex // guards the rest
	calls []kurabe.InstanceID
	under int
	hold  chan struct{}
}

func (e *feedingEngine) Feed(ctx context.Context, _ kurabe.Assignment, to engine.Ask) error {
	e.mu.Lock()
	e.calls = append(e.calls, to.ID)
	e.under++
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.under--
		e.mu.Unlock()
	}()
	select {
	case <-e.hold:
		return errTest
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *feedingEngine) state() (calls []kurabe.InstanceID, under int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(slices.Values(e.calls)), e.under
}

// TestPushesWhoAsks: one copy at a time for each follower that asks, again after a pause,
// and none for longer than the server runs.
func TestPushesWhoAsks(t *testing.T) {
	inGroup(t, func(b *bed) {
		e := &feedingEngine{watchedEngine: b.group, hold: make(chan struct{})}
		asks := func(context.Context) (engine.RoleView, error) {
			v := engine.RoleView{Writing: true, Followers: map[kurabe.InstanceID]engine.FollowerView{}}
			for _, id := range []kurabe.InstanceID{second, third} {
				v.Asks = append(v.Asks, engine.Ask{ID: id, At: netip.MustParseAddrPort("127.0.0.1:3306")})
			}
			return v, nil
		}
		b.feeding = e
		b.startWriter()
		after := func(d time.Duration, calls, under int) {
			t.Helper()
			time.Sleep(d) // virtual
			synctest.Wait()
			if c, u := e.state(); len(c) != calls || u != under {
				t.Errorf("%v were asked for, %d are under way; it wants %d and %d", c, u, calls, under)
			}
		}
		b.group.say("db-1", asks)
		after(time.Minute, 2, 2)
		e.hold <- struct{}{} // one fails
		after(clonePushPause/2, 2, 1)
		after(clonePushPause, 3, 2)
		b.engine.Crash("db-1")
		after(clonePushPause, 3, 0)
	})
}
