package plan

import (
	"slices"
	"testing"
	"time"

	"kurabe"
)

// That the only server of an instance does not answer is told once, when it has lasted, and that
// it answers again once; that nobody knows, as after a restart of the service, is neither.
func TestTellMute(t *testing.T) {
	const id = kurabe.InstanceID("db-A")
	since := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	mute := kurabe.InstanceReport{Instance: id, Running: true, UnresponsiveSince: since}
	again := mute
	again.UnresponsiveSince = since.Add(time.Minute) // by an agent that was started meanwhile
	answers := kurabe.InstanceReport{Instance: id, Running: true, Responsive: true}
	unknown := kurabe.InstanceReport{Instance: id}
	var status kurabe.InstanceStatus
	for n, c := range []struct {
		after  time.Duration
		report kurabe.InstanceReport
		goal   kurabe.Goal
		told   string
	}{
		{0, answers, kurabe.GoalRunning, ""},
		{muteTold / 2, mute, kurabe.GoalRunning, ""},
		{muteTold, mute, kurabe.GoalRunning, "KURABE-EVENT-0063"},
		{time.Minute, mute, kurabe.GoalRunning, ""},
		{time.Minute, unknown, kurabe.GoalRunning, ""},
		{2 * time.Minute, again, kurabe.GoalRunning, ""},
		{2 * time.Minute, unknown, kurabe.GoalRunning, ""},
		{3 * time.Minute, answers, kurabe.GoalRunning, "KURABE-EVENT-0064"},
		{4 * time.Minute, answers, kurabe.GoalRunning, ""},
		{5 * time.Minute, again, kurabe.GoalRunning, "KURABE-EVENT-0063"},
		{6 * time.Minute, unknown, kurabe.GoalStopped, ""},
		{7 * time.Minute, answers, kurabe.GoalRunning, ""},
	} {
		d := &draft{w: World{Now: since.Add(c.after), Spec: &kurabe.InstanceSpec{ID: id, Name: "shop"}}, next: kurabe.Assignment{Instance: id, Goal: c.goal}, status: status}
		d.tellUnresponsive(&c.report)
		var told []string
		for _, e := range d.result.Events {
			told = append(told, e.ID)
		}
		if want := slices.DeleteFunc([]string{c.told}, func(s string) bool { return s == "" }); !slices.Equal(told, want) {
			t.Errorf("%d: told %q, want %q", n, told, want)
		}
		if looks := !d.result.LookAgain.IsZero(); looks != (n == 1) {
			t.Errorf("%d: looks again: %v", n, looks)
		}
		status = d.status
	}
}
