package engine

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kurabe"
)

// world is one server of a group, as its steps leave it: by files, a process and notes. A
// step may be cut off before its deed, when what is noted first is noted, or after it,
// before what is noted then.
type world struct {
	t          *rapid.T
	a          kurabe.Assignment
	o          Observation
	written    string // settings on disk
	loaded     string // by the process
	processes  int
	unwindable bool
	covers     bool // whoever is waited for has all

	// What is true, whatever is noted. Died: it ended as a primary, and not cleanly. Unsure:
	// a commit may show after a start that others lack. Orders are the numbers of its starts.
	died, unsure bool
	cloned       int64 // the order that the data was made by
	orders       []int64
}

// rendered are the settings: they depend on all that Render may look at.
func rendered(a kurabe.Assignment, note Applied) string {
	return fmt.Sprint(a.Role.Duty, a.Role.Source != nil, a.Role.WaitFor, a.Role.Followers, " held:", keepsClientsOut(a, note))
}

func (w *world) look() Observation {
	o := w.o
	o.Fingerprint = rendered(w.a, o.Applied)
	o.SettingsCurrent = w.written == o.Fingerprint
	if o.Running && w.covers {
		o.Covered = o.WaitsFor()
	}
	if o.Running {
		o.Role = &RoleView{Writing: !o.Follower, Following: o.Follower}
	}
	return o
}

// die ends the process as kill -9 would.
func (w *world) die() {
	if w.o.Running {
		w.died = !w.o.Follower
		w.unsure = w.unsure || w.died
		w.down()
		w.o.Record = true
	}
}

func (w *world) down() { w.o.Running, w.o.Process, w.o.Boot = false, "", 0 }

// must says what a step may rely on.
func (w *world) must(cond bool, step StepName, why string) {
	if !cond {
		w.t.Fatalf("%s: %s; %+v of %+v", step, why, w.o, *w.a.Role)
	}
}

// moment is a moment at which a step can be cut off.
type moment int

const (
	whole moment = iota
	beforeDeed
	beforeNote
)

// deed is what a step does, and what it notes before and after.
type deed struct {
	before, do, after func(*Applied)
}

func (w *world) step(name StepName, cut moment) {
	d := w.deed(name)
	for n, part := range []func(*Applied){d.before, d.do, d.after} {
		if cut == beforeDeed && n == 1 || cut == beforeNote && n == 2 {
			return
		}
		if part != nil {
			part(&w.o.Applied)
		}
	}
}

func (w *world) deed(name StepName) deed {
	o, role := &w.o, *w.a.Role
	follows := role.Duty == kurabe.DutyFollow
	w.must(!follows || !slices.Contains([]StepName{StepEnsureMaster, StepSetPassword, StepProbe, StepPromote, StepCopyTemplate, StepRestoreSnapshot}, name), name, "it is to follow")
	w.must(follows || !slices.Contains([]StepName{StepClone, StepReattach, StepDiscardData}, name), name, "it is not to follow")
	switch name {
	case StepMakeHome:
		return deed{do: func(*Applied) { o.Home, o.Remains = true, true }}
	case StepIssueCertificate:
		return deed{do: func(*Applied) { o.CertificateCurrent = true }}
	case StepWriteSettings:
		return deed{do: func(*Applied) { w.written = rendered(w.a, o.Applied) }}
	case StepSetLimits:
		return deed{do: func(*Applied) { o.LimitsMissing = false }, after: func(n *Applied) { n.Limits, n.LimitsSet = w.a.Limits, true }}
	case StepNoteCrash:
		return deed{do: func(*Applied) { o.Record = false }}
	case StepEndSurvivors:
		return deed{do: func(*Applied) { o.Survivors = false }}
	case StepClone, StepReattach, StepDiscardData:
		return w.dataDeed(name)
	case StepStart:
		return w.startDeed()
	case StepStop, StepFence, StepStepDown:
		return w.endDeed(name)
	}
	w.must(o.Running, name, "nothing runs")
	return w.liveDeed(name)
}

