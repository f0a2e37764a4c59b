package engine

import "kurabe"

// disruptive are the steps that cut client sessions.
var disruptive = map[StepName]bool{StepStop: true, StepKill: true, StepEndSurvivors: true, StepFence: true, StepYield: true}

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
	add(dead, o.burial())
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
