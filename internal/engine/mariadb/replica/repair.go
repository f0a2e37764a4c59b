package replica

import (
	"context"
	"fmt"
	"time"

	"kurabe/internal/engine/mariadb/role"
)

const (
	// lostLog is the error of a follower that asks for what its source has not, or no more.
	lostLog = 1236
	// nudgeEvery is how often a thread is started again that has ended for a reason which
	// passes.
	nudgeEvery = 10 * time.Second
)

// heal gives up a follower that can follow no more, and sets one going again that can. One
// that its source refuses, or that cannot apply a transaction, is not what its source is;
// it is cloned.
func (w *watcher) heal(ctx context.Context, s slaveStatus) error {
	if !role.Follows(w.i) {
		return nil
	}
	switch what, why := s.verdict(); what {
	case hopeless:
		return w.roles.giveUp(w.i.Home, why)
	case startAgain:
		return w.nudge(ctx, why)
	}
	return nil
}

// What can be done about a follower's threads.
type verdict int

const (
	well verdict = iota
	startAgain
	hopeless
)

// verdict says what is to be done, and why; of a thread to be started again it names that.
func (s slaveStatus) verdict() (verdict, string) {
	receives := s.receives != "No"
	ended := !receives && s.whyNot.number != 0
	failed := !s.applies && s.whyNotApply.number != 0
	switch {
	case ended && s.whyNot.number == lostLog:
		return hopeless, "its source cannot go on where it is: " + s.whyNot.String()
	case failed && !(&applyError{s.whyNotApply}).passes():
		return hopeless, (&applyError{s.whyNotApply}).Error()
	case failed && !receives:
		// To start both would throw away what was received, and may have been answered for.
		return hopeless, fmt.Sprintf("it neither receives nor applies: %s; %s", s.whyNot, s.whyNotApply)
	case failed:
		return startAgain, "SQL_THREAD"
	case ended && s.applies:
		return startAgain, "IO_THREAD"
	}
	return well, ""
}

func (w *watcher) nudge(ctx context.Context, thread string) error {
	if time.Since(w.nudged) < nudgeEvery {
		return nil
	}
	lock := w.roles.roleLock(w.i.Home)
	if !lock.TryLock() {
		return nil // it may be promoted just now
	}
	defer lock.Unlock()
	w.nudged = time.Now()
	state, err := ReadFollowing(w.i.Home)
	if err != nil || state == nil || state.Holds {
		return err
	}
	// Whether it helped the next look shows.
	_ = w.admin.Exec(ctx, "START SLAVE "+thread)
	return nil
}
