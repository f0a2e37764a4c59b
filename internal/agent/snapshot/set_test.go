package snapshot

import (
	"errors"
	"os"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/hostlink"
	folder "kurabe/internal/snapshot"
)

func TestSnapshotIsTakenReportedAndRemoved(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		a := takeOf("snap-1", "db-1", 1)
		b.order(a)
		if _, err := os.Stat(b.set.file("snap-1")); err != nil {
			t.Errorf("it is obeyed and not saved: %v", err)
		}
		b.pass(99 * time.Second)
		if r := b.last("snap-1"); r.Done || r.Failure != nil || r.Facts.Percent < 90 || r.Facts.Percent > 99 {
			t.Errorf("shortly before the end: %+v", r)
		}
		b.pass(2 * time.Second)
		b.wantDone("snap-1", 1)
		if sealed, err := b.folder.Sealed("snap-1"); err != nil || !sealed {
			t.Errorf("sealed after it was reported: %v, %v", sealed, err)
		}
		heard := b.heard()
		if len(heard) < 15 || len(heard) > 22 {
			t.Errorf("%d reports of one snapshot; want one each 5 percent", len(heard))
		}
		for n := 1; n < len(heard)-1; n++ {
			if moved := heard[n].Facts.Percent - heard[n-1].Facts.Percent; moved < progressStep {
				t.Errorf("a report after %d percent", moved)
			}
		}
		b.order(a, a) // repeats change nothing
		b.pass(48 * time.Hour)
		if len(b.heard()) != len(heard) || b.folder.Taken("snap-1") != 1 {
			t.Errorf("%d more reports, taken %d times", len(b.heard())-len(heard), b.folder.Taken("snap-1"))
		}
		b.order(removalOf(a))
		if r := b.last("snap-1"); !r.Absent || !r.Done || r.Generation != 2 {
			t.Errorf("after the removal: %+v", r)
		}
		if _, err := os.Stat(b.set.file("snap-1")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("its assignment is still saved: %v", err)
		}
		b.send(hostlink.Update{Withdrawn: []kurabe.Ref{kurabe.SnapshotID("snap-1").Ref()}})
		if len(b.link.dropped) != 1 || len(b.set.List()) != 0 {
			t.Errorf("dropped %v, %d units are left", b.link.dropped, len(b.set.List()))
		}
	})
}

func TestProgressIsToldAtMostOnceASecond(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.folder.TakeTime = 3500 * time.Millisecond
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(10 * time.Second)
		b.wantDone("snap-1", 1)
		if n := len(b.heard()); n != 4 {
			t.Errorf("%d reports in 3.5 s; want 3 and the end", n)
		}
		for n := 1; n < len(b.link.at)-1; n++ {
			if pause := b.link.at[n].Sub(b.link.at[n-1]); pause < time.Second {
				t.Errorf("two reports within %v", pause)
			}
		}
	})
}

func TestStaleSnapshotAssignmentsAreRefused(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.order(takeOf("snap-1", "db-1", 3))
		b.pass(200 * time.Second)
		older := removalOf(takeOf("snap-1", "db-1", 1))
		other := takeOf("snap-1", "db-1", 3)
		other.Goal = kurabe.SnapshotAbsent
		b.order(older, other)
		b.pass(time.Minute)
		b.wantDone("snap-1", 3)
	})
}

func TestSnapshotStartsAgainAfterARestart(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(50 * time.Second)
		b.stop()
		if _, state, _ := b.folder.Find("snap-1"); state != folder.Partial {
			t.Fatalf("the folder is %s", state)
		}
		b.start() // nobody tells it again
		b.pass(90 * time.Second)
		if r := b.last("snap-1"); r.Done || r.Failure != nil {
			t.Errorf("it did not start again: %+v", r)
		}
		b.pass(20 * time.Second)
		b.wantDone("snap-1", 1)
		b.stop()
		b.start()
		b.pass(time.Second)
		b.wantDone("snap-1", 1)
		if n := b.folder.Taken("snap-1"); n != 1 {
			t.Errorf("taken %d times", n)
		}
	})
}

