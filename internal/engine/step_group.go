package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"kurabe"
	"kurabe/internal/faultpoint"
	"kurabe/internal/proc"
)

// doInGroup runs a step that only servers of a group take.
func (l *Lifecycle) doInGroup(ctx context.Context, name StepName, i Instance) error {
	if i.Role == nil {
		return fmt.Errorf("unknown step %s", name)
	}
	switch name {
	case StepFence:
		return l.fence(ctx, i)
	case StepStepDown:
		return l.stepDown(ctx, i)
	case StepRelease:
		return l.admitClients(ctx, i)
	case StepAwaitOldLease:
		return l.awaitOldLease(ctx, i)
	}
	r := l.c.Driver
	switch name {
	case StepClone:
		return l.clone(ctx, i, r)
	case StepReattach:
		return l.rejoin(ctx, i, r)
	case StepDiscardData:
		return l.discardData(ctx, i, r)
	case StepPromote:
		return l.promote(ctx, i, r)
	case StepFollowers:
		return l.followers(ctx, i, r)
	case StepWaits:
		return l.waits(ctx, i, r)
	case StepCompare:
		return l.compareWithSource(ctx, i, r)
	case StepHold:
		return l.detach(ctx, i, r)
	}
	return fmt.Errorf("unknown step %s", name)
}

// beginInGroup notes the start that is about to be made of a server of a group, and writes
// the settings that go with the note. forget takes the note back where no process came of
// it: the order to start is not used up then.
func (l *Lifecycle) beginInGroup(i *Instance) (forget func() error, err error) {
	if i.Role == nil {
		return func() error { return nil }, nil
	}
	before, err := readApplied(i.Home)
	if err != nil {
		return nil, err
	}
	switch {
	case before.Rejoining || before.Rebuild:
		return nil, errors.New("the data is between that of a writer and that of a follower; it must follow another member of the group first")
	case i.Role.Duty == kurabe.DutyWrite && !before.MayStart(*i.Role):
		return nil, fmt.Errorf("start %d was made already, and no other is ordered", i.Role.StartSeq)
	}
	if err := note(i.Home, func(a *Applied) { a.Begin(*i.Role); i.ClientsKeptOut = a.ClientsKeptOut }); err != nil {
		return nil, err
	}
	faultpoint.Reach("after", "note-start")
	forget = func() error { return note(i.Home, func(a *Applied) { *a = before }) }
	if err := l.writeSettings(*i); err != nil {
		return nil, errors.Join(err, forget())
	}
	return forget, nil
}

// noteStopped notes a clean end of a server that was asked for one. How a process ended
// that an earlier service started is not always known; it was asked while it lived, and a
// server that obeys ends cleanly.
func noteStopped(i Instance, p proc.Process) error {
	if exit, known := p.Exit(); known && exit != (proc.ExitStatus{}) {
		return nil
	}
	return note(i.Home, func(a *Applied) { a.Stopped = true })
}

// fenceGrace is what a server has to end by itself, in which it also ends its sessions.
const fenceGrace = 500 * time.Millisecond

// fence ends a server at once, also one that hangs or is frozen, and its record: what
// follows is no crash.
func (l *Lifecycle) fence(ctx context.Context, i Instance) error {
	if err := l.endNow(ctx, i); err != nil {
		return err
	}
	return i.Home.Daemon().Forget()
}

// endNow is fence without forgetting the record: what follows is a crash.
func (l *Lifecycle) endNow(ctx context.Context, i Instance) error {
	rest := func(ctx context.Context) error { return l.endSurvivors(ctx, i) }
	if err := i.Home.Daemon().Kill(ctx, syscall.Signal(l.c.Driver.KillSignal()), fenceGrace, rest); err != nil {
		return fmt.Errorf("fence %s: %w", i.Instance, err)
	}
	return nil
}

