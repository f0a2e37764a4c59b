package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kurabe"
)

// uses has the host report so many MiB.
func (s *sim) uses(mib int64) {
	r := *s.w.Report
	r.UsedBytes = mib << 20
	s.w.Report = &r
}

// noRoom has the host say that its disk is full, or no more.
func (s *sim) noRoom(full bool) {
	r := *s.w.Report
	r.Failure = nil
	if full {
		r.Failure = &kurabe.Failure{Kind: kurabe.FailureStorage, Step: kurabe.StepKeepRoom, Message: "The disk of the host is full", Attempts: 1}
	}
	s.w.Report = &r
}

func (s *sim) count(id string) int {
	n := 0
	for _, e := range s.events {
		if e.ID == id {
			n++
		}
	}
	return n
}

// later lets time pass, with one look.
func (s *sim) later(d time.Duration) {
	s.t.Helper()
	s.w.Now = s.w.Now.Add(d)
	s.settle()
}

// storageSim is an available instance of 20 GiB that may grow by itself up to max.
func storageSim(t tester, max int) *sim {
	s := newSim(t)
	s.w.Hosts[0].StorageBytes = 60*kurabe.GiB + 1
	s.w.Spec.MaxStorageGiB = max
	s.settle()
	return s
}

const gib = 1024 // MiB

func TestAutoscaling(t *testing.T) {
	for _, c := range []struct {
		name  string
		max   int
		usage []int64       // MiB, ten minutes apart
		wait  time.Duration // after the last
		want  int           // GiB in force then
		event string
	}{
		{"more than a tenth is free", 100, []int64{18*gib - 1}, time.Hour, 20, ""},
		{"not low for long enough", 100, []int64{18 * gib}, 4 * time.Minute, 20, ""},
		{"ten GiB at least", 100, []int64{18 * gib, 18 * gib}, 0, 30, "RDS-EVENT-0218"},
		{"what seven hours will take", 200, []int64{14 * gib, 15 * gib, 18 * gib, 18 * gib}, 0, 20 + 4*7, "RDS-EVENT-0217"},
		{"only the last hour counts", 200, []int64{1 * gib, 17 * gib, 17 * gib, 17 * gib, 17 * gib, 17 * gib, 17 * gib, 17 * gib, 18 * gib, 18 * gib}, 0, 30, "RDS-EVENT-0218"},
		{"at most the maximum", 25, []int64{18 * gib, 18 * gib}, 0, 25, "RDS-EVENT-0224"},
		{"near the maximum", 37, []int64{18 * gib, 18 * gib}, 0, 30, "RDS-EVENT-0225"},
		{"off", 0, []int64{18 * gib, 18 * gib}, time.Hour, 20, "RDS-EVENT-0089"},
		{"a full instance too", 100, []int64{21 * gib, 21 * gib}, 0, 30, "RDS-EVENT-0007"},
		{"as far as the disk goes", 500, []int64{5 * gib, 18 * gib, 18 * gib}, 0, 60, "RDS-EVENT-0217"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := storageSim(t, c.max)
			for n, used := range c.usage {
				if n > 0 {
					s.w.Now = s.w.Now.Add(10 * time.Minute)
				}
				s.uses(used)
				s.settle()
			}
			s.later(c.wait)
			have := s.w.Status.Applied.StorageGiB
			if have != c.want {
				t.Errorf("%d GiB, want %d; %+v", have, c.want, s.events)
			}
			if s.w.Assignment.Limits.StorageBytes != int64(have)*kurabe.GiB {
				t.Errorf("the host is told %d bytes", s.w.Assignment.Limits.StorageBytes)
			}
			if c.event != "" {
				s.wantEvent(c.event)
			}
			if n := s.count("RDS-EVENT-0018"); n > 0 {
				t.Errorf("announced as the user's change %d times", n)
			}
			s.want(kurabe.StateAvailable)
		})
	}
}