func TestLostSnapshotIsAFailureAndNeverTakenAgain(t *testing.T) {
	for _, c := range []struct {
		name, words string
		restart     bool
		spoil       func(*snapshotBed)
	}{
		{"gone", "absent", false, func(b *snapshotBed) { b.folder.Lose("snap-1") }},
		{"gone while the service was away", "absent", true, func(b *snapshotBed) { b.folder.Lose("snap-1") }},
		{"without its manifest", "partial", true, func(b *snapshotBed) { b.folder.Leave("snap-1") }},
		{"with a manifest that cannot be read", "cannot be read", true, func(b *snapshotBed) { b.folder.Damage("snap-1") }},
		{"and its order is unreadable", "absent", true, func(b *snapshotBed) {
			b.folder.Lose("snap-1")
			if err := os.WriteFile(b.set.file("snap-1"), []byte("{"), 0o600); err != nil {
				b.Error(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inSnapshotBubble(t, func(b *snapshotBed) {
				b.order(takeOf("snap-1", "db-1", 1))
				b.pass(200 * time.Second)
				if c.restart {
					b.stop()
				}
				c.spoil(b)
				if c.restart {
					b.start()
				}
				b.order(takeOf("snap-1", "db-1", 1))
				b.pass(time.Hour)
				b.wantFailure("snap-1", stepFindSnapshot, c.words)
				if n := b.folder.Taken("snap-1"); n != 1 {
					t.Errorf("taken %d times", n)
				}
				b.order(removalOf(takeOf("snap-1", "db-1", 1)))
				b.pass(time.Minute)
				if r := b.last("snap-1"); !r.Absent || r.Failure != nil {
					t.Errorf("it cannot be removed: %+v", r)
				}
			})
		})
	}
}

func TestFailedTakeIsTriedAgainWithGrowingPauses(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		var tries []time.Time
		b.folder.Before = func(string, kurabe.SnapshotID) error {
			if tries = append(tries, time.Now()); len(tries) <= 5 {
				return errors.New("the disk is full")
			}
			return nil
		}
		b.order(takeOf("snap-1", "db-1", 1))
		b.wantFailure("snap-1", stepTakeSnapshot, "the disk is full")
		b.pass(5 * time.Minute)
		b.wantDone("snap-1", 1)
		if took := tries[4].Sub(tries[0]); took < 15*time.Second || took > time.Minute {
			t.Errorf("five tries took %v", took)
		}
	})
}

func TestTakeThatIsNotCompleteIsAFailure(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.folder.After = func(step string, id kurabe.SnapshotID) error {
			b.folder.Leave(id)
			return nil
		}
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(101 * time.Second)
		b.wantFailure("snap-1", stepTakeSnapshot, "its folder is now partial")
	})
}

func TestTakeEndsWhenItsInstanceIsToGo(t *testing.T) {
	absent := sourceInstance("db-1", 2)
	absent.Goal = kurabe.GoalAbsent
	t.Run("under way", func(t *testing.T) {
		inSnapshotBubble(t, func(b *snapshotBed) {
			b.order(takeOf("snap-1", "db-1", 1))
			b.pass(50 * time.Second)
			b.send(hostlink.Update{Orders: []kurabe.Word{absent}})
			b.wantFailure("snap-1", stepTakeSnapshot, errSourceGone.Error())
			b.order(removalOf(takeOf("snap-1", "db-1", 1)))
			if _, state, _ := b.folder.Find("snap-1"); state != folder.Absent {
				t.Errorf("the folder is %s", state)
			}
		})
	})
	t.Run("before", func(t *testing.T) {
		inSnapshotBubble(t, func(b *snapshotBed) {
			b.send(hostlink.Update{Orders: []kurabe.Word{absent, takeOf("snap-1", "db-1", 1)}})
			b.wantFailure("snap-1", stepTakeSnapshot, errSourceGone.Error())
		})
	})
	t.Run("its records are gone", func(t *testing.T) {
		inSnapshotBubble(t, func(b *snapshotBed) {
			b.send(hostlink.Update{Orders: []kurabe.Word{absent}})
			b.pass(time.Second)
			b.send(hostlink.Update{Full: true, Orders: []kurabe.Word{takeOf("snap-1", "db-1", 1)}})
			b.pass(time.Minute)
			b.wantFailure("snap-1", stepTakeSnapshot, "no such DB instance")
		})
	})
}