// detach makes a running follower follow nobody. It notes the position of its log with that, so
// that no earlier observation is taken for it.
func (l *Lifecycle) detach(ctx context.Context, i Instance, r Replicator) error {
	at, err := r.Hold(ctx, i)
	if err != nil {
		return fmt.Errorf("have %s follow nobody: %w", i.Instance, err)
	}
	return note(i.Home, func(a *Applied) { a.HeldEpoch, a.HeldAt, a.RoleEpoch = i.Role.Epoch, at, i.Role.Epoch })
}

// followers sees to those who follow. It is the last thing that makes a server obey its
// role as a primary in full.
func (l *Lifecycle) followers(ctx context.Context, i Instance, r Replicator) error {
	if err := r.Followers(ctx, i); err != nil {
		return fmt.Errorf("see to the followers of %s: %w", i.Instance, err)
	}
	return note(i.Home, func(a *Applied) {
		a.Followers, a.FollowersSet, a.RoleEpoch = slices.Clone(i.Role.Followers), true, i.Role.Epoch
	})
}

// compareWithSource ends a read replica's endless request for log that does not exist, when its
// source or the source's epoch has changed.
func (l *Lifecycle) compareWithSource(ctx context.Context, i Instance, r Replicator) error {
	if c, ok := r.(Comparer); ok {
		err := c.Compare(ctx, i, i.authority())
		if errors.Is(err, ErrRebuild) {
			return note(i.Home, func(a *Applied) { a.Rebuild = true })
		}
		if err != nil {
			return err
		}
	}
	return note(i.Home, func(a *Applied) { a.Compared = i.Role.Epoch })
}

// noteReload notes before a reload that nothing is known of what the server has loaded, nor
// for whom its commits wait, where that may change. Without it, one whose settings go from
// A to B, in a reload that is cut off, and back to A would seem to have A all the time.
func noteReload(i Instance) error {
	applied, err := readApplied(i.Home)
	if err != nil {
		return err
	}
	stale := applied.WaitsStale || i.Role != nil && !sameMembers(applied.Waits, i.Role.WaitFor)
	if applied.Loaded == "" && applied.WaitsStale == stale {
		return nil
	}
	return note(i.Home, func(a *Applied) { a.Loaded, a.WaitsStale = "", stale })
}

func (l *Lifecycle) waits(ctx context.Context, i Instance, r Replicator) error {
	if err := r.Waits(ctx, i); err != nil {
		return fmt.Errorf("have commits wait for %v: %w", i.Role.WaitFor, err)
	}
	return note(i.Home, func(a *Applied) { a.Waits, a.WaitsStale = slices.Clone(i.Role.WaitFor), false })
}

// admitClients lets clients in. The note is written first: it says which settings are right.
func (l *Lifecycle) admitClients(ctx context.Context, i Instance) error {
	if err := note(i.Home, func(a *Applied) { a.ClientsKeptOut = false }); err != nil {
		return err
	}
	i.ClientsKeptOut = false
	if err := l.writeSettings(i); err != nil {
		return err
	}
	return l.reload(ctx, i)
}

const (
	// refuseTime bounds keeping new clients out of a server that is about to stop.
	refuseTime = 2 * time.Second
	// yieldGrace is how long a clean stop may take, in which nobody serves: a server with much
	// to write out, or one whose stop waits for something that never comes. Its data is made
	// fit to follow afterwards, as after a death.
	yieldGrace = 2 * time.Second
	// giveGrace is how long it may take for a read replica: only a clean stop tells that one
	// that it has all.
	giveGrace = 30 * time.Second
	// easeTime bounds what is done before that, while clients go on: less than the time in
	// which a primary is to have left a full disk.
	easeTime = 10 * time.Second
)

