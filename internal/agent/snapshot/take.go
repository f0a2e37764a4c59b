package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kurabe"
	"kurabe/internal/logkey"
)

// taking is what a snapshot is being taken of: the server that writes, and the standby that is
// copied in its place, "" for none. Both are "" while nothing is taken.
type taking struct {
	writer, standby kurabe.InstanceID
	remote          kurabe.Epoch // of a writer on another host, 0 of one here
}

// spoiled says whether a changed assignment ends that: the server writes no more, the standby is
// none any more, or commits do not wait for it.
func (t taking) spoiled(by kurabe.Assignment) bool {
	switch by.Instance {
	case "":
		return false
	case t.writer:
		return !by.Writes() || by.Goal == kurabe.GoalAbsent || t.standby != "" && !waitsFor(by, t.standby)
	case t.standby:
		return by.Goal != kurabe.GoalRunning || by.Role == nil || by.Role.Duty != kurabe.DutyFollow || t.remote != 0 && by.Role.Epoch != t.remote
	}
	return false
}

func waitsFor(writer kurabe.Assignment, id kurabe.InstanceID) bool {
	return writer.Goal == kurabe.GoalRunning && writer.Role != nil && slices.Contains(writer.Role.WaitFor, id)
}

// take makes the snapshot, of a standby if there is one here that has every commit: clients are
// then not in its way, nor it in theirs. Where that fails the server that writes is copied, and
// it is noted why.
func (u *worker) take(ctx context.Context, a kurabe.SnapshotAssignment, progress func(done, total int64)) error {
	// Only now: it may have changed while others had their turn.
	defer u.setTaking(taking{})
	if a.Standby != "" {
		return u.takeRemoteStandby(ctx, a, progress)
	}
	of, err := u.takeFrom(a)
	if err != nil {
		return err
	}
	standbys, why := u.set.standbys(of)
	for _, standby := range standbys {
		if err = u.takeStandby(ctx, a, standby, progress); err == nil || ctx.Err() != nil {
			u.instead = ""
			return err
		}
		u.Log.Warn("standby not copied", logkey.Instance, standby.Instance, logkey.Error, err)
		why = fmt.Sprintf("the standby %s could not be copied: %s", standby.Instance, err)
	}
	u.instead = why
	if of, err = u.takeFrom(a); err != nil {
		return err
	}
	_, err = u.set.Folders.Take(ctx, a, of, progress)
	return err
}

// takeStandby takes it of one standby.
func (u *worker) takeStandby(ctx context.Context, a kurabe.SnapshotAssignment, standby kurabe.Assignment, progress func(done, total int64)) error {
	of, err := u.sourceOf(a)
	if err != nil {
		return err
	}
	u.setTaking(taking{writer: of.Instance, standby: standby.Instance})
	// From here on a change cuts this. One that came before that has to be seen here.
	if of, err = u.sourceOf(a); err != nil {
		return err
	}
	again, _ := u.set.standbys(of)
	if !slices.ContainsFunc(again, func(m kurabe.Assignment) bool { return m.Instance == standby.Instance }) {
		return errors.New("it is no longer a standby with every commit")
	}
	_, err = u.set.Folders.TakeStandby(ctx, a, of, standby, progress)
	return err
}

// standbys are the assignments of those on this host that have every commit of a writer, or why
// there is none although others of its group are here.
func (s *Set) standbys(of kurabe.Assignment) (list []kurabe.Assignment, why string) {
	if of.Role == nil || of.Goal != kurabe.GoalRunning {
		return nil, ""
	}
	here := 0
	for _, m := range s.Members(of.Instance.Owner()) {
		switch {
		case m.Instance == of.Instance || m.Goal == kurabe.GoalAbsent:
		case m.StandsBy(of):
			list = append(list, m)
		default:
			here++
		}
	}
	if len(list) == 0 && here > 0 {
		why = "no standby has every commit"
	}
	return list, why
}

// sourceOf is the assignment of the server that writes, or why there is none to take of.
func (u *worker) sourceOf(a kurabe.SnapshotAssignment) (kurabe.Assignment, error) {
	of, known := u.set.writer(a.Of)
	switch {
	case !known && len(u.set.Members(a.Of)) > 0, known && of.Goal != kurabe.GoalAbsent && !of.Writes():
		return of, errors.New("the DB instance has no primary at this moment")
	case !known:
		return of, errors.New("this host has no such DB instance")
	case of.Goal == kurabe.GoalAbsent:
		return of, errSourceGone
	}
	return of, nil
}

// takeFrom is sourceOf for a take that begins now: from here on it is cut when that server
// is to write no more.
func (u *worker) takeFrom(a kurabe.SnapshotAssignment) (kurabe.Assignment, error) {
	for {
		of, err := u.sourceOf(a)
		if err != nil {
			return of, err
		}
		u.setTaking(taking{writer: of.Instance})
		// Whoever deposed it before that did not see whom this is taken of.
		again, err := u.sourceOf(a)
		if err != nil || again.Instance == of.Instance {
			return again, err
		}
	}
}

func (u *worker) setTaking(t taking) {
	u.state.Lock()
	defer u.state.Unlock()
	u.taking = t
}

// takes is what the snapshot is being taken of.
func (u *worker) takes() taking {
	u.state.Lock()
	defer u.state.Unlock()
	return u.taking
}
