package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
	"kurabe/internal/hostlink"
)

// An instance goes when its assignment says so, and what the host was told goes
// last: a death before that is followed by the removal again.
func TestAbsentIsRemoved(t *testing.T) {
	inBubble(t, func(b *bed) {
		tried := b.failAt(engine.StepRemoveHome, errTest)
		b.start()
		b.send(wanted(1))
		b.send(with(wanted(2), kurabe.GoalAbsent))
		if r := b.last(); len(tried()) != 1 || r.Absent || r.Done || r.Failure == nil || !b.engine.Left("db-1") {
			b.Errorf("a removal that fails: %d tries, report %+v", len(tried()), r)
		}
		b.wantSaved(2)
		b.stop()
		b.before(nil)
		b.start()
		if r := b.last(); !r.Absent || !r.Done || r.Running || r.Generation != 2 || b.engine.Left("db-1") {
			b.Errorf("removed: %+v, left %v", r, b.engine.Left("db-1"))
		}
		b.wantSaved(0)
		if len(b.link.dropped) > 0 {
			b.Error("the report is dropped before the planner has taken the assignment back")
		}
		b.link.updates <- hostlink.Update{Withdrawn: []kurabe.Ref{kurabe.InstanceID("db-1").Ref()}}
		synctest.Wait()
		b.wantForgotten()
	})
}

// wantForgotten checks that nothing of the instance is left with the agent.
func (b *bed) wantForgotten() {
	b.Helper()
	workers := len(b.agent.workers.List())
	if workers > 0 || !slices.Equal(b.link.dropped, []kurabe.InstanceID{"db-1"}) {
		b.Errorf("%d workers, dropped reports of %v", workers, b.link.dropped)
	}
	if _, err := os.Stat(b.savedFile()); !errors.Is(err, fs.ErrNotExist) {
		b.Errorf("saved assignment: %v", err)
	}
}

// The record may go while nobody listens: the next full update does not name it.
func TestRemovedIsForgottenByAFullUpdate(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		b.send(with(wanted(2), kurabe.GoalAbsent))
		b.link.updates <- hostlink.Update{Full: true, Orders: []kurabe.Word{with(wanted(2), kurabe.GoalAbsent)}}
		synctest.Wait()
		if len(b.link.dropped) > 0 {
			b.Fatal("the report is dropped although the assignment is there")
		}
		other := wanted(1)
		other.Instance = "db-2"
		b.link.updates <- hostlink.Update{Full: true, Orders: []kurabe.Word{other}}
		synctest.Wait()
		if !b.engine.Running("db-2") {
			b.Error("the instance that the update names does not run")
		}
		_, left := b.agent.workers.Find("db-1")
		if left || !slices.Equal(b.link.dropped, []kurabe.InstanceID{"db-1"}) {
			b.Errorf("a worker is left: %v; dropped reports of %v", left, b.link.dropped)
		}
	})
}

// Of an instance that the agent does not know a report of an earlier life may be
// left in the store. It is dropped even if that takes several tries.
func TestReportOfAnEarlierLifeIsDropped(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.link.setDown(errTest)
		b.link.updates <- hostlink.Update{Full: true, Withdrawn: []kurabe.Ref{kurabe.InstanceID("db-1").Ref()}}
		synctest.Wait()
		time.Sleep(2*unit.SaveRetry + time.Second) // virtual
		if len(b.link.dropped) > 0 {
			b.Fatal("dropped while the link is down")
		}
		b.link.setDown(nil)
		time.Sleep(unit.SaveRetry) // virtual
		synctest.Wait()
		b.wantForgotten()
		if len(b.steps()) > 0 {
			b.Errorf("it acted on what it does not know: %v", b.steps())
		}
	})
}

// A withdrawal does not outrun a removal that is under way.
func TestWithdrawnDuringRemoval(t *testing.T) {
	inBubble(t, func(b *bed) {
		release := make(chan struct{})
		b.before(func(_ context.Context, _ kurabe.Assignment, step engine.StepName) error {
			if step == engine.StepRemoveHome {
				<-release
			}
			return nil
		})
		b.start()
		b.send(wanted(1))
		b.send(with(wanted(2), kurabe.GoalAbsent))
		b.link.updates <- hostlink.Update{Withdrawn: []kurabe.Ref{kurabe.InstanceID("db-1").Ref()}}
		synctest.Wait()
		b.wantSaved(2)
		close(release)
		synctest.Wait()
		if b.engine.Left("db-1") {
			b.Error("something is left of the instance")
		}
		b.wantForgotten()
	})
}
