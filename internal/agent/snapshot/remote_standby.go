package snapshot

import (
	"context"
	"errors"
	"fmt"

	"kurabe"
)

// takeRemoteStandby makes the snapshot of a standby whose writer is on another host. Nothing else here can
// be copied in its place: when that fails the planner has the writer's host take it.
func (u *worker) takeRemoteStandby(ctx context.Context, a kurabe.SnapshotAssignment, progress func(done, total int64)) error {
	if _, err := u.remoteStandby(a); err != nil {
		return err
	}
	u.setTaking(taking{standby: a.Standby, remote: a.Epoch})
	// From here on a change cuts this. One that came before that has to be seen here.
	standby, err := u.remoteStandby(a)
	if err != nil {
		return err
	}
	u.instead = ""
	_, err = u.set.Folders.TakeFar(ctx, a, standby, progress)
	return err
}

// remoteStandby is the assignment of the standby to copy. It must follow the writer that the order
// is about: what was acknowledged before that was given is in the log of this one, or of an
// earlier one, and a writer of an earlier time could lack it.
func (u *worker) remoteStandby(a kurabe.SnapshotAssignment) (kurabe.Assignment, error) {
	for _, m := range u.set.Members(a.Of) {
		switch {
		case m.Instance != a.Standby:
		case m.Goal == kurabe.GoalAbsent:
			return m, errSourceGone
		case m.Goal != kurabe.GoalRunning || m.Role == nil || m.Role.Duty != kurabe.DutyFollow || m.Role.Source == nil:
			return m, fmt.Errorf("%s is no longer a standby", a.Standby)
		case m.Role.Epoch != a.Epoch:
			return m, fmt.Errorf("%s follows the primary of epoch %d, not of epoch %d", a.Standby, m.Role.Epoch, a.Epoch)
		default:
			return m, nil
		}
	}
	return kurabe.Assignment{}, fmt.Errorf("this host has no standby %s", a.Standby)
}

// sourceHere says whether the assignment of the server to copy has come.
func (u *worker) sourceHere(a kurabe.SnapshotAssignment) bool {
	if a.Standby != "" {
		_, err := u.remoteStandby(a)
		return err == nil || errors.Is(err, errSourceGone)
	}
	_, known := u.set.writer(a.Of)
	return known
}
