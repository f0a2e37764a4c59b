package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/hostlink"
)

// A new agent finds what runs, before and without a control plane.
func TestRestartAdopts(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.send(wanted(3))
		if err := b.stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("the agent ended with %v", err)
		}
		if !b.engine.Running("db-1") {
			t.Fatal("the database ended with its agent")
		}
		b.wantSaved(3)
		reports, steps := len(b.heard()), len(b.steps())
		b.start()
		if got := b.heard()[reports:]; len(got) != 2 || !got[0].Done || got[0].Generation != 3 || got[0].Responsive || !got[1].Responsive {
			t.Errorf("the new agent reports %+v; want one, done at 3, and that the server answers", got)
		}
		if len(b.steps()) != steps || b.engine.Starts("db-1") != 1 {
			t.Errorf("it was not adopted: %d starts, steps %v", b.engine.Starts("db-1"), b.steps()[steps:])
		}
		b.send(with(wanted(2), kurabe.GoalAbsent))
		b.wantSaved(3)
		b.wantServing(3)
	})
}

// What crashed while no agent was there is started again with no control plane.
func TestRestartStartsWhatCrashed(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		b.stop()
		b.engine.Crash("db-1")
		b.link.setDown(errTest)
		b.start()
		if !b.engine.Running("db-1") || b.engine.Starts("db-1") != 2 {
			t.Errorf("running %v after %d starts", b.engine.Running("db-1"), b.engine.Starts("db-1"))
		}
	})
}

// A step that the end of the agent cut off is neither a failure nor a report.
func TestEndOfTheAgentIsNoFailure(t *testing.T) {
	for _, c := range []struct {
		name string
		cut  func(b *bed)
	}{
		{"during a step", func(b *bed) {
			b.before(func(ctx context.Context, _ kurabe.Assignment, step engine.StepName) error {
				if step == engine.StepWaitReady {
					<-ctx.Done()
				}
				return ctx.Err()
			})
		}},
		{"during a look", func(b *bed) {
			b.onLook(func(ctx context.Context, _ kurabe.InstanceID) error {
				<-ctx.Done()
				return ctx.Err()
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				c.cut(b)
				b.start()
				b.send(wanted(1))
				b.stop()
				if err := b.agent.StopAll(context.Background()); err != nil {
					b.Error(err)
				}
				for _, r := range b.heard() {
					if r.Failure != nil {
						b.Errorf("reported failure %+v", r.Failure)
					}
				}
			})
		})
	}
}

func TestWaitLooked(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		if err := b.agent.WaitLooked(context.Background()); err != nil {
			b.Errorf("with nothing to look at: %v", err)
		}
		b.send(wanted(1))
		b.stop()

		look := make(chan struct{})
		b.onLook(func(ctx context.Context, _ kurabe.InstanceID) error {
			select {
			case <-look:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		b.start()
		ended, cancel := context.WithCancelCause(context.Background())
		cancel(errTest)
		if err := b.agent.WaitLooked(ended); !errors.Is(err, errTest) {
			b.Errorf("nothing was looked at, and it ended with %v", err)
		}
		reports := len(b.heard())
		waited := make(chan int)
		go func() {
			if err := b.agent.WaitLooked(context.Background()); err != nil {
				b.Error(err)
			}
			waited <- len(b.heard())
		}()
		synctest.Wait()
		select {
		case <-waited:
			b.Error("it did not wait for the look")
		default:
		}
		close(look)
		if got := <-waited; got == reports { // there may be more by then
			b.Error("it ended before the look was reported")
		}
	})
}

// A recovery may take an hour: the service answers as soon as it knows that.
func TestWaitLookedDoesNotWaitForAStep(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.before(func(ctx context.Context, _ kurabe.Assignment, step engine.StepName) error {
			if step == engine.StepWaitReady {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		b.start()
		b.send(wanted(1))
		b.stop()
		b.start()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // virtual
		defer cancel()
		if err := b.agent.WaitLooked(ctx); err != nil {
			b.Error(err)
		}
	})
}

// Run returns when the steps under way have: nobody acts on an instance after it.
func TestRunWaitsForTheStep(t *testing.T) {
	inBubble(t, func(b *bed) {
		release := make(chan struct{})
		b.before(func(context.Context, kurabe.Assignment, engine.StepName) error {
			<-release
			return nil
		})
		b.start()
		b.send(wanted(1))
		b.cancel()
		synctest.Wait()
		select {
		case <-b.done:
			b.Fatal("the agent ended before its step")
		default:
		}
		close(release)
		b.stop()
	})
}

// A pass before the first assignment is in force has seen nothing.
func TestPassWithoutAssignmentIsNoLook(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		ctx, cancel := context.WithCancel(context.Background())
		w := b.agent.workers.Get(ctx, "db-2")
		synctest.Wait()
		short, end := context.WithTimeout(ctx, time.Second) // virtual
		defer end()
		if w.AwaitLook(short) == nil {
			b.Error("the instance counts as looked at")
		}
		cancel()
	})
}

