package fake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kurabe"
	"kurabe/internal/engine"
)

// asked are the steps that the running server has to answer.
var asked = map[engine.StepName]bool{
	engine.StepWaitReady: true, engine.StepEnsureMaster: true, engine.StepSetPassword: true, engine.StepReload: true, engine.StepProbe: true,
	engine.StepStop: true, engine.StepStepDown: true, engine.StepPromote: true, engine.StepWaits: true, engine.StepFollowers: true, engine.StepRelease: true,
	engine.StepHold: true,
}

// answers waits while a step asks a server that is frozen.
func (e *Engine) answers(ctx context.Context, id kurabe.InstanceID, step engine.StepName) error {
	if !asked[step] {
		return nil
	}
	e.net.Lock()
	frozen := e.get(id).frozen
	e.net.Unlock()
	if frozen == nil {
		return nil
	}
	select {
	case <-frozen:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s does not answer: %w", id, context.Cause(ctx))
	}
}

// stop ends a server whose followers get the rest of its log if it is a clean stop. One whose
// follower is there and does not take it comes to no end, and is cut off.
func (e *Engine) stop(i *instance, a kurabe.Assignment, clean bool) {
	e.net.flow()
	if clean && i.o.Running && a.Role != nil {
		i.o.Applied.Stopped = e.net.drain(i)
	}
	e.end(i)
	i.o.Record = false
}

// doInGroup changes the world as a step would that only servers of a group take.
func (e *Engine) doInGroup(i *instance, a kurabe.Assignment, step engine.StepName) error {
	o, n := &i.o, &i.o.Applied
	if a.Role == nil {
		return fmt.Errorf("%s of %s, which is in no group", step, a.Instance)
	}
	switch step {
	case engine.StepFence:
		e.end(i)
		o.Record, o.Survivors = false, false
		return nil
	case engine.StepStepDown:
		e.stop(i, a, true)
		n.SteppedDown = n.Stopped
		if a.Role.HandsOverToReplica {
			n.EndedAt = int64(len(i.log))
		}
		return nil
	case engine.StepClone, engine.StepReattach, engine.StepDiscardData:
		return e.changeData(i, a, step)
	}
	switch step {
	case engine.StepAwaitOldLease:
		n.OldLeaseAwaited = a.Role.Epoch
		return nil
	case engine.StepCompare:
		return e.compare(i, a)
	}
	if !o.Running {
		return fmt.Errorf("%s: %s does not run", step, a.Instance)
	}
	switch step {
	case engine.StepPromote:
		n.PasswordSeq, n.Ready, n.Probed = 0, false, false
		n.ClientsKeptOut = n.ClientsKeptOut || a.Role.RequireStandby && len(a.Role.WaitFor) > 0
		o.Follower = false
		i.leads()
	case engine.StepFollowers:
		i.slots = slices.Clone(a.Role.Followers)
		n.Followers, n.FollowersSet, n.RoleEpoch = i.slots, true, a.Role.Epoch
	case engine.StepWaits:
		if !sameMembers(i.runs.role.WaitFor, a.Role.WaitFor) {
			return errors.New("the settings of before are loaded")
		}
		i.waits = a.Role.WaitFor
		n.Waits, n.WaitsStale = a.Role.WaitFor, false
	case engine.StepHold:
		if i.runs.role.Duty != kurabe.DutyDetached {
			return errors.New("it still follows")
		}
		n.HeldEpoch, n.HeldAt, n.RoleEpoch = a.Role.Epoch, int64(len(i.log)), a.Role.Epoch
	case engine.StepRelease:
		n.ClientsKeptOut = false
		i.disk = render(a, *n)
		i.reload(a)
	default:
		return fmt.Errorf("unknown step %s", step)
	}
	return nil
}

// compare has a follower that has log which its source lacks be made anew: it would ask for what
// there is not, for ever.
func (e *Engine) compare(i *instance, a kurabe.Assignment) error {
	n := &i.o.Applied
	from := e.net.writer(i, a.Role.Source.ID)
	switch {
	case from == nil && e.net.known(a.Role.Source.ID), from != nil && from.frozen != nil:
		return fmt.Errorf("%s: %s does not answer", engine.StepCompare, a.Role.Source.ID)
	case from != nil && len(common(i.log, from.log)) < len(i.log):
		n.Rebuild = true
	default:
		n.Compared = a.Role.Epoch
	}
	return nil
}