// stepDown ends a primary in such a way that its followers have all of its log: no new client
// comes in, the clean stop ends the sessions, and waits for every follower that is there. A
// stop that comes to no end is cut off. What was acknowledged is at the followers in either
// case, so another one can write.
func (l *Lifecycle) stepDown(ctx context.Context, i Instance) error {
	_, alive, err := i.Home.Daemon().Find()
	if err != nil {
		return err
	}
	if alive {
		l.flushBeforeStop(ctx, i)
		l.refuseNewSessions(ctx, i)
		grace := yieldGrace
		if i.Role.HandsOverToReplica {
			grace = giveGrace
		}
		graceful, cancel := context.WithTimeout(ctx, grace)
		err := l.stop(graceful, i)
		late := graceful.Err() != nil
		cancel()
		switch {
		case err != nil && (late || !i.Role.HandsOverToReplica) && ctx.Err() == nil: // of one that gives, why is to be known
			return l.fence(ctx, i) // it has not yielded, but it is dead
		case err != nil:
			return err
		}
	}
	applied, err := readApplied(i.Home)
	if err != nil {
		return err
	}
	if !applied.Stopped {
		return fmt.Errorf("%s ended before it had stopped cleanly", i.Instance)
	}
	end, err := l.logEnd(ctx, i)
	if err != nil {
		return err
	}
	return note(i.Home, func(a *Applied) { a.SteppedDown, a.EndedAt = true, end })
}

// logEnd is the end of the log of a cleanly stopped server, in bytes or events as the engine
// counts: the read replica that takes its place must have that much. It is 0 for a server in whose
// group the record says who has every commit.
func (l *Lifecycle) logEnd(ctx context.Context, i Instance) (int64, error) {
	if !i.Role.HandsOverToReplica {
		return 0, nil
	}
	end, err := l.c.Driver.LogEnd(ctx, i)
	if err != nil {
		return 0, fmt.Errorf("find the end of the log of %s: %w", i.Instance, err)
	}
	return end, nil
}

// flushBeforeStop writes pages to disk while clients continue, so that the stop, during which
// nobody is served, has less to write (80 MB of pages, and 90 log files to remove, made clients
// wait for 1.8 s). Nothing depends on its result.
func (l *Lifecycle) flushBeforeStop(ctx context.Context, i Instance) {
	ctx, cancel := context.WithTimeout(ctx, easeTime)
	defer cancel()
	_ = l.c.Driver.EaseStop(ctx, i)
}

// refuseNewSessions spares clients a session that would be cut off in a moment. The stop refuses
// them as well and does not depend on this, so a server that does not answer stops, too.
func (l *Lifecycle) refuseNewSessions(ctx context.Context, i Instance) {
	if _, refuses := l.c.Driver.(Refuser); refuses || i.Version.Version == "" {
		return // the stop does it, or there is nothing to render settings for
	}
	ctx, cancel := context.WithTimeout(ctx, refuseTime)
	defer cancel()
	i.ClientsKeptOut = true
	if l.writeSettings(i) == nil && noteReload(i) == nil {
		_ = l.c.Driver.Reload(ctx, i)
	}
}

// refuseClients comes before the stop of a primary whose commits would be in its way. One
// that does not answer is stopped all the same: it ends at once where it cannot end well.
// What it has loaded is noted as unknown first: a server that lives on, because we die
// before the stop, would keep clients out for ever.
func (l *Lifecycle) refuseClients(ctx context.Context, i Instance) error {
	r, refuses := l.c.Driver.(Refuser)
	if !refuses || i.Role == nil || i.Role.Duty == kurabe.DutyFollow {
		return nil
	}
	if err := note(i.Home, func(a *Applied) { a.Loaded = "" }); err != nil {
		return err
	}
	faultpoint.Reach("after", "note-refusal")
	ctx, cancel := context.WithTimeout(ctx, refuseTime)
	defer cancel()
	_ = r.RefuseClients(ctx, i)
	return nil
}

// authority is the file by which members know each other's certificates.
func (i Instance) authority() string { return filepath.Join(i.Home.TLSDir(), authorityFile) }