// A host that is told of nothing keeps what it was told before.
func TestMissingRecordRemovesNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		update hostlink.Update
	}{
		{"a full update without it", hostlink.Update{Full: true}},
		{"its assignment withdrawn", hostlink.Update{Withdrawn: []kurabe.Ref{kurabe.InstanceID("db-1").Ref()}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.start()
				b.send(wanted(1))
				b.link.updates <- c.update
				synctest.Wait()
				b.wantSaved(1)
				b.wantServing(1)
				b.engine.Crash("db-1")
				synctest.Wait()
				b.wantServing(1)
				b.stop()
				reports := len(b.heard())
				b.start()
				b.wantServing(1)
				if len(b.heard()) == reports {
					b.Error("the new agent saw nothing")
				}
				if len(b.link.dropped) > 0 {
					b.Errorf("dropped reports of %v", b.link.dropped)
				}
			})
		})
	}
}

// An agent that cannot read what it was told does nothing at all: without the
// assignment a database would go unwatched.
func TestUnreadableAssignmentStopsTheAgent(t *testing.T) {
	whole := `{"generation":1,"instance":"db-1","goal":"absent"}`
	for _, c := range []struct{ name, file, text, words string }{
		{"garbage", "db-1.json", "\x00\x00", "invalid character"},
		{"cut short", "db-1.json", whole[:20], "unexpected end of JSON input"},
		{"empty", "db-1.json", "", "unexpected end of JSON input"},
		{"of no instance", "db-1.json", "{}", "it names no instance"},
		{"of another instance", "db-2.json", whole, "it belongs to instance db-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.start()
				b.send(wanted(1))
				b.stop()
				steps := len(b.steps())
				path := filepath.Join(filepath.Dir(b.savedFile()), c.file)
				if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
					b.Fatal(err)
				}
				b.start()
				err := b.stop()
				if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.words) || !strings.Contains(err.Error(), "restore it, or") {
					b.Errorf("%v; want an error that names %s, says %q and what to do", err, path, c.words)
				}
				if text, err := os.ReadFile(path); err != nil || string(text) != c.text {
					b.Errorf("the file was touched: %q, %v", text, err)
				}
				if len(b.steps()) != steps || !b.engine.Running("db-1") {
					b.Errorf("running %v, steps %v", b.engine.Running("db-1"), b.steps()[steps:])
				}
			})
		})
	}
}

// What a death during a save leaves behind is no assignment.
func TestHalfSavedAssignmentIsIgnored(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		b.stop()
		if err := os.WriteFile(filepath.Join(filepath.Dir(b.savedFile()), ".db-1.json.123.tmp"), []byte("{"), 0o600); err != nil {
			b.Fatal(err)
		}
		reports := len(b.heard())
		b.start()
		b.wantServing(1)
		if len(b.heard()) == reports {
			b.Error("the new agent saw nothing")
		}
	})
}
