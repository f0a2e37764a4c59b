package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/replication"
	"kurabe/internal/engine"
)

// tally is what the counter of an engine says; elsewhere what it was told last.
type tally struct {
	says      kurabe.ServerWaits
	elsewhere int64
	err       error
}

// tallied is an engine that counts the waits of its first server.
type tallied struct {
	*watchedEngine
	count tally // guarded by mu
}

func (e *tallied) CountWaits(a kurabe.Assignment) (engine.WaitCounter, error) {
	if a.Instance != "db-1" {
		return nil, nil
	}
	return e, nil
}

func (e *tallied) Read(_ context.Context, _ kurabe.Assignment, elsewhere int64) (kurabe.ServerWaits, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &e.count
	c.elsewhere = max(c.elsewhere, elsewhere)
	n := c.says
	n.Unreplicated = n.Sum() > c.elsewhere
	return n, c.err
}

// Commits that ended their wait early are told of within seconds, and whether another server has
// them: only by what it had flushed when it was asked after they were known.
func TestEndedWaitsAreTold(t *testing.T) {
	inGroup(t, func(b *bed) {
		e := &tallied{watchedEngine: b.group}
		b.waits = e
		b.startWriter()
		flushed := int64(1000)
		b.group.say("db-1", func(context.Context) (engine.RoleView, error) {
			v := obeys(primary(1, 0), 2000)
			b.group.mu.Lock()
			defer b.group.mu.Unlock()
			v.Followers[second] = engine.FollowerView{Streaming: true, Flushed: flushed}
			return v, nil
		})
		told := func(after time.Duration, count int64, alone bool) {
			t.Helper()
			time.Sleep(after) // virtual
			synctest.Wait()
			w := b.lastOf("db-1").Role.Waits
			if w == nil || w.Cancelled != count || w.Unreplicated != alone {
				t.Errorf("%+v, want %d, alone %v", w, count, alone)
			}
		}
		told(waitsEvery, 0, false)
		e.set(func(n *tally) { n.says.Cancelled = 2 })
		told(waitsEvery+replication.LookEvery, 2, true)
		e.set(func(*tally) { flushed = 2000 })
		told(2*replication.LookEvery, 2, false)
		e.set(func(n *tally) { n.says.Cancelled, flushed = 3, 1999 })
		told(2*replication.LookEvery, 2, false) // the next count comes after a pause
		told(waitsPause, 3, true)
		e.set(func(n *tally) { n.err = errTest })
		told(waitsPause, 3, true)
		e.set(func(n *tally) { n.err, flushed = nil, 2000 })
		told(waitsPause, 3, false)
		e.set(func(n *tally) {
			if n.elsewhere != 3 {
				t.Errorf("the counter knows of %d that are elsewhere", n.elsewhere)
			}
		})
	})
}

func (e *tallied) set(change func(*tally)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.count)
}