func TestSnapshotWaitsForItsInstancesAssignment(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.order(takeOf("snap-2", "db-2", 1))
		b.pass(sourceGrace / 2)
		if len(b.heard()) != 0 {
			t.Errorf("it did not wait: %+v", b.heard())
		}
		b.send(hostlink.Update{Orders: []kurabe.Word{sourceInstance("db-2", 1)}})
		b.pass(101 * time.Second)
		b.wantDone("snap-2", 1)
	})
}

func TestSnapshotsOfOneInstanceTakeTurns(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.send(hostlink.Update{Orders: []kurabe.Word{sourceInstance("db-2", 1), sourceInstance("db-3", 1)}})
		b.order(takeOf("snap-1a", "db-1", 1), takeOf("snap-1b", "db-1", 1), takeOf("snap-2", "db-2", 1), takeOf("snap-3", "db-3", 1))
		b.pass(210 * time.Second) // four takes of 100 s, two at a time
		for _, id := range []kurabe.SnapshotID{"snap-1a", "snap-1b", "snap-2", "snap-3"} {
			b.wantDone(id, 1)
		}
		if n := b.folder.Most(); n != snapshotsAtOnce {
			t.Errorf("%d at once; want %d", n, snapshotsAtOnce)
		}
	})
}

func TestRemovalWaitsForACopyOfIt(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(101 * time.Second)
		b.order(kurabe.SnapshotAssignment{Generation: 1, Host: "h", Snapshot: "snap-2", Goal: kurabe.SnapshotPresent, From: "snap-1"})
		b.pass(50 * time.Second)
		b.order(removalOf(takeOf("snap-1", "db-1", 1)))
		if _, state, _ := b.folder.Find("snap-1"); state != folder.Complete {
			t.Errorf("the copied snapshot is %s", state)
		}
		b.pass(51 * time.Second)
		b.wantDone("snap-2", 1)
		if _, state, _ := b.folder.Find("snap-1"); state != folder.Absent {
			t.Errorf("the removed snapshot is %s", state)
		}
	})
}

func TestWithdrawnSnapshotIsKept(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(101 * time.Second)
		b.send(hostlink.Update{Full: true, Orders: []kurabe.Word{sourceInstance("db-1", 1)}})
		b.pass(time.Minute)
		b.wantDone("snap-1", 1)
		if len(b.link.dropped) > 0 {
			t.Error("its report was dropped")
		}
	})
}

func TestSnapshotOrderThatCannotBeSavedIsNotObeyed(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		if err := os.WriteFile(b.set.Dir, nil, 0o600); err != nil { // no folder can be made
			t.Fatal(err)
		}
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(10 * time.Second)
		b.wantFailure("snap-1", "save-assignment", "")
		if _, state, _ := b.folder.Find("snap-1"); state != folder.Absent {
			t.Errorf("the folder is %s", state)
		}
		if err := os.Remove(b.set.Dir); err != nil {
			t.Fatal(err)
		}
		b.pass(110 * time.Second)
		b.wantDone("snap-1", 1)
	})
}

func TestSnapshotReportIsToldAgainUntilHeard(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.link.down = errors.New("no link")
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(200 * time.Second)
		b.link.mu.Lock()
		b.link.down = nil
		b.link.mu.Unlock()
		b.pass(2 * unit.ReportRetry)
		b.wantDone("snap-1", 1)
	})
}

func TestHostWithoutSnapshotsSaysSo(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.set.Folders = nil
		b.order(takeOf("snap-1", "db-1", 1))
		b.wantFailure("snap-1", stepFindSnapshot, "keeps no snapshots")
	})
}
