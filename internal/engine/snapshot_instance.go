package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kurabe"
	"kurabe/internal/proc"
	"kurabe/internal/snapshot"
)

// Take makes a snapshot of an instance: of a running server while it runs, of a
// stopped one while it cannot start. One that is complete already is not taken
// again. Any error leaves nothing that counts, and the call may be repeated.
func (s *Snapshots) Take(ctx context.Context, a kurabe.SnapshotAssignment, of kurabe.Assignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	return s.takeOnce(ctx, a, of, of, progress)
}

// TakeStandby is Take of a running standby of the server that writes; both are on this host.
// What it has is what Take would have. An error says nothing against Take.
func (s *Snapshots) TakeStandby(ctx context.Context, a kurabe.SnapshotAssignment, of, standby kurabe.Assignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	return s.takeOnce(ctx, a, of, standby, progress)
}

func (s *Snapshots) takeOnce(ctx context.Context, a kurabe.SnapshotAssignment, of, from kurabe.Assignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	if r, state, err := s.store.Find(a.Snapshot); err != nil || state == snapshot.Complete {
		return r.Facts, err
	}
	facts, err := s.take(ctx, a, of, from, progress)
	if err != nil {
		return kurabe.SnapshotFacts{}, fmt.Errorf("take snapshot %s of %s: %w", a.Name, of.Name, errors.Join(err, s.discard(a.Snapshot)))
	}
	return facts, nil
}

// take copies the server from, which is the writer of or a standby of it.
func (s *Snapshots) take(ctx context.Context, a kurabe.SnapshotAssignment, of, from kurabe.Assignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	l, i, err := s.source(a, of, from)
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
	var copied Copied
	if from.Instance == of.Instance {
		copied, err = l.copyData(ctx, i, r)
	} else {
		copied, err = l.copyFollower(ctx, l.instance(of), i, r)
	}
	if err != nil {
		return kurabe.SnapshotFacts{}, err
	}
	facts := kurabe.SnapshotFacts{
		Method: copied.Method, EngineVersion: i.Version.Version, TakenAt: copied.TakenAt.UTC(),
		UsableAt: time.Now().UTC().Round(0), Position: copied.Position, TakenFrom: from.Instance,
	}
	if facts.Position.File != "" {
		facts.Position.Server = of.Instance
	}
	if of.Goal == kurabe.GoalRunning {
		facts.MarkedAt = began // a stopped server cannot write the marker
	}
	return s.store.Finish(snapshot.Record{
		Snapshot: a.Snapshot, Name: a.Name, Engine: of.Engine, Family: i.Version.Family, Source: a.Source, Facts: facts,
		Kind: a.Kind, Tags: a.Tags,
	}, copied.Files)
}

// source is the server to copy, if it can be.
func (s *Snapshots) source(a kurabe.SnapshotAssignment, of, from kurabe.Assignment) (*Lifecycle, Instance, error) {
	l, ok := s.engines[of.Engine]
	switch {
	case !ok:
		return nil, Instance{}, fmt.Errorf("engine %s is not offered by this host", of.Engine)
	case a.Of.Owner() != of.Instance.Owner() || from.Instance.Owner() != of.Instance.Owner():
		return nil, Instance{}, fmt.Errorf("it is to be of %s, and %s was given", a.Of, from.Instance)
	case !of.Writes():
		return nil, Instance{}, fmt.Errorf("%s is not the server that writes", of.Instance)
	case from.Instance != of.Instance && !from.StandsBy(of):
		return nil, Instance{}, fmt.Errorf("%s is no standby that has every commit of %s", from.Instance, of.Instance)
	}
	i := l.instance(from)
	if i.Version.Version == "" {
		return nil, i, fmt.Errorf("%s %s is not installed on this host, nor a later one of its major", of.Engine, of.Version)
	}
	return l, i, nil
}

// copyFollower copies the data folder of a running standby.
func (l *Lifecycle) copyFollower(ctx context.Context, writer, i Instance, r CopyRequest) (Copied, error) {
	d, ok := l.c.Driver.(FollowerCopier)
	if !ok {
		return Copied{}, fmt.Errorf("a standby of %s cannot be copied", l.c.Driver.Name())
	}
	_, alive, err := proc.Find(i.Home.RecordFile())
	if err == nil && !alive {
		err = ErrNotReady
	}
	if err != nil {
		return Copied{}, fmt.Errorf("find the standby in %s: %w", i.Home.Dir, err)
	}
	return d.CopyFollower(ctx, writer, i, r)
}
