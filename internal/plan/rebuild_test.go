package plan

import (
	"testing"
	"time"

	"kurabe"
)

// A follower that cannot start is made anew, once an hour at most, and only by what its
// own data can be blamed for.
func TestRebuildOfWhatCannotStart(t *testing.T) {
	const id = kurabe.InstanceID("db-A")
	second := id.Member(2)
	now := time.Unix(100_000, 0)
	broken := func() (*draft, *kurabe.InstanceReport, kurabe.Assignment) {
		a := kurabe.Assignment{Instance: id, Generation: 7, Goal: kurabe.GoalRunning, Role: &kurabe.Role{Epoch: 3, Duty: kurabe.DutyWrite}}
		f := &kurabe.InstanceReport{Instance: second, Generation: 4, Role: &kurabe.RoleReport{Epoch: 3, RebuiltSeq: 2},
			Failure: &kurabe.Failure{Kind: kurabe.FailureOther, Step: "wait-ready", Message: "PANIC: no checkpoint", Attempts: 5}}
		d := &draft{
			w: World{Now: now, Spec: &kurabe.InstanceSpec{ID: id, Name: "shop"}, Assignment: &a,
				Report:  &kurabe.InstanceReport{Instance: id, Generation: 7, Running: true, Role: &kurabe.RoleReport{Epoch: 3, Writing: true}},
				Reports: map[kurabe.InstanceID]*kurabe.InstanceReport{second: f}},
			group: &kurabe.Group{Instance: id, Epoch: 3, Primary: id, Members: []kurabe.Member{{ID: id}, {ID: second}}},
		}
		d.next.Goal, d.status.Applied.MultiAZ = kurabe.GoalRunning, true
		return d, f, kurabe.Assignment{Instance: second, Generation: 4, Role: &kurabe.Role{Epoch: 3, Duty: kurabe.DutyFollow}}
	}
	d, _, old := broken()
	if seq := d.rebuildSeq(second, old); seq != 3 || !told(d, "KURABE-EVENT-0017") || !d.status.RebuiltAt.Equal(now) {
		t.Fatalf("order %d, %+v", seq, d.result)
	}
	var f *kurabe.InstanceReport
	d, f, old = broken()
	f.Failure.Kind = kurabe.FailureParameters // with which the primary runs
	if seq := d.rebuildSeq(second, old); seq != 3 {
		t.Errorf("order %d", seq)
	}
	for name, spoil := range map[string]func(d *draft, f *kurabe.InstanceReport, old *kurabe.Assignment){
		"it was tried fewer times": func(_ *draft, f *kurabe.InstanceReport, _ *kurabe.Assignment) { f.Failure.Attempts = 4 },
		"its disk is full":         func(_ *draft, f *kurabe.InstanceReport, _ *kurabe.Assignment) { f.Failure.Kind = kurabe.FailureStorage },
		"its address is taken":     func(_ *draft, f *kurabe.InstanceReport, _ *kurabe.Assignment) { f.Failure.Kind = kurabe.FailureNetwork },
		"the writer has not run with its parameters": func(d *draft, f *kurabe.InstanceReport, _ *kurabe.Assignment) {
			f.Failure.Kind, d.w.Assignment.Boot = kurabe.FailureParameters, 1
		},
		"another step fails":             func(_ *draft, f *kurabe.InstanceReport, _ *kurabe.Assignment) { f.Failure.Step = "clone" },
		"it runs":                        func(_ *draft, f *kurabe.InstanceReport, _ *kurabe.Assignment) { f.Running = true },
		"what is told is of another one": func(_ *draft, f *kurabe.InstanceReport, _ *kurabe.Assignment) { f.Generation = 3 },
		"it was made anew a moment ago": func(d *draft, _ *kurabe.InstanceReport, _ *kurabe.Assignment) {
			d.status.RebuiltAt = now.Add(-time.Minute)
		},
		"an order is under way": func(d *draft, _ *kurabe.InstanceReport, old *kurabe.Assignment) {
			old.Role.RebuildSeq = 3
			d.w.Members = map[kurabe.InstanceID]*kurabe.Assignment{second: old}
		},
		"the writer does not write": func(d *draft, _ *kurabe.InstanceReport, _ *kurabe.Assignment) { d.w.Report.Role.Writing = false },
		"the writer hangs":          func(d *draft, _ *kurabe.InstanceReport, _ *kurabe.Assignment) { d.w.Report.Role.Unresponsive = true },
	} {
		d, f, old := broken()
		spoil(d, f, &old)
		if seq := d.rebuildSeq(second, old); seq != old.Role.RebuildSeq || len(d.result.Events) > 0 {
			t.Errorf("%s: order %d, %+v", name, seq, d.result.Events)
		}
	}
}
