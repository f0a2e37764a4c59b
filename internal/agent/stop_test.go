package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/engine/fake"
)

// stubborn has one server that does not end.
type stubborn struct {
	*fake.Engine
	id kurabe.InstanceID
}

func (s stubborn) Stop(ctx context.Context, a kurabe.Assignment) error {
	if a.Instance == s.id {
		return errTest
	}
	return s.Engine.Stop(ctx, a)
}

// An agent that ends leaves the databases alone; one that is asked to leave
// nothing running stops them, says so, and the next one starts them again.
func TestStopAll(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		stopped := with(wanted(1), kurabe.GoalStopped)
		stopped.Instance = "db-2"
		b.send(stopped)
		b.stop()
		if !b.engine.Running("db-1") {
			b.Fatal("the database ended with its agent")
		}
		reports := len(b.heard())
		if err := b.agent.StopAll(context.Background()); err != nil {
			b.Error(err)
		}
		if got := len(b.heard()) - reports; got != 1 {
			b.Errorf("%d reports, want one: the other one's was true already", got)
		}
		if r := b.last(); b.engine.Running("db-1") || r.Instance != "db-1" || r.Running || r.Done || r.PID != 0 || r.Generation != 1 || r.UsedBytes == 0 {
			b.Errorf("running %v, report %+v", b.engine.Running("db-1"), r)
		}
		b.start()
		if !b.engine.Running("db-1") || b.engine.Starts("db-1") != 2 || b.engine.Starts("db-2") != 0 {
			b.Errorf("running %v, %d and %d starts; want it started again, and the stopped one not", b.engine.Running("db-1"), b.engine.Starts("db-1"), b.engine.Starts("db-2"))
		}
	})
}

// One that cannot be stopped keeps no other from being stopped, and its report
// stays as it is.
func TestStopAllTellsWhatFailed(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		other := wanted(1)
		other.Instance, other.Name = "db-2", "stock"
		b.send(other)
		b.stop()
		b.agent.Engines[kurabe.Postgres] = stubborn{b.engine, "db-1"}
		err := b.agent.StopAll(context.Background())
		if !errors.Is(err, errTest) || !strings.Contains(err.Error(), "orders") || strings.Contains(err.Error(), "stock") {
			b.Errorf("error %v; want it to name the one that failed", err)
		}
		if !b.engine.Running("db-1") || b.engine.Running("db-2") {
			b.Errorf("running: %v, %v", b.engine.Running("db-1"), b.engine.Running("db-2"))
		}
		for _, r := range b.heard()[2:] {
			if r.Instance == "db-1" && !r.Running {
				b.Errorf("what still runs is reported as ended: %+v", r)
			}
		}
	})
}