func (w *world) dataDeed(name StepName) deed {
	o := &w.o
	w.must(!o.Running && !o.Survivors, name, "a server works on the data")
	switch name {
	case StepClone:
		w.must(!o.Data, name, "there is data")
		return deed{
			before: func(n *Applied) {
				n.Master, n.PasswordSeq, n.Rejoining, n.Rebuild = true, 0, false, false
				n.Ran("", "")
			},
			do: func(*Applied) {
				o.Data, o.Follower, w.died, w.unsure, w.cloned = true, true, false, false, w.a.Role.RebuildSeq
			},
			after: func(n *Applied) { n.Rebuilt = max(n.Rebuilt, w.a.Role.RebuildSeq) },
		}
	case StepReattach:
		w.must(o.Data, name, "there is no data")
		if w.unwindable {
			return deed{before: func(n *Applied) { n.Rejoining = true }, after: func(n *Applied) { n.Rebuild = true }}
		}
		return deed{
			before: func(n *Applied) { n.Rejoining = true },
			do:     func(*Applied) { o.Follower, w.died, w.unsure = true, false, false },
			after:  func(n *Applied) { n.Master, n.PasswordSeq, n.Rejoining = true, 0, false },
		}
	}
	w.must(o.Applied.Rebuild || w.a.Role.RebuildSeq > o.Applied.Rebuilt, name, "nobody asked for that")
	return deed{before: func(n *Applied) { n.Rebuild = true }, do: func(*Applied) { o.Data, o.Follower, w.unwindable = false, false, false }}
}

// startDeed checks what is at stake: one that may show what others lack lets nobody in, and
// comes up once for each order.
func (w *world) startDeed() deed {
	o, role := &w.o, *w.a.Role
	w.must(!o.Running && !o.Survivors && o.Data, StepStart, "it cannot")
	return deed{
		before: func(n *Applied) { n.Begin(role); w.written = rendered(w.a, *n) },
		do: func(n *Applied) {
			w.must(!n.Rejoining && !n.Rebuild, StepStart, "the data is of no use")
			waits := role.Duty == kurabe.DutyWrite && len(role.WaitFor) > 0
			used := slices.ContainsFunc(w.orders, func(old int64) bool { return old >= role.StartSeq })
			w.must(!waits || !w.unsure || n.ClientsKeptOut && w.written == rendered(w.a, *n), StepStart, "clients would come in")
			w.must(!waits || !w.died || !used, StepStart, "it was not ordered")
			w.orders = append(w.orders, role.StartSeq)
			w.processes++
			o.Record, o.Running, o.Boot, o.Process = true, true, w.a.Boot, fmt.Sprint(w.processes)
			w.loaded = w.written
		},
		after: func(n *Applied) {
			n.Ran(o.Process, w.loaded)
			if role.Duty == kurabe.DutyFollow {
				n.RoleEpoch = role.Epoch
			}
		},
	}
}

func (w *world) endDeed(name StepName) deed {
	o := &w.o
	if name == StepFence {
		w.must(o.Running, name, "nothing runs")
		return deed{do: func(*Applied) { w.die(); o.Record = false }}
	}
	end := func(*Applied) {
		w.must(o.Running || name == StepStepDown, name, "nothing runs")
		// What nobody waited for to the end goes to others now, unless clients were kept
		// out because it has not yet.
		w.died, w.unsure = false, w.unsure && o.Applied.ClientsKeptOut
		w.down()
	}
	return deed{do: end, after: func(n *Applied) {
		n.Stopped, o.Record = true, false
		n.SteppedDown = name == StepStepDown
	}}
}

