package agent

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/replication"
	"kurabe/internal/engine"
)

// A follower is made of its source and only follows: nothing is ever written to it.
func TestFollowerOnlyFollows(t *testing.T) {
	inGroup(t, func(b *bed) {
		b.group.say(second, func(context.Context) (engine.RoleView, error) { return engine.RoleView{Position: 5}, nil })
		b.start()
		b.send(follows(1))
		if r := b.lastOf(second); r.Done || !r.Running || r.Role.Following || r.Step != awaitsSource || r.Failure != nil {
			t.Errorf("without its source: %+v, %+v", r, r.Role)
		}
		b.group.say(second, nil)
		time.Sleep(replication.LookEvery) // virtual
		synctest.Wait()
		if r := b.lastOf(second); !r.Done || !r.Running || !r.Role.Following || r.Role.Writing || r.Role.Position < 1000 {
			t.Errorf("%+v, %+v", r, r.Role)
		}
		next := follows(2)
		next.Password.Seq, next.Settings = 2, map[string]string{"work_mem": "8192"}
		b.send(next)
		if r := b.lastOf(second); !r.Done || r.Generation != 2 {
			t.Errorf("%+v, %+v", r, r.Role)
		}
		for _, step := range []engine.StepName{engine.StepCopyTemplate, engine.StepEnsureMaster, engine.StepSetPassword, engine.StepProbe} {
			if b.didStep(step) {
				t.Errorf("a follower did %s: %v", step, b.steps())
			}
		}
		if !b.didStep(engine.StepClone) {
			t.Errorf("it was never cloned: %v", b.steps())
		}
		// It comes back without an order, and soon each time.
		for n := range 10 {
			began, starts := time.Now(), b.engine.Starts(second)
			b.engine.Crash(second)
			for synctest.Wait(); b.engine.Starts(second) == starts; synctest.Wait() {
				time.Sleep(10 * time.Millisecond) // virtual
			}
			if took := time.Since(began); took > pauseMostGroup+10*time.Millisecond {
				t.Errorf("crash %d: back after %v", n+1, took)
			}
		}
	})
}

// A primary that died while commits wait for another one stays down until it is told to
// start: the other one may be about to take its place. That it died is told at once.
func TestDeadWriterWaitsForTheOrder(t *testing.T) {
	inGroup(t, func(b *bed) {
		b.startWriter()
		for n := int64(1); n <= 5; n++ {
			began, starts := time.Now(), b.engine.Starts("db-1")
			b.engine.Crash("db-1")
			synctest.Wait()
			if r := b.lastOf("db-1"); r.Running || r.Done || r.Role.Writing || r.Role.Unresponsive || r.Role.StartedSeq != n-1 || time.Since(began) > 0 {
				t.Fatalf("death %d: after %v the host says %+v, %+v", n, time.Since(began), r, r.Role)
			}
			time.Sleep(10 * time.Second) // virtual, and less than what ends a streak
			synctest.Wait()
			if b.engine.Starts("db-1") != starts {
				t.Fatalf("death %d: it was started without an order", n)
			}
			began = time.Now()
			b.send(primary(kurabe.Generation(10+n), n))
			for b.engine.Starts("db-1") == starts && time.Since(began) < time.Minute {
				time.Sleep(10 * time.Millisecond) // virtual
				synctest.Wait()
			}
			if took := time.Since(began); took > pauseMostGroup {
				t.Errorf("death %d: started %v after the order", n, took)
			}
			time.Sleep(2 * replication.LookEvery) // virtual
			synctest.Wait()
			if r := b.lastOf("db-1"); !r.Running || !r.Role.Writing || !r.Done || r.Role.StartedSeq != n {
				t.Fatalf("start %d: %+v, %+v", n, r, r.Role)
			}
		}
		if crashes := b.lastOf("db-1").Crashes; crashes != 5 {
			t.Errorf("%d crashes were counted", crashes)
		}
	})
}

