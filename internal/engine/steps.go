package engine

import (
	"slices"

	"kurabe"
)

// disruptive are the steps that cut client sessions.
var disruptive = map[StepName]bool{StepStop: true, StepKill: true, StepEndSurvivors: true, StepFence: true, StepStepDown: true}

// Next is pure: the steps that are left, in order, to make the assignment true.
// Only the first is certain; each pass looks again.
func Next(a kurabe.Assignment, o Observation) []StepName {
	switch a.Goal {
	case kurabe.GoalRunning:
		if a.Role != nil {
			return beforeStart(nextInGroup(a, o), o)
		}
		return beforeStart(nextRunning(a, o), o)
	case kurabe.GoalStopped:
		return nextStopped(o)
	case kurabe.GoalAbsent:
		return nextAbsent(o)
	}
	return nil
}

func nextRunning(a kurabe.Assignment, o Observation) []StepName {
	var steps []StepName
	add := func(when bool, s StepName) {
		if when {
			steps = append(steps, s)
		}
	}
	// A restart comes first: smaller limits or static settings must not reach
	// the old process.
	restart := o.Running && o.Boot < a.Boot
	add(restart, StepStop)
	running := o.Running && !restart
	dead := o.Record && !o.Running
	add(!o.Home, StepMakeHome)
	add(!o.Data && a.Origin == nil, StepCopyTemplate)
	add(!o.Data && a.Origin != nil, StepRestoreSnapshot)
	add(!o.CertificateCurrent, StepIssueCertificate)
	add(!o.SettingsCurrent, StepWriteSettings)
	add(otherLimits(a, o), StepSetLimits)
	add(dead, o.endedStep())
	add(!running && o.Survivors, StepEndSurvivors)
	add(!running, StepStart)

	note := o.Applied
	if !running || note.Process != o.Process {
		note = Applied{Master: note.Master, PasswordSeq: note.PasswordSeq, PasswordNoted: note.PasswordNoted}
	}
	add(!note.Ready, StepWaitReady)
	add(!note.Master, StepEnsureMaster)
	add(note.Master && !note.hasPassword(a.Password), StepSetPassword)
	add(running && (note.Loaded != o.Fingerprint || !o.SettingsCurrent || !o.CertificateCurrent), StepReload)
	add(!note.Probed, StepProbe)
	return steps
}

func otherLimits(a kurabe.Assignment, o Observation) bool {
	return o.LimitsMissing || !o.Applied.LimitsSet || o.Applied.Limits != a.Limits
}

func nextStopped(o Observation) []StepName {
	switch {
	case o.Running:
		return []StepName{StepStop}
	case o.Survivors:
		return []StepName{StepNoteCrash, StepEndSurvivors}
	case o.Record:
		return []StepName{StepNoteCrash}
	}
	return nil
}

func nextAbsent(o Observation) []StepName {
	var steps []StepName
	if o.Running {
		steps = append(steps, StepKill)
	}
	if o.Survivors {
		steps = append(steps, StepEndSurvivors)
	}
	if o.LimitsGroup {
		steps = append(steps, StepRemoveLimits)
	}
	if o.Remains {
		steps = append(steps, StepRemoveHome)
	}
	return steps
}

// Done says whether an assignment is true of what was seen, once no steps are left. A
// server of a group can have nothing to do and wait for another one, or for an order.
func Done(a kurabe.Assignment, o Observation) bool {
	if a.Role == nil || a.Goal != kurabe.GoalRunning {
		return true
	}
	switch a.Role.Duty {
	case kurabe.DutyWrite:
		return o.Running && !o.Follower && !o.Applied.ClientsKeptOut
	case kurabe.DutyFollow:
		if a.Role.ServesReads { // it serves also while its source does not
			return o.Running && o.Follower
		}
		return o.Running && o.Follower && o.Role != nil && o.Role.Following
	case kurabe.DutyDetached:
		return o.Running && o.Follower && o.Applied.HeldEpoch == a.Role.Epoch
	case kurabe.DutyStepDown:
		return !o.Running && o.Applied.SteppedDown
	case kurabe.DutyFenced:
		return !o.Running
	}
	return false
}

func nextInGroup(a kurabe.Assignment, o Observation) []StepName {
	switch a.Role.Duty {
	case kurabe.DutyWrite:
		return nextPrimary(a, o)
	case kurabe.DutyFollow:
		return nextFollower(a, o)
	case kurabe.DutyDetached:
		return nextDetached(a, o)
	case kurabe.DutyStepDown:
		return nextStepDown(o)
	case kurabe.DutyFenced:
		return nextFenced(o)
	}
	return nil // Done says that it is not
}

// list is a list of steps in the making.
type list []StepName

func (s *list) add(when bool, name StepName) {
	if when {
		*s = append(*s, name)
	}
}

// addEndedProcess adds the steps for a server that ended by itself. Processes of it that are left
// come first: one may still serve a client.
func (s *list) addEndedProcess(o Observation) {
	s.add(!o.Running && o.Survivors, StepEndSurvivors)
	s.add(!o.Running && o.Record, o.endedStep())
}

func (s *list) addHome(o Observation) {
	s.add(!o.Home, StepMakeHome)
	s.add(!o.CertificateCurrent, StepIssueCertificate)
}

func (s *list) settings(a kurabe.Assignment, o Observation) {
	s.add(!o.SettingsCurrent, StepWriteSettings)
	s.add(otherLimits(a, o), StepSetLimits)
}

// noteOf is what is noted of the process that is to go on.
func noteOf(o Observation, running bool) Applied {
	if !running {
		return o.Applied.of("")
	}
	return o.Applied.of(o.Process)
}