func (w *world) liveDeed(name StepName) deed {
	o, role := &w.o, *w.a.Role
	switch name {
	case StepWaitReady:
		w.must(role.Duty == kurabe.DutyFollow || !o.Follower, name, "a follower is never ready to write")
		return deed{after: func(n *Applied) {
			if n.Process != o.Process {
				n.Ran(o.Process, "")
			}
			n.Ready = true
		}}
	case StepPromote:
		w.must(o.Follower, name, "it writes already")
		return deed{before: func(n *Applied) { n.PasswordSeq, n.Ready, n.Probed = 0, false, false }, do: func(*Applied) { o.Follower = false }}
	}
	w.must(o.Applied.Process == o.Process && o.Applied.Ready, name, "it is not ready")
	switch name {
	case StepReload:
		return deed{
			before: func(n *Applied) {
				n.Loaded, n.WaitsStale = "", n.WaitsStale || !sameMembers(n.Waits, role.WaitFor)
			},
			do: func(*Applied) { w.loaded = w.written },
			after: func(n *Applied) {
				n.Loaded = w.loaded
				if role.Duty == kurabe.DutyFollow {
					n.RoleEpoch = role.Epoch
				}
			},
		}
	case StepWaits:
		w.must(w.loaded == rendered(w.a, o.Applied), name, "it has not loaded that")
		return deed{after: func(n *Applied) { n.Waits, n.WaitsStale = role.WaitFor, false }}
	case StepFollowers:
		return deed{after: func(n *Applied) { n.Followers, n.FollowersSet, n.RoleEpoch = role.Followers, true, role.Epoch }}
	case StepRelease:
		w.must(len(role.WaitFor) == 0 || w.covers && sameMembers(o.WaitsFor(), role.WaitFor), name, "others lack something")
		return deed{before: func(n *Applied) { n.ClientsKeptOut, n.Loaded = false, "" }, do: func(n *Applied) {
			w.written = rendered(w.a, *n)
			w.loaded, w.unsure = w.written, false
		}, after: func(n *Applied) { n.Loaded = w.loaded }}
	case StepEnsureMaster:
		return deed{after: func(n *Applied) { n.Master, n.PasswordSeq, n.PasswordNoted = true, w.a.Password.Seq, true }}
	case StepSetPassword:
		return deed{after: func(n *Applied) { n.PasswordSeq, n.PasswordNoted = w.a.Password.Seq, true }}
	case StepProbe:
		w.must(!keepsClientsOut(w.a, o.Applied), name, "clients are kept out")
		return deed{after: func(n *Applied) { n.Probed = true }}
	}
	w.t.Fatalf("%s is no step of a server of a group", name)
	return deed{}
}

// order draws what the planner may say next. A start is ordered by a number that was not
// used before, or not ordered; a clone too, where rebuilt is the number of the newest.
func order(t *rapid.T, before kurabe.Assignment, rebuilt int64) kurabe.Assignment {
	subset := func(label string) []kurabe.InstanceID {
		return rapid.SampledFrom([][]kurabe.InstanceID{nil, {other}, {other, third}}).Draw(t, label)
	}
	role := kurabe.Role{Epoch: before.Role.Epoch + kurabe.Epoch(rapid.IntRange(0, 1).Draw(t, "epoch")), StartSeq: before.Role.StartSeq + rapid.Int64Range(0, 1).Draw(t, "start")}
	role.Duty = rapid.SampledFrom([]kurabe.Duty{kurabe.DutyWrite, kurabe.DutyWrite, kurabe.DutyFollow, kurabe.DutyStepDown, kurabe.DutyFenced}).Draw(t, "duty")
	switch role.Duty {
	case kurabe.DutyWrite, kurabe.DutyStepDown:
		role.Followers, role.WaitFor = subset("followers"), subset("waitFor")
	case kurabe.DutyFollow:
		role.Source = &kurabe.Source{ID: other}
		role.RebuildSeq = before.Role.RebuildSeq
		if rapid.IntRange(0, 2).Draw(t, "rebuild") == 0 {
			role.RebuildSeq = max(role.RebuildSeq, rebuilt) + 1
		}
	}
	a := before
	a.Role = &role
	a.Boot += rapid.Int64Range(0, 1).Draw(t, "boot")
	a.Password.Seq += rapid.Int64Range(0, 1).Draw(t, "password")
	return a
}

// act does what is left to do, until nothing is. Steps are cut off, and the process dies,
// while there is mischief left.
func (w *world) act(mischief int) {
	const most = 100
	for range most {
		o := w.look()
		steps := Next(w.a, o)
		w.check(steps, o)
		if len(steps) == 0 {
			w.settled(o)
			return
		}
		if refused(w.a, o, steps[0]) {
			return
		}
		cut := whole
		if mischief > 0 {
			cut = moment(rapid.IntRange(int(whole), int(beforeNote)).Draw(w.t, "cut"))
			if rapid.IntRange(0, 9).Draw(w.t, "dies") == 0 {
				w.die()
				w.o.Survivors = w.o.Record && !w.o.Running && rapid.Bool().Draw(w.t, "survivors")
				mischief--
				continue
			}
		}
		w.step(steps[0], cut)
		if cut != whole {
			mischief--
			if rapid.Bool().Draw(w.t, "overtaken") {
				return // the next order comes before this one is obeyed
			}
		}
	}
	w.t.Fatalf("there is always something left: %v; %+v of %+v", Next(w.a, w.look()), w.o, *w.a.Role)
}

