package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"kurabe"
	"kurabe/internal/proc"
	"kurabe/internal/snapshot"
)

// Take makes a snapshot of an instance: of a running server while it runs, of a
// stopped one while it cannot start. One that is complete already is not taken
// again. Any error leaves nothing that counts, and the call may be repeated.
func (s *Snapshots) Take(ctx context.Context, a kurabe.SnapshotAssignment, of kurabe.Assignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	return s.takeOnce(ctx, a, origin{of: of, from: of}, progress)
}

// TakeStandby is Take of a running standby of the server that writes; both are on this host.
// What it has is what Take would have. An error says nothing against Take.
func (s *Snapshots) TakeStandby(ctx context.Context, a kurabe.SnapshotAssignment, of, standby kurabe.Assignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	return s.takeOnce(ctx, a, origin{of: of, from: standby}, progress)
}

// TakeFar is TakeStandby where the server that writes is on another host: the standby's source,
// which is asked over the network how far it is.
func (s *Snapshots) TakeFar(ctx context.Context, a kurabe.SnapshotAssignment, standby kurabe.Assignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	if standby.Goal != kurabe.GoalRunning || standby.Role == nil || standby.Role.Duty != kurabe.DutyFollow || standby.Role.Source == nil {
		return kurabe.SnapshotFacts{}, fmt.Errorf("take snapshot %s of %s: %s is no standby", a.Name, standby.Name, standby.Instance)
	}
	primary := standby
	primary.Instance, primary.Role = standby.Role.Source.ID, nil
	return s.takeOnce(ctx, a, origin{of: primary, from: standby, far: true}, progress)
}

// origin is what a snapshot is taken of: the primary, and from a standby of it or itself. A far
// primary is on another host, and only its id is known.
type origin struct {
	of, from kurabe.Assignment
	far      bool
}

func (s *Snapshots) takeOnce(ctx context.Context, a kurabe.SnapshotAssignment, o origin, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	if r, state, err := s.store.Find(a.Snapshot); err != nil || state == snapshot.Complete {
		return r.Facts, err
	}
	facts, err := s.take(ctx, a, o, progress)
	if err != nil {
		return kurabe.SnapshotFacts{}, fmt.Errorf("take snapshot %s of %s: %w", a.Name, o.of.Name, errors.Join(err, s.discard(a.Snapshot)))
	}
	return facts, nil
}

// take copies what o says.
func (s *Snapshots) take(ctx context.Context, a kurabe.SnapshotAssignment, o origin, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	l, i, err := s.source(a, o)
	if err != nil {
		return kurabe.SnapshotFacts{}, err
	}
	if err := s.store.Begin(a.Snapshot); err != nil {
		return kurabe.SnapshotFacts{}, err
	}
	if err := roomToCopy(i.Home.DataDir(), s.store.Data(a.Snapshot)); err != nil {
		return kurabe.SnapshotFacts{}, err
	}
	began := time.Now().UTC().Round(0)
	r := CopyRequest{Dir: s.store.Data(a.Snapshot), BytesPerSecondMax: s.BytesPerSecondMax, Progress: progress}
	copied, err := l.copyOf(ctx, o, i, r)
	if err != nil {
		return kurabe.SnapshotFacts{}, err
	}
	facts := kurabe.SnapshotFacts{
		Method: copied.Method, EngineVersion: i.Version.Version, TakenAt: copied.TakenAt.UTC(),
		UsableAt: time.Now().UTC().Round(0), Position: copied.Position, TakenFrom: o.from.Instance,
	}
	if facts.Position.File != "" {
		facts.Position.Server = o.of.Instance
	}
	switch {
	case o.far:
		facts.MarkedAt = copied.MarkedAt // by the clock that the marker is of
	case o.of.Goal == kurabe.GoalRunning:
		facts.MarkedAt = began // a stopped server cannot write the marker
	}
	return s.store.Finish(snapshot.Record{
		Snapshot: a.Snapshot, Name: a.Name, Engine: o.of.Engine, Family: i.Version.Family, Source: a.Source, Facts: facts,
		Kind: a.Kind, Tags: a.Tags,
	}, copied.Files)
}

// source is the server to copy, if it can be.
func (s *Snapshots) source(a kurabe.SnapshotAssignment, o origin) (*Lifecycle, Instance, error) {
	of, from := o.of, o.from
	l, ok := s.engines[of.Engine]
	switch {
	case !ok:
		return nil, Instance{}, fmt.Errorf("engine %s is not offered by this host", of.Engine)
	case a.Of.Owner() != of.Instance.Owner() || from.Instance.Owner() != of.Instance.Owner():
		return nil, Instance{}, fmt.Errorf("it is to be of %s, and %s was given", a.Of, from.Instance)
	case !of.Writes():
		return nil, Instance{}, fmt.Errorf("%s is not the server that writes", of.Instance)
	case !o.far && from.Instance != of.Instance && !from.StandsBy(of):
		return nil, Instance{}, fmt.Errorf("%s is no standby that has every commit of %s", from.Instance, of.Instance)
	}
	i := l.instance(from)
	if i.Version.Version == "" {
		return nil, i, fmt.Errorf("%s %s is not installed on this host, nor a later one of its major", of.Engine, of.Version)
	}
	return l, i, nil
}

// copyOf copies the data folder of the server i, as its origin says.
func (l *Lifecycle) copyOf(ctx context.Context, o origin, i Instance, r CopyRequest) (Copied, error) {
	switch {
	case o.far:
		return l.copyFollower(ctx, nil, i, r)
	case o.from.Instance != o.of.Instance:
		primary := l.instance(o.of)
		return l.copyFollower(ctx, &primary, i, r)
	}
	return l.copyData(ctx, i, r)
}

// copyFollower copies the data folder of a running standby, whose primary is nil where that is on
// another host.
func (l *Lifecycle) copyFollower(ctx context.Context, primary *Instance, i Instance, r CopyRequest) (Copied, error) {
	_, alive, err := i.Home.Daemon().Find()
	if err == nil && !alive {
		err = ErrNotReady
	}
	if err != nil {
		return Copied{}, fmt.Errorf("find the standby in %s: %w", i.Home.Dir, err)
	}
	return l.c.Driver.CopyFollower(ctx, primary, i, r)
}

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
