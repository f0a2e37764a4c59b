package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"kurabe"
	"kurabe/internal/faultpoint"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// FreshDir is where a data folder of a group is made, beside the one that it becomes by a
// rename. What is there without that name is of no use.
func (h Home) FreshDir() string { return h.DataDir() + ".fresh" }

// unnamed are the folders beside the data that are being made, or removed, or were.
func (h Home) unnamed() []string {
	entries, _ := volume.ReadDir(h.Dir) // where none can be read, none can be made either
	var found []string
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), filepath.Base(h.DataDir())+".") {
			found = append(found, filepath.Join(h.Dir, e.Name()))
		}
	}
	return found
}

// clone gives a follower its data folder, as copyTemplate does: what was cut off is never
// mistaken for data. The note is written before: in a copy of another server's data there
// is a master user, and nobody who makes one again.
func (l *Lifecycle) clone(ctx context.Context, i Instance, r Replicator) error {
	if err := follows(i); err != nil {
		return err
	}
	if exists(i.Home.DataDir()) {
		return nil
	}
	err := l.endOtherProcesses(ctx, i)
	if err == nil {
		err = removeUnnamed(i.Home)
	}
	if err != nil {
		return fmt.Errorf("clone %s: %w", i.Role.Source.ID, err)
	}
	err = note(i.Home, func(a *Applied) {
		a.Master, a.PasswordSeq, a.Rejoining, a.Rebuild = true, 0, false, false
		a.Ran("", "")
	})
	if err != nil {
		return err
	}
	if err := r.Clone(ctx, i, i.authority()); err != nil {
		// The space of half a copy is not kept until the source can be reached again.
		return errors.Join(fmt.Errorf("clone %s: %w", i.Role.Source.ID, err), removeUnnamed(i.Home))
	}
	if !exists(i.Home.DataDir()) || !r.IsFollower(i.Home) {
		return fmt.Errorf("clone %s: what it made is not the data of a follower", i.Role.Source.ID)
	}
	if err := volume.SyncDir(i.Home.Dir); err != nil {
		return err
	}
	// Not before: until then nobody may count on what this server has.
	return note(i.Home, func(a *Applied) {
		a.Rebuilt, a.Compared = max(a.Rebuilt, i.Role.RebuildSeq), i.Role.Epoch
	})
}

// rejoin makes the data of one that may have written alone that of a follower. What is
// cut off in between can be started by nobody; that is noted before it begins.
func (l *Lifecycle) rejoin(ctx context.Context, i Instance, r Replicator) error {
	if err := follows(i); err != nil {
		return err
	}
	if err := l.endOtherProcesses(ctx, i); err != nil {
		return fmt.Errorf("rejoin %s: %w", i.Role.Source.ID, err)
	}
	if err := l.countDiscarded(ctx, i, r); err != nil {
		return fmt.Errorf("rejoin %s: %w", i.Role.Source.ID, err)
	}
	faultpoint.Reach("after", "note-rejoin")
	err := r.Rejoin(ctx, i, i.authority())
	if errors.Is(err, ErrRebuild) {
		return note(i.Home, func(a *Applied) { a.Rebuild = true })
	}
	if err != nil {
		return fmt.Errorf("rejoin %s: %w", i.Role.Source.ID, err)
	}
	if !r.IsFollower(i.Home) {
		return fmt.Errorf("rejoin %s: what it made is not the data of a follower", i.Role.Source.ID)
	}
	return note(i.Home, func(a *Applied) { a.Master, a.PasswordSeq, a.Rejoining = true, 0, false })
}

// countDiscarded counts the transactions that are about to be discarded, and notes the count with
// the beginning: a later try finds the data half discarded, and counts nothing.
func (l *Lifecycle) countDiscarded(ctx context.Context, i Instance, r Replicator) error {
	applied, err := readApplied(i.Home)
	if err != nil || applied.Rejoining {
		return err
	}
	alone, err := r.CommittedAlone(ctx, i, i.authority())
	if errors.Is(err, ErrUncounted) {
		alone, err = kurabe.DiscardedUnknown, nil
	}
	if err != nil {
		return err
	}
	return note(i.Home, func(a *Applied) {
		a.Rejoining = true
		if alone != 0 {
			a.GivenUp = kurabe.DiscardedCommits{Seq: a.GivenUp.Seq + 1, Transactions: alone}
		}
	})
}

// discardData removes data that cannot follow. Everything that was acknowledged is with the
// source: either it has said that this cannot become a copy of it, or the planner, which
// has seen it write without this server. That may be long ago when a service starts that
// was down: while the source does not answer, what is here is kept.
func (l *Lifecycle) discardData(ctx context.Context, i Instance, r Replicator) error {
	applied, err := readApplied(i.Home)
	if err != nil {
		return err
	}
	if !applied.discards(*i.Role) {
		return errors.New("discard the data: nobody has found that it must be cloned")
	}
	if err := follows(i); err != nil {
		return err
	}
	if err := l.endOtherProcesses(ctx, i); err != nil {
		return fmt.Errorf("discard the data: %w", err)
	}
	if p, ok := r.(SourceProber); ok {
		if err := p.ProbeSource(ctx, i, i.authority()); err != nil {
			return fmt.Errorf("discard the data: %w", err)
		}
	}
	// An order may be followed by another one; half a folder stays of no use.
	if err := note(i.Home, func(a *Applied) { a.Rebuild = true }); err != nil {
		return err
	}
	return volume.RemoveTree(i.Home.Dir, i.Home.DataDir())
}

// follows refuses what would make one a follower that is to be none.
func follows(i Instance) error {
	if i.Role.Duty == kurabe.DutyFollow && i.Role.Source != nil {
		return nil
	}
	if !exists(i.Home.DataDir()) {
		return fmt.Errorf("the data folder of %s is gone, and it has nobody to copy it from; restore a snapshot", i.Instance)
	}
	return fmt.Errorf("%s has nobody to follow", i.Instance)
}

// endOtherProcesses ends every process that works in the data folder, or in a folder that becomes
// one: a server, or a tool that a dead service has left.
func (l *Lifecycle) endOtherProcesses(ctx context.Context, i Instance) error {
	_, alive, err := i.Home.Daemon().Find()
	switch {
	case err != nil:
		return err
	case alive:
		return errors.New("its server runs")
	case l.holds(i.Instance):
		return errCopying
	}
	return l.endSurvivors(ctx, i)
}

// endSurvivors ends what a dead server has left and, of a server of a group, whatever makes
// its data.
func (l *Lifecycle) endSurvivors(ctx context.Context, i Instance) error {
	if i.Role == nil {
		return proc.KillSurvivors(ctx, i.Home.DataDir())
	}
	for _, dir := range append(i.Home.unnamed(), i.Home.DataDir()) {
		if err := proc.KillSurvivors(ctx, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	held, err := proc.LockHeld(i.Home.LockFile())
	if err == nil && held && !l.holds(i.Instance) {
		return &proc.LockHeldError{File: i.Home.LockFile()}
	}
	return err
}

func removeUnnamed(h Home) error {
	for _, dir := range h.unnamed() {
		if err := volume.RemoveTree(h.Dir, dir); err != nil {
			return err
		}
	}
	return nil
}
