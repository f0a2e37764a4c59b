package engine

import (
	"slices"
	"testing"

	"kurabe"
)

func TestStepsOfAReplica(t *testing.T) {
	a := kurabe.Assignment{Goal: kurabe.GoalRunning, Boot: 1, Role: &kurabe.Role{Epoch: 4, Duty: kurabe.DutyFollow, ServesReads: true,
		Followers: []kurabe.InstanceID{"db-L"}, Source: &kurabe.Source{ID: "db-S"}}}
	well := Observation{Home: true, Data: true, Follower: true, Running: true, Process: "p", Boot: 1, SettingsCurrent: true, CertificateCurrent: true, Fingerprint: "f", LimitsGroup: true,
		Applied: Applied{Process: "p", Ready: true, Loaded: "f", Probed: true, LimitsSet: true, RoleEpoch: 4, Compared: 4, Followers: a.Role.Followers, FollowersSet: true}}
	for name, c := range map[string]struct {
		change func(*Observation)
		want   []StepName
		done   bool
	}{
		"well":             {func(*Observation) {}, nil, true},
		"another source":   {func(o *Observation) { o.Applied.RoleEpoch, o.Applied.Compared = 3, 3 }, []StepName{StepReload, StepCompare}, true},
		"another follower": {func(o *Observation) { o.Applied.Followers = nil }, []StepName{StepFollowers}, true},
		"nobody logged in": {func(o *Observation) { o.Applied.Probed = false }, []StepName{StepProbe}, true},
		"what nobody has":  {func(o *Observation) { o.Applied.Rebuild = true }, []StepName{StepFence, StepDiscardData, StepClone, StepStart, StepWaitReady, StepFollowers, StepProbe}, true},
		"new": {func(o *Observation) {
			*o = Observation{Home: true, CertificateCurrent: true, SettingsCurrent: true, LimitsGroup: true, Applied: Applied{LimitsSet: true}}
		}, []StepName{StepClone, StepStart, StepWaitReady, StepFollowers, StepProbe}, false},
		"its source is away": {func(o *Observation) { o.Role = &RoleView{} }, nil, true},
		"it writes":          {func(o *Observation) { o.Follower = false }, []StepName{StepFence, StepReattach, StepStart, StepWaitReady, StepFollowers, StepProbe}, false},
	} {
		o := well
		c.change(&o)
		if steps := Next(a, o); !slices.Equal(steps, c.want) {
			t.Errorf("%s: %v, want %v", name, steps, c.want)
		}
		if done := Done(a, o); done != c.done {
			t.Errorf("%s: done %v", name, done)
		}
	}
}