// Without anybody whom commits wait for, a dead primary is started as ever.
func TestDeadWriterAloneIsStarted(t *testing.T) {
	inGroup(t, func(b *bed) {
		b.startWriter()
		alone := primary(3, 0)
		alone.Role.WaitFor = nil
		b.send(alone)
		b.engine.Crash("db-1")
		synctest.Wait()
		if r := b.lastOf("db-1"); b.engine.Starts("db-1") != 2 || !r.Running {
			t.Errorf("%d starts, %+v", b.engine.Starts("db-1"), r)
		}
	})
}

// blockAt has a step wait for its end from now on.
func (b *bed) blockAt(blocks engine.StepName) (under *atomic.Bool) {
	under = &atomic.Bool{}
	b.before(func(ctx context.Context, _ kurabe.Assignment, step engine.StepName) error {
		if step != blocks {
			return nil
		}
		under.Store(true)
		<-ctx.Done()
		return ctx.Err()
	})
	return under
}

// reassigned is the primary's next assignment, for which it has something to do.
func reassigned(generation kurabe.Generation) kurabe.Assignment {
	a := primary(generation, 0)
	a.Password.Seq = int64(generation)
	return a
}

// An order to be dead comes through at once, whatever a server that hangs is being asked.
func TestRestCutsAStep(t *testing.T) {
	inGroup(t, func(b *bed) {
		b.startWriter()
		under := b.blockAt(engine.StepSetPassword)
		b.send(reassigned(3))
		if !under.Load() {
			t.Fatal("no step is under way")
		}
		b.group.say("db-1", hangs)
		time.Sleep(time.Second) // virtual
		began := time.Now()
		b.send(of(primary(4, 0), 4, kurabe.Role{Epoch: 2, Duty: kurabe.DutyFenced}))
		if r := b.lastOf("db-1"); b.engine.Running("db-1") || r.Running || !r.Done || r.Generation != 4 || time.Since(began) > 0 {
			t.Errorf("after %v: %+v, steps %v", time.Since(began), r, b.steps())
		}
		if !b.didStep(engine.StepFence) {
			t.Errorf("steps %v", b.steps())
		}
	})
}

// A server that hangs is told of in time, also while a step waits for it; one that refuses
// is not stuck.
func TestStuckIsTold(t *testing.T) {
	for _, c := range []struct {
		name  string
		step  bool
		says  func(context.Context) (engine.RoleView, error)
		stuck bool
	}{
		{"it hangs", false, hangs, true},
		{"it hangs while a step is under way", true, hangs, true},
		{"it refuses", false, refuses, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inGroup(t, func(b *bed) {
				b.startWriter()
				if c.step {
					under := b.blockAt(engine.StepSetPassword)
					b.send(reassigned(3))
					if !under.Load() {
						t.Fatal("no step is under way")
					}
				}
				b.group.say("db-1", c.says)
				time.Sleep(replication.StuckAfter - time.Millisecond) // virtual
				synctest.Wait()
				if r := b.lastOf("db-1"); r.Role.Unresponsive {
					t.Errorf("too early: %+v", r.Role)
				}
				time.Sleep(replication.LookEvery + time.Millisecond) // virtual
				synctest.Wait()
				if r := b.lastOf("db-1"); r.Role.Unresponsive != c.stuck || !r.Running || !r.Role.Writing || c.stuck && r.Done {
					t.Errorf("%+v, %+v", r, r.Role)
				}
				b.group.say("db-1", nil)
				time.Sleep(replication.LookLimit + replication.LookEvery) // virtual
				synctest.Wait()
				if r := b.lastOf("db-1"); r.Role.Unresponsive {
					t.Errorf("it answers again: %+v", r.Role)
				}
			})
		})
	}
}