// Six hours lie between two changes, whoever made the first; then it grows again.
func TestAutoscalingRests(t *testing.T) {
	s := storageSim(t, 100)
	s.w.Spec.Now.StorageGiB = 22
	s.settle()
	s.wantEvent("RDS-EVENT-0018")
	s.uses(21 * gib)
	s.settle()
	s.later(10 * time.Minute)
	s.later(10 * time.Minute)
	if have := s.w.Status.Applied.StorageGiB; have != 22 || s.count("RDS-EVENT-0220") != 1 {
		t.Fatalf("%d GiB, %+v", have, s.events)
	}
	// What time alone can change, the plan asks to be looked at.
	s.w.Now = s.w.Now.Add(time.Minute)
	r := s.step()
	if want := monday.Add(6 * time.Hour); !r.LookAgain.Equal(want) {
		t.Fatalf("look again %v, want %v", r.LookAgain, want)
	}
	s.w.Now = r.LookAgain
	s.step()
	s.want(kurabe.StateModifying)
	s.settle()
	if have := s.w.Status.Applied.StorageGiB; have != 32 {
		t.Fatalf("%d GiB", have)
	}
	boot := s.w.Assignment.Boot
	s.uses(30 * gib)
	s.later(time.Minute)
	s.later(7 * time.Hour)
	if have := s.w.Status.Applied.StorageGiB; have != 42 || s.w.Assignment.Boot != boot {
		t.Fatalf("%d GiB, boot %d after %d", have, s.w.Assignment.Boot, boot)
	}
	s.w.Spec.MaxStorageGiB = 42
	s.uses(41 * gib)
	s.later(time.Minute)
	s.later(7 * time.Hour)
	s.wantEvent("RDS-EVENT-0223")
}

// What autoscaling reached outlives other modifications, waits for no window, and
// gives way to a larger wish only.
func TestScaledStorageStays(t *testing.T) {
	s := storageSim(t, 100)
	s.uses(19 * gib)
	s.settle()
	s.later(10 * time.Minute)
	have := func(want int) {
		t.Helper()
		if got := s.w.Status.Applied.StorageGiB; got != want || s.w.Assignment.Limits.StorageBytes != int64(want)*kurabe.GiB {
			t.Fatalf("%d GiB, want %d", got, want)
		}
	}
	have(30)
	s.w.Spec.Now.Class = "db.t3.small"
	s.settle()
	have(30)
	s.w.Spec.MaxStorageGiB = 0
	s.settle()
	have(30)
	next := s.w.Spec.Now
	next.StorageGiB = 25
	s.w.Spec.Next, s.w.Spec.NextSeq = &next, 1
	s.later(7 * 24 * time.Hour)
	s.w.Now = time.Date(2026, 3, 15, 5, 10, 0, 0, time.UTC)
	s.settle()
	have(30)
	next.StorageGiB = 40
	s.settle()
	have(40)
	if s.w.Status.Storage.ScaledGiB != 0 {
		t.Errorf("%+v", s.w.Status.Storage)
	}
}

// Growth alone brings a full instance back, also when a fast primary overshot; what
// is not measured yet is not taken for room.
func TestFullComesBack(t *testing.T) {
	s := storageSim(t, 0)
	s.uses(21*gib + 512)
	s.settle()
	s.want(kurabe.StateStorageFull)
	s.wantEvent("RDS-EVENT-0007")
	s.wantEvent("RDS-EVENT-0221")
	r := *s.w.Report
	r.UsedBytes = 0
	s.w.Report = &r
	s.settle()
	s.want(kurabe.StateStorageFull)
	s.uses(21*gib + 512)
	s.w.Spec.Now.StorageGiB = 21
	s.settle()
	s.want(kurabe.StateStorageFull)
	s.w.Spec.Now.StorageGiB = 22 // 98 % of it are used
	s.step()
	if s.w.Assignment.Goal != kurabe.GoalRunning || s.w.Assignment.Boot != 2 {
		t.Fatalf("%+v", s.w.Assignment)
	}
	s.want(kurabe.StateStarting)
	s.settle()
	s.want(kurabe.StateAvailable)
	if n := s.count("RDS-EVENT-0007"); n != 1 {
		t.Errorf("announced %d times", n)
	}
}

