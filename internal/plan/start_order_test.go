package plan

import (
	"testing"
	"time"

	"kurabe"
)

// A primary that cannot start, and that nobody may replace, is ordered to start ever less often;
// one that dies for the first time in a while at once.
func TestStartIsOrderedEverLessOften(t *testing.T) {
	const id = kurabe.InstanceID("db-A")
	g := &kurabe.Group{Instance: id, Epoch: 3, Primary: id, Members: []kurabe.Member{{ID: id, Zone: "a"}, {ID: id.Member(2), Zone: "b"}}}
	a := kurabe.Assignment{Instance: id, Generation: 7, Goal: kurabe.GoalRunning, Role: &kurabe.Role{Epoch: 3, Duty: kurabe.DutyWrite}}
	var status kurabe.InstanceStatus
	now := time.Unix(1000, 0)
	boot := int64(0)
	look := func() (ordered bool, again time.Time) {
		r := kurabe.InstanceReport{Instance: id, Generation: 7, Role: &kurabe.RoleReport{Epoch: 3, StartedSeq: a.Role.StartSeq}}
		d := &draft{w: World{Now: now, Spec: &kurabe.InstanceSpec{ID: id, Name: "shop"}, Assignment: &a, Report: &r}, group: g, status: status, next: a}
		seq := d.startSeq(&a, boot)
		ordered = seq > a.Role.StartSeq
		role := *a.Role
		role.StartSeq, a.Role, a.Boot, status = seq, &role, boot, d.status
		return ordered, d.result.LookAgain
	}
	var orders []time.Time
	for range 6000 { // ten minutes in which each start ends at once
		ordered, again := look()
		if ordered {
			orders = append(orders, now)
		} else if !again.After(now) {
			t.Fatalf("after %d orders nobody is to look again", len(orders))
		}
		now = now.Add(100 * time.Millisecond)
	}
	if n := len(orders); n < startsAtOnce+15 || n > startsAtOnce+30 {
		t.Errorf("%d orders in ten minutes", n)
	}
	for n := startsAtOnce + 8; n < len(orders); n++ {
		if pause := orders[n].Sub(orders[n-1]); pause < startPauseMax || pause > startPauseMax+time.Second {
			t.Errorf("order %d came %v after the one before", n, pause)
		}
	}
	now = now.Add(2 * startsEnd)
	for n := range startsAtOnce {
		if ordered, _ := look(); !ordered {
			t.Errorf("death %d in a while waits", n+1)
		}
	}
	// A clock that went back makes nobody wait for the time that it had.
	now = now.Add(-time.Hour)
	if ordered, _ := look(); !ordered {
		t.Error("it waits for a clock that was set back")
	}
	// Nor does another content wait for what the one before it was: it may be the cure.
	for range startsAtOnce + 8 {
		look()
	}
	if ordered, _ := look(); ordered {
		t.Fatal("it does not wait, so what follows proves nothing")
	}
	boot++
	for n := range 1 + startsAtOnce {
		if ordered, _ := look(); !ordered {
			t.Errorf("start %d with another content waits", n+1)
		}
	}
}