// A death is told at once, whatever the worker is at.
func TestDeathIsToldAtOnce(t *testing.T) {
	for name, occupy := range map[string]func(*testing.T, *bed){
		"nothing": func(*testing.T, *bed) {},
		"a step": func(t *testing.T, b *bed) {
			under := b.blockAt(engine.StepSetPassword)
			b.send(reassigned(3))
			if !under.Load() {
				t.Fatal("no step is under way")
			}
		},
		"the pause after a failed step": func(_ *testing.T, b *bed) {
			b.failAt(engine.StepSetPassword, errTest)
			b.send(reassigned(3))
			time.Sleep(10 * time.Minute) // virtual: the pauses are as long as they get
		},
	} {
		t.Run(name, func(t *testing.T) {
			inGroup(t, func(b *bed) {
				b.startWriter()
				occupy(t, b)
				synctest.Wait()
				began := time.Now()
				b.engine.Crash("db-1")
				synctest.Wait()
				if r := b.lastOf("db-1"); r.Running || r.Done || r.Role.Writing || time.Since(began) > 0 {
					t.Errorf("after %v: %+v, %+v", time.Since(began), r, r.Role)
				}
			})
		})
	}
}

// What moves all the time is no news: a group that is well says nothing.
func TestPositionIsNoNews(t *testing.T) {
	inGroup(t, func(b *bed) {
		b.startWriter()
		reports := len(b.heard())
		time.Sleep(10 * time.Minute) // virtual
		synctest.Wait()
		if more := b.heard()[reports:]; len(more) != 0 {
			t.Errorf("%d reports in ten minutes, as %+v", len(more), more[0].Role)
		}
		// But what is told for another reason has it.
		b.group.say("db-1", func(context.Context) (engine.RoleView, error) {
			return engine.RoleView{Writing: true, Position: 1 << 40, WaitsFor: ids(second)}, nil
		})
		time.Sleep(replication.LookEvery) // virtual
		synctest.Wait()
		if r := b.lastOf("db-1"); !reflect.DeepEqual(r.Role.SilentFollowers, ids(second)) || r.Role.Position != 1<<40 {
			t.Errorf("%+v", r.Role)
		}
	})
}

// A process is looked at while it runs, over one session: of a server in no group whether it
// answers.
func TestWatchEndsWithWhatItWatches(t *testing.T) {
	for name, end := range map[string]func(*bed){
		"its server dies":    func(b *bed) { b.engine.Crash("db-1") },
		"its server is dead": func(b *bed) { b.send(of(primary(3, 0), 3, kurabe.Role{Epoch: 2, Duty: kurabe.DutyFenced})) },
		"it has no role":     func(b *bed) { b.send(wanted(3)) },
		"it is stopped":      func(b *bed) { b.send(with(primary(3, 0), kurabe.GoalStopped)) },
	} {
		t.Run(name, func(t *testing.T) {
			inGroup(t, func(b *bed) {
				b.startWriter()
				time.Sleep(time.Minute) // virtual
				synctest.Wait()
				if n := b.group.sessions(); n != 1 {
					t.Errorf("%d sessions are open", n)
				}
				end(b)
				synctest.Wait()
				left := 0
				if name == "it has no role" {
					left = 1
				}
				if n := b.group.sessions(); n != left {
					t.Errorf("%d sessions are left", n)
				}
			})
		})
	}
}

// The only server of an instance that hangs is reported once, with the time of its last answer,
// also by an agent that was started meanwhile; so is its next answer. Nothing is done to it.
func TestMuteServer(t *testing.T) {
	inGroup(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() } // virtual
		pass(time.Minute)
		if r := b.lastOf("db-1"); !r.Responsive || !r.UnresponsiveSince.IsZero() {
			t.Fatalf("at first: %+v", r)
		}
		steps, reports, hung := len(b.steps()), len(b.heard()), time.Now()
		b.group.say("db-1", hangs)
		pass(time.Hour)
		if more := b.heard()[reports:]; len(more) != 1 || more[0].Responsive || more[0].UnresponsiveSince.After(hung) || hung.Sub(more[0].UnresponsiveSince) > replication.AloneEvery {
			t.Errorf("after an hour: %+v; hung at %v", more, hung)
		}
		if n := b.group.sessions(); n > 1 {
			t.Errorf("%d sessions are open", n)
		}
		b.stop()
		b.start()
		if r := b.lastOf("db-1"); r.Responsive {
			t.Errorf("the next agent begins with %+v", r)
		}
		pass(time.Minute)
		if r := b.lastOf("db-1"); r.Responsive || r.UnresponsiveSince.IsZero() {
			t.Errorf("the next agent says %+v", r)
		}
		b.group.say("db-1", nil)
		pass(time.Minute)
		if r := b.lastOf("db-1"); !r.Responsive || !r.UnresponsiveSince.IsZero() || len(b.steps()) != steps {
			t.Errorf("it answers again: %+v, %v", r, b.steps()[steps:])
		}
	})
}

