package engine

import (
	"slices"
	"testing"

	"kurabe"
)

const (
	other kurabe.InstanceID = "db-A~2"
	third kurabe.InstanceID = "db-A~3"
)

// member is an assignment of a server of a group.
func member(role kurabe.Role) kurabe.Assignment {
	role.Epoch = 3
	return kurabe.Assignment{Instance: "db-A", Goal: kurabe.GoalRunning, Boot: 1, Password: kurabe.Password{Seq: 1}, Role: &role}
}

// made is a server of a group that does not run and never did.
func made() Observation {
	return Observation{Home: true, Remains: true, Data: true, SettingsCurrent: true, CertificateCurrent: true, LimitsGroup: true, Fingerprint: "f",
		Applied: Applied{Master: true, PasswordSeq: 1, PasswordNoted: true, LimitsSet: true}}
}

// up is a primary that obeys in full, and waits for another member.
func up() Observation {
	o := made()
	o.Record, o.Running, o.Process, o.Boot = true, true, "p", 1
	o.Applied.Ran("p", "f")
	o.Applied.Ready, o.Applied.Probed = true, true
	o.Applied.Waits, o.Applied.Followers, o.Applied.FollowersSet = []kurabe.InstanceID{other}, []kurabe.InstanceID{other}, true
	o.Applied.RoleEpoch, o.Applied.Started = 3, 1
	return o
}

// behind is a follower that obeys in full.
func behind() Observation {
	o := up()
	o.Follower = true
	o.Applied.Ran("p", "f")
	o.Applied.Ready, o.Applied.PasswordSeq = true, 0
	return o
}

// dead is what a server leaves that ends by itself.
func dead(o Observation) Observation {
	o.Running, o.Process, o.Boot = false, "", 0
	return o
}

// having is a changed copy.
func having[T any](v T, change func(*T)) T { change(&v); return v }

type nextCase struct {
	name string
	a    kurabe.Assignment
	o    Observation
	want []StepName
}

