package plan

import (
	"strings"
	"testing"
	"time"

	"kurabe"
)

// What waits says why after a minute, once, and again when the reason is another one.
func TestWaitingIsTold(t *testing.T) {
	began := time.Date(2026, 11, 27, 4, 0, 0, 0, time.UTC)
	waits := func(after time.Duration, message string) *kurabe.InstanceReport {
		return &kurabe.InstanceReport{Host: "b", Instance: "db~2", Failure: &kurabe.Failure{
			Kind: kurabe.FailureOther, Step: "clone", Message: message, Attempts: 1, At: began.Add(after), Since: began,
		}}
	}
	status := kurabe.InstanceStatus{}
	for _, c := range []struct {
		name   string
		after  time.Duration
		report *kurabe.InstanceReport
		told   string
	}{
		{"at first nothing", 59 * time.Second, waits(0, "too many connections, 10 of 10"), ""},
		{"after a minute", time.Minute, waits(0, "too many connections, 10 of 10"), "too many connections"},
		{"the same in other numbers", 2 * time.Minute, waits(2*time.Minute, "too many connections, 11 of 11"), ""},
		{"another reason", 3 * time.Minute, waits(3*time.Minute, "no room"), "no room"},
		{"it gets on", 4 * time.Minute, &kurabe.InstanceReport{Host: "b", Instance: "db~2", Done: true}, ""},
		{"the first reason anew", 5 * time.Minute, waits(5*time.Minute, "no room"), "no room"},
	} {
		group := &kurabe.Group{Primary: "db", Members: []kurabe.Member{{ID: "db", Host: "a", Zone: "a"}, {ID: "db~2", Host: "b", Zone: "b"}}}
		d := &draft{
			w: World{
				Now: began.Add(c.after), Spec: &kurabe.InstanceSpec{ID: "db", Name: "x"},
				Reports: map[kurabe.InstanceID]*kurabe.InstanceReport{"db~2": c.report},
			},
			group: group, status: status, next: kurabe.Assignment{Instance: "db", Goal: kurabe.GoalRunning},
		}
		d.tellWaiting()
		status = d.status
		var said string
		for _, e := range d.result.Events {
			said += e.Message
		}
		if (said == "") != (c.told == "") || !strings.Contains(said, c.told) {
			t.Errorf("%s: told %q, want %q", c.name, said, c.told)
		}
		if c.after < time.Minute && !d.result.LookAgain.Equal(began.Add(time.Minute)) {
			t.Errorf("%s: looks again at %s", c.name, d.result.LookAgain)
		}
	}
}
