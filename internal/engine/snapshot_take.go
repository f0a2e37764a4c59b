package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"kurabe"
	"kurabe/internal/proc"
)

// errCopying is why a stopped instance cannot start just now.
var errCopying = errors.New("a snapshot of the stopped instance is being taken; it starts when that is done")

// copyData copies the data folder of an instance in the way that its goal allows.
func (l *Lifecycle) copyData(ctx context.Context, i Instance, r CopyRequest) (Copied, error) {
	switch i.Goal {
	case kurabe.GoalRunning:
		_, alive, err := i.Home.Daemon().Find()
		if err != nil {
			return Copied{}, fmt.Errorf("find the server of %s: %w", i.Home.Dir, err)
		}
		// A server that crashed is about to be started again: holding its lock for a
		// copy would keep its clients waiting.
		if !alive {
			return Copied{}, fmt.Errorf("the server is not running: %w", ErrNotReady)
		}
		return l.c.Driver.CopyRunning(ctx, i, r)
	case kurabe.GoalStopped:
		release, err := l.hold(i)
		if err != nil {
			return Copied{}, fmt.Errorf("the server is not stopped yet: %w", err)
		}
		defer release()
		if !exists(i.Home.DataDir()) {
			return Copied{}, fmt.Errorf("%s: %w", i.Home.DataDir(), fs.ErrNotExist)
		}
		return l.c.Driver.CopyStopped(ctx, i, r)
	}
	return Copied{}, fmt.Errorf("an instance that is to be %s has no snapshot taken", i.Goal)
}

// hold keeps the server of a stopped instance from starting.
func (l *Lifecycle) hold(i Instance) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[i.Instance] {
		return nil, errCopying
	}
	unlock, err := proc.Hold(i.Home.LockFile())
	if err != nil {
		return nil, err
	}
	l.held[i.Instance] = true
	return func() {
		// The lock first: whoever sees the note gone may look at the lock.
		unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, i.Instance)
	}, nil
}

// holds says whether the lock of an instance is ours, so that nothing of its server
// lives behind it.
func (l *Lifecycle) holds(id kurabe.InstanceID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[id]
}