// outdated says whether a running server has not loaded what is on disk, or is to be.
func outdated(o Observation, note Applied) bool {
	return note.Loaded != o.Fingerprint || !o.SettingsCurrent || !o.CertificateCurrent
}

// nextPrimary brings a primary to its assignment.
func nextPrimary(a kurabe.Assignment, o Observation) []StepName {
	var s list
	role := *a.Role
	restart := o.Running && o.Boot < a.Boot
	s.add(restart, StepStop)
	running := o.Running && !restart
	s.addEndedProcess(o)
	if !running && !restart && !o.Applied.MayStart(role) {
		return s
	}
	if !o.Data {
		return append(s, StepClone) // which says that there is nobody to clone
	}
	s.add(running && o.Follower, StepPromote)
	// Clients are kept out until the rules of a primary are loaded, or by not being started.
	outlast := role.WaitForOldLease && o.Applied.OldLeaseAwaited != role.Epoch
	s.add(outlast && (running || !o.Follower), StepAwaitOldLease)
	s.addHome(o)
	s.settings(a, o)
	s.add(!running, StepStart)
	s.add(!running && o.Follower, StepPromote)
	s.add(outlast && !running && o.Follower, StepAwaitOldLease)
	note, held := noteOf(o, running), o.Applied.ClientsKeptOut
	if o.Follower {
		note.Ready, note.Probed, note.PasswordSeq = false, false, 0
		held = held || holdsPromoted(role)
	}
	if !running {
		started := o.Applied
		started.Stopped = started.Stopped || restart
		held = started.holds(role)
	}
	s.add(!note.Ready, StepWaitReady)
	s.add(running && outdated(o, note), StepReload)
	s.add(note.WaitsStale || !sameMembers(note.Waits, role.WaitFor), StepWaits)
	s.add(!note.FollowersSet || !sameMembers(note.Followers, role.Followers) || note.RoleEpoch != role.Epoch, StepFollowers)
	// It comes after the waiting is seen to.
	release := running && held && (hasEnoughFollowers(role, o) || role.AllowUnprotectedClients)
	s.add(release, StepRelease)
	s.add(!note.Master, StepEnsureMaster)
	s.add(note.Master && !note.hasPassword(a.Password), StepSetPassword)
	s.add(!note.Probed && (!held || release), StepProbe)
	return s
}

// nextFollower: what runs as a primary, or on data that is of no use, ends at once, whatever
// it does; then its data becomes that of a follower, and the rest is as for any server, but
// that nothing is written.
func nextFollower(a kurabe.Assignment, o Observation) []StepName {
	var s list
	discard := o.Data && o.Applied.discards(*a.Role)
	astray := o.Running && (!o.Follower || discard)
	restart := o.Running && !astray && (o.Boot < a.Boot || o.Role != nil && o.Role.Paused)
	s.add(astray, StepFence)
	s.add(restart, StepStop)
	running := o.Running && !astray && !restart
	s.addEndedProcess(o)
	s.addHome(o)
	if !running {
		s.add(o.Data && !discard && (!o.Follower || o.Applied.Rejoining), StepReattach)
		s.add(discard, StepDiscardData)
		s.add(!o.Data || discard, StepClone)
	}
	s.settings(a, o)
	s.add(!running, StepStart)
	note := noteOf(o, running)
	s.add(!note.Ready, StepWaitReady)
	// Also when only the epoch is another: that the server obeys it is to be noted.
	s.add(running && (outdated(o, note) || note.RoleEpoch != a.Role.Epoch), StepReload)
	if a.Role.ServesReads {
		s.add(!note.FollowersSet || !sameMembers(note.Followers, a.Role.Followers), StepFollowers)
		s.add(!note.Probed, StepProbe)
		// Last, since a source that does not answer must keep nobody from reading.
		s.add(o.Applied.Compared != a.Role.Epoch && o.Data && !discard, StepCompare)
	}
	return s
}

// nextDetached detaches a follower, before anything else that it needs. A server that is no
// follower, or has no data, has no position to report.
func nextDetached(a kurabe.Assignment, o Observation) []StepName {
	var s list
	s.addEndedProcess(o)
	if !o.Data || !o.Follower || o.Applied.Rebuild || o.Applied.Rejoining {
		return s
	}
	s.addHome(o)
	s.settings(a, o)
	s.add(!o.Running, StepStart)
	note := noteOf(o, o.Running)
	s.add(!note.Ready, StepWaitReady)
	s.add(o.Running && outdated(o, note), StepReload)
	s.add(o.Applied.HeldEpoch != a.Role.Epoch, StepHold)
	return s
}

// nextStepDown stops a primary cleanly; one that has stopped so has stepped down.
func nextStepDown(o Observation) []StepName {
	var s list
	o.Stillborn = false // it is to be down anyway
	s.addEndedProcess(o)
	s.add(o.Running || o.Applied.Stopped && !o.Applied.SteppedDown, StepStepDown)
	return s
}

// nextFenced kills a server.
func nextFenced(o Observation) []StepName {
	var s list
	o.Stillborn = false
	s.add(o.Running, StepFence)
	s.addEndedProcess(o)
	return s
}

// hasEnoughFollowers says whether one of the standbys that commits wait for has all that the
// clients of a primary would see.
func hasEnoughFollowers(r kurabe.Role, o Observation) bool {
	return len(r.WaitFor) == 0 || slices.ContainsFunc(r.WaitFor, func(id kurabe.InstanceID) bool { return slices.Contains(o.Covered, id) })
}

// sameMembers compares members in any order.
func sameMembers(a, b []kurabe.InstanceID) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