// What a server was asked before it waited for a follower says nothing of what was written
// since.
func TestMarkIsOfTheWaiting(t *testing.T) {
	inGroup(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		view := func(inserted, flushed int64) func(context.Context) (engine.RoleView, error) {
			return func(context.Context) (engine.RoleView, error) {
				return engine.RoleView{Writing: true, Position: inserted, Inserted: inserted, WaitsFor: ids(second),
					Followers: map[kurabe.InstanceID]engine.FollowerView{second: {Streaming: true, Flushed: flushed}}}, nil
			}
		}
		b.group.say("db-1", view(100, 100))
		under := b.blockAt(engine.StepWaits)
		b.send(primary(2, 0))
		time.Sleep(time.Second) // virtual
		synctest.Wait()
		if r := b.lastOf("db-1"); !under.Load() || len(r.Role.CaughtUp) != 0 || !slices.Equal(r.Role.WaitsFor, ids(second)) {
			t.Fatalf("under way: %v, %+v", under.Load(), r.Role)
		}
		b.group.say("db-1", view(900, 100))
		b.before(nil)
		next := primary(3, 0)
		b.send(next) // which cuts the step
		time.Sleep(time.Second)
		synctest.Wait()
		if r := b.lastOf("db-1"); len(r.Role.CaughtUp) != 0 {
			t.Errorf("it lacks what was written since: %+v", r.Role)
		}
		b.group.say("db-1", view(1000, 900))
		time.Sleep(replication.LookEvery) // virtual
		synctest.Wait()
		if r := b.lastOf("db-1"); !slices.Equal(r.Role.CaughtUp, ids(second)) {
			t.Errorf("%+v", r.Role)
		}
	})
}

// How far a read replica has to come is a matter of its order, and that it has is told at once.
func TestReachIsTold(t *testing.T) {
	inGroup(t, func(b *bed) {
		kept := func(end int64) {
			b.group.say(second, func(context.Context) (engine.RoleView, error) {
				return engine.RoleView{Following: true, Position: 6000, Kept: end}, nil
			})
		}
		kept(4999)
		b.start()
		a := follows(1)
		a.Role.ServesReads, a.Role.SourceEnd = true, 5000
		b.send(a)
		if r := b.lastOf(second); r.Role.HasSourceEnd {
			t.Errorf("one short of it: %+v", r.Role)
		}
		kept(5000)
		time.Sleep(2 * replication.LookEvery) // virtual
		synctest.Wait()
		if r := b.lastOf(second); !r.Role.HasSourceEnd {
			t.Errorf("with all of it: %+v", r.Role)
		}
		a.Generation, a.Role = 2, &kurabe.Role{Epoch: 1, Duty: kurabe.DutyFollow, ServesReads: true, Source: a.Role.Source}
		b.send(a)
		if r := b.lastOf(second); r.Role.HasSourceEnd {
			t.Errorf("asked for nothing: %+v", r.Role)
		}
	})
}

// One that yields to a read replica says where its log ends, and not where it was seen last.
func TestEndIsTold(t *testing.T) {
	inGroup(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		for range 3 {
			if _, _, err := b.engine.Write("db-1"); err != nil {
				t.Fatal(err)
			}
		}
		a := member(1, kurabe.DutyStepDown, 2)
		a.Generation, a.Role.HandsOverToReplica = 2, true
		b.send(a)
		if r := b.lastOf("db-1"); !r.Done || r.Running || !r.Role.SteppedDown || r.Role.Position != 3 {
			t.Errorf("%+v, %+v", r, r.Role)
		}
	})
}