func checkNext(t *testing.T, cases []nextCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Next(c.a, c.o); !slices.Equal(got, c.want) {
				t.Fatalf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestNextWriter(t *testing.T) {
	waits := kurabe.Role{Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{other}, WaitFor: []kurabe.InstanceID{other}, StartSeq: 1}
	alone, ordered, both := waits, waits, waits
	alone.WaitFor, ordered.StartSeq, both.WaitFor = nil, 2, []kurabe.InstanceID{third, other}
	more := waits
	more.Followers = []kurabe.InstanceID{other, third}
	blocks := waits
	blocks.RequireStandby = true
	opens := blocks
	opens.AllowUnprotectedClients = true
	restart := member(waits)
	restart.Boot = 2
	held := having(up(), func(o *Observation) { o.Applied.ClientsKeptOut, o.Applied.Probed = true, false })
	checkNext(t, []nextCase{
		{"true already", member(waits), up(), nil},
		{"no data, and nobody to copy", member(waits), having(Observation{}, func(o *Observation) { o.Applied.Stopped = true }), []StepName{StepClone}},
		{"dead, its start used up", member(waits), dead(up()), []StepName{StepNoteCrash}},
		{"dead, its start used up, with survivors", member(waits), having(dead(up()), func(o *Observation) { o.Survivors = true }), []StepName{StepEndSurvivors, StepNoteCrash}},
		{"dead and noted", member(waits), having(dead(up()), func(o *Observation) { o.Record = false }), nil},
		{"dead, to be restarted, its start used up", restart, dead(up()), []StepName{StepNoteCrash}},
		{"dead, a start ordered", member(ordered), dead(up()), []StepName{StepNoteCrash, StepStart, StepWaitReady, StepWaits, StepFollowers}},
		{"never ready, nobody waits", member(alone), having(dead(up()), func(o *Observation) { o.Stillborn = true }), []StepName{StepWaitReady, StepStart, StepWaitReady, StepFollowers, StepProbe}},
		{"dead, nobody waits", member(alone), dead(up()), []StepName{StepNoteCrash, StepStart, StepWaitReady, StepFollowers, StepProbe}},
		{"stopped cleanly", member(waits), having(dead(up()), func(o *Observation) { o.Record, o.Applied.Stopped = false, true }), []StepName{StepStart, StepWaitReady, StepWaits, StepFollowers, StepProbe}},
		{"stopped cleanly while held", member(waits), having(dead(held), func(o *Observation) { o.Record, o.Applied.Stopped = false, true }), []StepName{StepStart, StepWaitReady, StepWaits, StepFollowers}},
		{"boot higher", restart, up(), []StepName{StepStop, StepStart, StepWaitReady, StepWaits, StepFollowers, StepProbe}},
		{"held", member(waits), held, nil},
		{"held and covered", member(waits), having(held, func(o *Observation) { o.Covered = []kurabe.InstanceID{other} }), []StepName{StepRelease, StepProbe}},
		{"held, one of two covered", member(both), having(held, func(o *Observation) { o.Covered, o.Applied.Waits = []kurabe.InstanceID{other}, both.WaitFor }), []StepName{StepRelease, StepProbe}},
		{"held, none of two covered", member(both), having(held, func(o *Observation) { o.Applied.Waits = both.WaitFor }), nil},
		{"held, nobody waits any more", member(alone), having(held, func(o *Observation) { o.SettingsCurrent = false }), []StepName{StepWriteSettings, StepReload, StepWaits, StepRelease, StepProbe}},
		{"held, and nobody may take its place", member(opens), held, []StepName{StepRelease, StepProbe}},
		{"held, nobody may take its place, and commits do not wait yet", member(opens), having(held, func(o *Observation) { o.Applied.WaitsStale = true }), []StepName{StepWaits, StepRelease, StepProbe}},
		{"a follower is to write, and to wait from the beginning", member(blocks), having(behind(), func(o *Observation) { o.SettingsCurrent, o.Applied.Waits = false, nil }),
			[]StepName{StepPromote, StepWriteSettings, StepWaitReady, StepReload, StepWaits, StepFollowers, StepSetPassword}},
		{"stopped cleanly, and commits go on alone no more", member(blocks), having(dead(up()), func(o *Observation) { o.Record, o.Applied.Stopped = false, true }), []StepName{StepStart, StepWaitReady, StepWaits, StepFollowers}},
		{"held and not ready", member(waits), having(held, func(o *Observation) { o.Applied.Ran("p", "f"); o.Applied.ClientsKeptOut = true }), []StepName{StepWaitReady, StepWaits, StepFollowers}},
		{"a follower is to write", member(alone), having(behind(), func(o *Observation) { o.SettingsCurrent, o.Applied.RoleEpoch = false, 2 }), []StepName{StepPromote, StepWriteSettings, StepWaitReady, StepReload, StepFollowers, StepSetPassword, StepProbe}},
		{"promoted, and nothing noted since", member(alone), having(behind(), func(o *Observation) { o.Follower, o.Applied.Ready, o.Applied.RoleEpoch = false, false, 2 }), []StepName{StepWaitReady, StepFollowers, StepSetPassword, StepProbe}},
		{"a dead follower is to write", member(alone), dead(behind()), []StepName{StepNoteCrash, StepStart, StepPromote, StepWaitReady, StepFollowers, StepSetPassword, StepProbe}},
		{"one more to wait for", member(both), having(up(), func(o *Observation) { o.SettingsCurrent = false }), []StepName{StepWriteSettings, StepReload, StepWaits}},
		{"the same in another order", member(both), having(up(), func(o *Observation) { o.Applied.Waits = []kurabe.InstanceID{other, third} }), nil},
		{"reloaded, and not known to wait", member(waits), having(up(), func(o *Observation) { o.Applied.WaitsStale = true }), []StepName{StepWaits}},
		{"nobody to wait for any more, and a new password", having(member(alone), func(a *kurabe.Assignment) { a.Password.Seq = 2 }), having(up(), func(o *Observation) { o.SettingsCurrent = false }), []StepName{StepWriteSettings, StepReload, StepWaits, StepSetPassword}},
		{"another follower", member(more), up(), []StepName{StepFollowers}},
		{"another epoch", member(waits), having(up(), func(o *Observation) { o.Applied.RoleEpoch = 2 }), []StepName{StepFollowers}},
		{"note of an earlier process", member(waits), having(up(), func(o *Observation) { o.Applied.Process = "old" }), []StepName{StepWaitReady, StepReload, StepWaits, StepFollowers, StepProbe}},
	})
}

// One that holds follows nobody; what is no follower, or has no data to speak of, is left to
// what it is told next.
func TestNextHold(t *testing.T) {
	hold := member(kurabe.Role{Epoch: 3, Duty: kurabe.DutyDetached})
	told := having(behind(), func(o *Observation) { o.SettingsCurrent = false })
	holds := having(behind(), func(o *Observation) { o.Applied.HeldEpoch = 3 })
	checkNext(t, []nextCase{
		{"true already", hold, holds, nil},
		{"follows", hold, told, []StepName{StepWriteSettings, StepReload, StepHold}},
		{"held in another epoch", hold, having(behind(), func(o *Observation) { o.Applied.HeldEpoch = 2 }), []StepName{StepHold}},
		{"dead", hold, dead(holds), []StepName{StepNoteCrash, StepStart, StepWaitReady}},
		{"writes", hold, up(), nil},
		{"no data", hold, Observation{}, nil},
		{"to be made anew", hold, having(behind(), func(o *Observation) { o.Applied.Rebuild = true }), nil},
	})
	for name, o := range map[string]Observation{"holds": holds, "follows": behind(), "dead": dead(holds), "writes": having(up(), func(o *Observation) { o.Applied.HeldEpoch = 3 })} {
		if got := Done(hold, o); got != (name == "holds") {
			t.Errorf("%s: done %v", name, got)
		}
	}
}

func TestNextFollower(t *testing.T) {
	follow := member(kurabe.Role{Duty: kurabe.DutyFollow, StartSeq: 1, Source: &kurabe.Source{ID: other, Address: "127.66.0.2", Port: 5432}})
	restart := having(follow, func(a *kurabe.Assignment) { a.Boot = 2 })
	lost := *follow.Role
	lost.RebuildSeq = 1
	anew := having(follow, func(a *kurabe.Assignment) { a.Role = &lost })
	start := []StepName{StepStart, StepWaitReady}
	after := func(steps ...StepName) []StepName { return append(steps, start...) }
	checkNext(t, []nextCase{
		{"true already", follow, behind(), nil},
		{"new", follow, Observation{LimitsMissing: true}, after(StepMakeHome, StepIssueCertificate, StepClone, StepWriteSettings, StepSetLimits)},
		{"cloned", follow, having(made(), func(o *Observation) { o.Follower = true }), after()},
		{"runs as a writer", follow, having(up(), func(o *Observation) { o.SettingsCurrent = false }), after(StepFence, StepReattach, StepWriteSettings)},
		{"runs as a writer, boot higher", restart, up(), after(StepFence, StepReattach)},
		{"a writer that died", follow, dead(up()), after(StepNoteCrash, StepReattach)},
		{"a writer that died, with survivors", follow, having(dead(up()), func(o *Observation) { o.Survivors = true }), after(StepEndSurvivors, StepNoteCrash, StepReattach)},
		{"yielded", follow, having(dead(up()), func(o *Observation) { o.Record, o.Applied.Stopped, o.Applied.SteppedDown = false, true, true }), after(StepReattach)},
		{"held", follow, having(up(), func(o *Observation) { o.Applied.ClientsKeptOut = true }), after(StepFence, StepReattach)},
		{"rejoining was cut off", follow, having(dead(behind()), func(o *Observation) { o.Record, o.Applied.Rejoining = false, true }), after(StepReattach)},
		{"cannot be rewound", follow, having(dead(up()), func(o *Observation) { o.Record, o.Applied.Rejoining, o.Applied.Rebuild = false, true, true }), after(StepDiscardData, StepClone)},
		{"discarded", follow, having(dead(up()), func(o *Observation) { o.Record, o.Data, o.Applied.Rebuild = false, false, true }), after(StepClone)},
		{"to be made anew", anew, behind(), after(StepFence, StepDiscardData, StepClone)},
		{"to be made anew, boot higher", having(anew, func(a *kurabe.Assignment) { a.Boot = 2 }), behind(), after(StepFence, StepDiscardData, StepClone)},
		{"to be made anew, and dead", anew, dead(behind()), after(StepNoteCrash, StepDiscardData, StepClone)},
		{"to be made anew, a writer", anew, up(), after(StepFence, StepDiscardData, StepClone)},
		{"to be made anew, with nothing left", anew, having(dead(behind()), func(o *Observation) { o.Record, o.Data = false, false }), after(StepClone)},
		{"it applies nothing any more", follow, having(behind(), func(o *Observation) { o.Role = &RoleView{Paused: true} }), after(StepStop)},
		{"it applies, and lacks something", follow, having(behind(), func(o *Observation) { o.Role = &RoleView{} }), nil},
		{"made anew", anew, having(behind(), func(o *Observation) { o.Applied.Rebuilt = 1 }), nil},
		{"dead", follow, dead(behind()), after(StepNoteCrash)},
		{"boot higher", restart, behind(), after(StepStop)},
		{"another source", follow, having(behind(), func(o *Observation) { o.SettingsCurrent = false }), []StepName{StepWriteSettings, StepReload}},
		{"another epoch", follow, having(behind(), func(o *Observation) { o.Applied.RoleEpoch = 2 }), []StepName{StepReload}},
		{"note of an earlier process", follow, having(behind(), func(o *Observation) { o.Applied.Process = "old" }), []StepName{StepWaitReady, StepReload}},
		{"a new password", having(follow, func(a *kurabe.Assignment) { a.Password.Seq = 2 }), behind(), nil},
	})
}

func TestNextDown(t *testing.T) {
	yield := member(kurabe.Role{Duty: kurabe.DutyStepDown, WaitFor: []kurabe.InstanceID{other}})
	rest := member(kurabe.Role{Duty: kurabe.DutyFenced})
	stopped := having(member(kurabe.Role{Duty: kurabe.DutyWrite}), func(a *kurabe.Assignment) { a.Goal = kurabe.GoalStopped })
	absent := having(yield, func(a *kurabe.Assignment) { a.Goal = kurabe.GoalAbsent })
	clean := having(dead(up()), func(o *Observation) { o.Record, o.Applied.Stopped = false, true })
	survived := having(dead(up()), func(o *Observation) { o.Survivors = true })
	checkNext(t, []nextCase{
		{"yield", yield, up(), []StepName{StepStepDown}},
		{"yield while held, with other settings", yield, having(up(), func(o *Observation) { o.Applied.ClientsKeptOut, o.SettingsCurrent = true, false }), []StepName{StepStepDown}},
		{"yielded", yield, having(clean, func(o *Observation) { o.Applied.SteppedDown = true }), nil},
		{"stopped cleanly before it was to yield", yield, clean, []StepName{StepStepDown}},
		{"died before it yielded", yield, dead(up()), []StepName{StepNoteCrash}},
		{"died before it yielded, with survivors", yield, survived, []StepName{StepEndSurvivors, StepNoteCrash}},
		{"rest", rest, up(), []StepName{StepFence}},
		{"rest of a follower", rest, behind(), []StepName{StepFence}},
		{"rest of one that was never ready", rest, having(dead(up()), func(o *Observation) { o.Stillborn = true }), []StepName{StepNoteCrash}},
		{"rest of a dead one", rest, dead(up()), []StepName{StepNoteCrash}},
		{"rest of a dead one with survivors", rest, survived, []StepName{StepEndSurvivors, StepNoteCrash}},
		{"rests", rest, clean, nil},
		{"stop", stopped, up(), []StepName{StepStop}},
		{"absent", absent, up(), []StepName{StepKill, StepRemoveLimits, StepRemoveHome}},
		{"a duty of a later version", member(kurabe.Role{Duty: "dance"}), up(), nil},
	})
}

// Having nothing to do is not always being done.
func TestDone(t *testing.T) {
	follow := member(kurabe.Role{Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: other}})
	write := member(kurabe.Role{Duty: kurabe.DutyWrite, WaitFor: []kurabe.InstanceID{other}})
	for _, c := range []struct {
		name string
		a    kurabe.Assignment
		o    Observation
		want bool
	}{
		{"one without a group", kurabe.Assignment{Goal: kurabe.GoalRunning}, Observation{}, true},
		{"a writer", write, up(), true},
		{"a writer that is held", write, having(up(), func(o *Observation) { o.Applied.ClientsKeptOut = true }), false},
		{"a dead writer", write, dead(up()), false},
		{"a follower that is asked for the first time", follow, behind(), false},
		{"a follower without its source", follow, having(behind(), func(o *Observation) { o.Role = &RoleView{} }), false},
		{"a follower", follow, having(behind(), func(o *Observation) { o.Role = &RoleView{Following: true} }), true},
		{"one that yielded", member(kurabe.Role{Duty: kurabe.DutyStepDown}), having(dead(up()), func(o *Observation) { o.Applied.SteppedDown = true }), true},
		{"one that died before it yielded", member(kurabe.Role{Duty: kurabe.DutyStepDown}), dead(up()), false},
		{"one that rests", member(kurabe.Role{Duty: kurabe.DutyFenced}), dead(up()), true},
		{"a duty of a later version", member(kurabe.Role{Duty: "dance"}), up(), false},
		{"stopped", having(follow, func(a *kurabe.Assignment) { a.Goal = kurabe.GoalStopped }), dead(up()), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Done(c.a, c.o); got != c.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// A server that takes over from one that nobody hears keeps clients out for a while: after it
// follows no more, and before it loads the rules of a primary or is started as one.
func TestNextOutlasts(t *testing.T) {
	a := member(kurabe.Role{Duty: kurabe.DutyWrite, WaitForOldLease: true})
	done := func(o *Observation) { o.Applied.OldLeaseAwaited = 3 }
	first := func(o Observation) StepName { return append(Next(a, o), "")[0] }
	before := func(o Observation, one, other StepName) bool {
		all := Next(a, o)
		n, m := slices.Index(all, one), slices.Index(all, other)
		return n >= 0 && m > n
	}
	for _, c := range []struct {
		name string
		ok   bool
	}{
		{"it is promoted first", first(behind()) == StepPromote && before(behind(), StepPromote, StepAwaitOldLease) && before(behind(), StepAwaitOldLease, StepFollowers)},
		{"it was promoted", first(up()) == StepAwaitOldLease},
		{"it has outlasted", !slices.Contains(Next(a, having(up(), done)), StepAwaitOldLease)},
		{"it is started as a writer", before(dead(up()), StepAwaitOldLease, StepStart)},
		{"it is started, and promoted then", before(dead(behind()), StepPromote, StepAwaitOldLease)},
		{"another epoch", first(having(up(), func(o *Observation) { o.Applied.OldLeaseAwaited = 2 })) == StepAwaitOldLease},
	} {
		if !c.ok {
			t.Errorf("%s: %v, %v, %v", c.name, Next(a, behind()), Next(a, up()), Next(a, dead(up())))
		}
	}
}