// refused are steps that can only fail, with the reason: a primary has nobody to get data
// from.
func refused(a kurabe.Assignment, o Observation, step StepName) bool {
	return a.Role.Duty == kurabe.DutyWrite && (step == StepClone && !o.Data || step == StepStart && (o.Applied.Rejoining || o.Applied.Rebuild))
}

// check holds a list of steps against what must never be in one.
func (w *world) check(steps []StepName, o Observation) {
	role := *w.a.Role
	for n, s := range steps {
		switch s {
		case StepStart:
			stopped := o.Running || o.Applied.Stopped
			w.must(role.Duty != kurabe.DutyWrite || len(role.WaitFor) == 0 || stopped || role.StartSeq > o.Applied.Started, s, "its order is used up")
			w.must(role.Duty == kurabe.DutyWrite || role.Duty == kurabe.DutyFollow, s, "it is to be down")
		case StepClone:
			w.must(!o.Data || n > 0 && steps[n-1] == StepDiscardData, s, "there is data")
		case StepEnsureMaster, StepSetPassword, StepProbe, StepCopyTemplate, StepRestoreSnapshot, StepPromote:
			w.must(role.Duty == kurabe.DutyWrite, s, "it is not to write")
		case StepStop:
			w.must(o.Boot < w.a.Boot, s, "no restart is asked for")
		case StepFence:
			w.must(role.Duty == kurabe.DutyFenced || role.Duty == kurabe.DutyFollow && (!o.Follower || role.RebuildSeq > o.Applied.Rebuilt), s, "it does what it is to do")
		}
		cuts := slices.Contains([]StepName{StepStop, StepKill, StepFence, StepStepDown, StepEndSurvivors}, s)
		w.must(disruptive[s] == cuts, s, "it is thought to cut sessions, or not to")
	}
}

// settled demands that nothing is left to do only when all is done, or another one has to
// do something first.
func (w *world) settled(o Observation) {
	role := *w.a.Role
	w.must(!o.Survivors && !(o.Record && !o.Running), "", "a dead server has left something")
	if Done(w.a, o) {
		if o.Running {
			w.must(role.Duty != kurabe.DutyFollow || w.cloned >= role.RebuildSeq, "", "its data is of before the order to clone")
			w.must(w.loaded == rendered(w.a, o.Applied) && o.Applied.RoleEpoch == role.Epoch, "", "it does not obey")
			w.must(role.Duty != kurabe.DutyWrite || sameMembers(o.WaitsFor(), role.WaitFor) && o.Applied.PasswordSeq == w.a.Password.Seq, "", "it does not obey")
		}
		return
	}
	switch role.Duty {
	case kurabe.DutyWrite:
		waits := o.Running && o.Applied.ClientsKeptOut && len(role.WaitFor) > 0 && !w.covers
		w.must(waits || !o.Running && !o.Applied.MayStart(role), "", "it should write")
	case kurabe.DutyStepDown:
		w.must(!o.Running, "", "it should be down")
	default:
		w.must(false, "", "it should obey")
	}
}

// Whatever is ordered, and whenever the service or the server dies, no list of steps holds
// what must not be, and each is worked off to its end.
func TestGroupWorks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, a: member(kurabe.Role{Duty: kurabe.DutyWrite})}
		w.o = having(made(), func(o *Observation) { o.Applied.Stopped = true })
		if rapid.Bool().Draw(t, "standby") {
			w.a, w.o = member(kurabe.Role{Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: other}}), Observation{LimitsMissing: true}
		}
		for range rapid.IntRange(1, 8).Draw(t, "orders") {
			w.covers = rapid.Bool().Draw(t, "covers")
			w.unwindable = w.o.Data && rapid.IntRange(0, 3).Draw(t, "unwindable") == 0
			w.act(rapid.IntRange(0, 4).Draw(t, "mischief"))
			w.a = order(t, w.a, w.o.Applied.Rebuilt)
		}
	})
}