// changeData makes the data of a follower.
func (e *Engine) changeData(i *instance, a kurabe.Assignment, step engine.StepName) error {
	o, n, role := &i.o, &i.o.Applied, *a.Role
	if o.Running || role.Duty != kurabe.DutyFollow || role.Source == nil {
		return fmt.Errorf("%s of %s, running %v, which is to %s", step, a.Instance, o.Running, role.Duty)
	}
	if step == engine.StepDiscardData {
		o.Data, o.Follower, i.log, i.slots, i.spoilt = false, false, nil, nil, false
		n.Rebuild = true
		return nil
	}
	if step == engine.StepClone {
		if o.Data {
			return nil
		}
		n.Master, n.PasswordSeq, n.Rejoining, n.Rebuild = true, 0, false, false
	} else {
		n.Rejoining = true
	}
	from := e.net.writer(i, role.Source.ID)
	if from == nil && e.net.known(role.Source.ID) || from != nil && from.frozen != nil {
		return fmt.Errorf("%s: %s does not answer", step, role.Source.ID)
	}
	if e.full() {
		return fmt.Errorf("%s of %s: no space left on device", step, a.Instance)
	}
	var theirs []int64
	if from != nil {
		theirs = from.log
	}
	switch {
	case step == engine.StepClone:
		i.log, i.outrun, i.stream = slices.Clone(theirs), false, stream{}
		n.Rebuilt = max(n.Rebuilt, role.RebuildSeq)
	case i.spoilt, a.Engine.RestartsForLog() && len(common(i.log, theirs)) < len(i.log): // nothing takes its own transactions back
		n.Rebuild = true
		return nil
	default:
		i.log = common(i.log, theirs)
		n.Master, n.PasswordSeq, n.Rejoining = true, 0, false
	}
	o.Data, o.Follower, i.slots = true, true, nil
	return nil
}

// Beside returns an engine of another host: servers of both reach each other.
func (e *Engine) Beside() *Engine {
	e.net.Lock()
	defer e.net.Unlock()
	other := &Engine{instances: map[kurabe.InstanceID]*instance{}, net: e.net}
	e.net.engines = append(e.net.engines, other)
	return other
}

// Write writes as a client of a server would, and says by which number. acked: one of those
// whom it has to wait for has it. Otherwise the client waits, and the write is there.
func (e *Engine) Write(id kurabe.InstanceID) (number int64, acked bool, err error) {
	e.net.Lock()
	defer e.net.Unlock()
	i := e.get(id)
	if !i.o.Running || !i.o.Applied.Ready || i.o.Follower || i.runs.held || i.frozen != nil {
		return 0, false, fmt.Errorf("%s takes no writes", id)
	}
	e.net.writes++
	i.write(e.net.writes)
	e.net.flow()
	return e.net.writes, i.covered() == len(i.log), nil
}

// Log is what a server's data has, by number of the write.
func (e *Engine) Log(id kurabe.InstanceID) []int64 {
	e.net.Lock()
	defer e.net.Unlock()
	e.net.flow()
	return slices.Clone(e.get(id).log)
}

// Spoil has the data of a server be such that it can only be cloned.
func (e *Engine) Spoil(id kurabe.InstanceID) {
	e.change(id, func(i *instance) { i.spoilt = true })
}

// Outrun has the source of a follower give up log that the follower lacks.
func (e *Engine) Outrun(id kurabe.InstanceID) {
	e.change(id, func(i *instance) { i.outrun = true })
}

// Unplug takes a server from the network, or puts it back.
func (e *Engine) Unplug(id kurabe.InstanceID, unplugged bool) {
	e.change(id, func(i *instance) { i.unplugged = unplugged })
}

// Lag has a follower fall behind though it is connected, or catch up.
func (e *Engine) Lag(id kurabe.InstanceID, lags bool) {
	e.change(id, func(i *instance) { i.lags = lags })
}

// change brings the world to where it is before something of it is changed.
func (e *Engine) change(id kurabe.InstanceID, do func(*instance)) {
	e.net.Lock()
	defer e.net.Unlock()
	e.net.flow()
	do(e.get(id))
}