func TestHostDiskFull(t *testing.T) {
	s := storageSim(t, 0)
	s.uses(2 * gib)
	s.settle()
	s.noRoom(true)
	s.step()
	if s.w.Assignment.Goal != kurabe.GoalStopped {
		t.Fatalf("%+v", s.w.Assignment)
	}
	s.obey()
	s.noRoom(true)
	s.settleWithoutRoom()
	s.want(kurabe.StateStorageFull)
	if i := slices.IndexFunc(s.events, func(e kurabe.Event) bool { return strings.Contains(e.Message, "The disk of the host is full") }); i < 0 || s.count("RDS-EVENT-0007") > 0 {
		t.Errorf("%+v", s.events)
	}
	// A look that is not finished knows nothing of the disk.
	s.noRoom(false)
	s.w.Report.Done = false
	s.step()
	if s.w.Assignment.Goal != kurabe.GoalStopped {
		t.Fatal("started although the host has not said that there is room")
	}
	s.w.Report.Done = true
	s.step()
	s.want(kurabe.StateStarting)
	s.settle()
	s.want(kurabe.StateAvailable)
	if s.w.Status.StorageAlarm != 0 {
		t.Errorf("alarm %d", s.w.Status.StorageAlarm)
	}
}

// settleWithoutRoom is settle on a host whose disk stays full.
func (s *sim) settleWithoutRoom() {
	s.t.Helper()
	for range 10 {
		s.obey()
		s.noRoom(true)
		if r := s.step(); r.Assignment == nil && r.Status == nil {
			return
		}
	}
	s.t.Fatalf("no fixed point: %+v", s.w.Status)
}

// TestRandomStorage: whatever is written, asked for and waited for, storage never
// shrinks, autoscaling obeys its maximum and its rest, and no full instance runs.
func TestRandomStorage(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := storageSim(rt, rapid.SampledFrom([]int{0, 22, 60, 100}).Draw(rt, "max"))
		used, changed := int64(gib), time.Time{}
		for range rapid.IntRange(1, 40).Draw(rt, "wishes") {
			sp := *s.w.Spec
			before := *s.w.Status
			switch rapid.IntRange(0, 5).Draw(rt, "wish") {
			case 0, 1, 2:
				used += rapid.Int64Range(0, 4*gib).Draw(rt, "written")
			case 3:
				used = max(gib, used-rapid.Int64Range(0, 8*gib).Draw(rt, "removed"))
			case 4:
				sp.Now.StorageGiB = max(sp.Now.StorageGiB, before.Applied.StorageGiB+rapid.IntRange(0, 9).Draw(rt, "more"))
				sp.Revision++
			case 5:
				s.w.Now = s.w.Now.Add(time.Duration(rapid.IntRange(1, 500).Draw(rt, "minutes")) * time.Minute)
			}
			s.w.Spec = &sp
			s.uses(used)
			if rapid.Bool().Draw(rt, "full disk") {
				s.noRoom(true)
				s.step()
			}
			s.settle()
			have, h := s.w.Status.Applied.StorageGiB, s.w.Status.Storage
			scaled := have != before.Applied.StorageGiB && have > sp.Now.StorageGiB
			switch {
			case have < before.Applied.StorageGiB || have < sp.Now.StorageGiB:
				rt.Fatalf("storage shrank to %d from %d", have, before.Applied.StorageGiB)
			case scaled && (have > sp.MaxStorageGiB || !changed.IsZero() && s.w.Now.Sub(changed) < 6*time.Hour):
				rt.Fatalf("scaled to %d of %d, %v after the last change", have, sp.MaxStorageGiB, s.w.Now.Sub(changed))
			case used >= int64(have)*gib && s.w.Assignment.Goal == kurabe.GoalRunning:
				rt.Fatalf("%d MiB of %d GiB are used and it runs", used, have)
			case used < int64(have)*gib*95/100 && s.w.Assignment.Goal != kurabe.GoalRunning:
				rt.Fatalf("%d MiB of %d GiB are used and it is stopped: %+v", used, have, h)
			}
			if have != before.Applied.StorageGiB {
				changed = s.w.Now
			}
			if len(h.Samples) > 8 {
				rt.Fatalf("%d samples", len(h.Samples))
			}
		}
	})
}
