package plan

import (
	"strings"
	"testing"
	"time"

	"kurabe"
)

// recoveryWorld is a pair whose primary has ended while its standby lacked commits, and an
// operator who accepts that.
func recoveryWorld() (*draft, kurabe.InstanceID, kurabe.InstanceID) {
	const id = kurabe.InstanceID("db-A")
	second := id.Member(2)
	d := &draft{
		w: World{
			Now: time.Unix(100, 0), Spec: &kurabe.InstanceSpec{ID: id, Name: "shop", Recovery: &kurabe.Recovery{Seq: 1, Epoch: 3, To: second}},
			Assignment: &kurabe.Assignment{Instance: id, Generation: 7, Goal: kurabe.GoalRunning, Role: &kurabe.Role{Epoch: 3, Duty: kurabe.DutyWrite}},
			Report:     &kurabe.InstanceReport{Instance: id, Generation: 7, Role: &kurabe.RoleReport{Epoch: 3}},
			Reports:    map[kurabe.InstanceID]*kurabe.InstanceReport{second: {Instance: second, Running: true, Role: &kurabe.RoleReport{Epoch: 3}}},
		},
		group: &kurabe.Group{Instance: id, Epoch: 3, Primary: id, UnprotectedSince: time.Unix(50, 0),
			Members: []kurabe.Member{{ID: id, Zone: "a"}, {ID: second, Zone: "b"}}},
	}
	d.next.Goal = kurabe.GoalRunning
	return d, id, second
}

func told(d *draft, id string) bool {
	for _, e := range d.result.Events {
		if e.ID == id {
			return true
		}
	}
	return false
}

// TestRecovery: nobody else writes before it is known that the old primary has obeyed the
// order to rest, and the word counts once.
func TestRecovery(t *testing.T) {
	d, id, second := recoveryWorld()
	if !d.forceRecovery() || d.group.ForcedPrimary != second || d.group.Primary != id || d.group.Epoch != 3 || !told(d, "KURABE-EVENT-0014") {
		t.Fatalf("%+v, %+v", d.group, d.result.Events)
	}
	if role := d.primaryRole(d.w.Assignment, 0); role.Duty != kurabe.DutyFenced {
		t.Errorf("the old writer is told to %s", role.Duty)
	}
	for name, spoil := range map[string]func(a *kurabe.Assignment, r *kurabe.InstanceReport){
		"it was not told yet":      func(a *kurabe.Assignment, _ *kurabe.InstanceReport) { a.Role.Duty = kurabe.DutyWrite },
		"it has not heard of it":   func(_ *kurabe.Assignment, r *kurabe.InstanceReport) { r.Generation-- },
		"it runs":                  func(_ *kurabe.Assignment, r *kurabe.InstanceReport) { r.Running = true },
		"what it has left remains": func(_ *kurabe.Assignment, r *kurabe.InstanceReport) { r.Done = false },
	} {
		a := *d.w.Assignment
		a.Role = &kurabe.Role{Epoch: 3, Duty: kurabe.DutyFenced}
		a.Generation = 8
		r := kurabe.InstanceReport{Instance: id, Generation: 8, Done: true, Role: &kurabe.RoleReport{Epoch: 3}}
		spoil(&a, &r)
		e := *d
		e.group = d.group.Clone()
		e.w.Assignment, e.w.Report = &a, &r
		if !e.forceRecovery() || e.group.Primary != id {
			t.Errorf("%s: %s writes", name, e.group.Primary)
		}
	}
	d.w.Assignment = &kurabe.Assignment{Instance: id, Generation: 8, Goal: kurabe.GoalRunning, Role: &kurabe.Role{Epoch: 3, Duty: kurabe.DutyFenced}}
	d.w.Report = &kurabe.InstanceReport{Instance: id, Generation: 8, Done: true, Role: &kurabe.RoleReport{Epoch: 3}}
	if !d.forceRecovery() || d.group.Primary != second || d.group.Epoch != 4 || d.group.ForcedPrimary != "" || len(d.group.SyncSet) > 0 || !d.group.UnprotectedSince.Equal(d.w.Now) {
		t.Errorf("%+v", d.group)
	}
	if d.forceRecovery() {
		t.Error("the word counts twice")
	}
}

// A word of another situation does nothing, and is told so.
func TestRecoveryOfAnotherTime(t *testing.T) {
	for name, spoil := range map[string]func(d *draft, id, second kurabe.InstanceID){
		"another epoch":              func(d *draft, _, _ kurabe.InstanceID) { d.w.Spec.Recovery.Epoch = 2 },
		"a standby has every commit": func(d *draft, _, second kurabe.InstanceID) { d.group.SyncSet = []kurabe.InstanceID{second} },
		"the writer writes again": func(d *draft, _, _ kurabe.InstanceID) {
			d.w.Report.Running, d.w.Report.Role.Writing = true, true
		},
		"the writer itself":     func(d *draft, id, _ kurabe.InstanceID) { d.w.Spec.Recovery.To = id },
		"nobody":                func(d *draft, id, _ kurabe.InstanceID) { d.w.Spec.Recovery.To = id.Member(3) },
		"one that does not run": func(d *draft, _, second kurabe.InstanceID) { d.w.Reports[second].Running = false },
		"one that hangs":        func(d *draft, _, second kurabe.InstanceID) { d.w.Reports[second].Role.Unresponsive = true },
		"one that is made anew": func(d *draft, _, second kurabe.InstanceID) {
			d.w.Members = map[kurabe.InstanceID]*kurabe.Assignment{second: {Instance: second, Role: &kurabe.Role{RebuildSeq: 1}}}
		},
	} {
		d, id, second := recoveryWorld()
		spoil(d, id, second)
		if d.forceRecovery() || d.group.ForcedPrimary != "" || d.group.Primary != id || !told(d, "KURABE-EVENT-0015") {
			t.Errorf("%s: %+v, %+v", name, d.group, d.result.Events)
		}
		if d.status.RecoverySeq != 1 {
			t.Errorf("%s: it would be looked at again", name)
		}
	}
}

// Who is to take over may end before the old primary has: then it starts again as ever.
func TestRecoveryIsCalledOff(t *testing.T) {
	d, id, second := recoveryWorld()
	if !d.forceRecovery() {
		t.Fatal("it is not taken up")
	}
	d.w.Reports[second].Running = false
	if d.forceRecovery() || d.group.ForcedPrimary != "" || d.group.Primary != id || !told(d, "KURABE-EVENT-0015") {
		t.Errorf("%+v", d.group)
	}
	if role := d.primaryRole(d.w.Assignment, 0); role.Duty != kurabe.DutyWrite {
		t.Errorf("the writer is told to %s", role.Duty)
	}
	if !strings.Contains(strings.Join(d.result.Reasons, " "), "called off") {
		t.Errorf("%q", d.result.Reasons)
	}
}
