package logstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/faultpoint"
	"kurabe/internal/volume"
)

// Trim removes what nothing needs that restores snapshots of keepSince or later: runs
// that ended before it, and of the others the files that lie before the file which
// was being written then. Claims shrink first; when an error says that the repository
// still has some of it, the next Trim removes that.
func (s *Store) Trim(ctx context.Context, id kurabe.InstanceID, keepSince time.Time) error {
	inst, ok := s.find(id)
	if !ok {
		return nil
	}
	if err := s.trim(ctx, inst, keepSince); err != nil {
		return fmt.Errorf("trim the log of %s: %w", id, err)
	}
	return nil
}

func (s *Store) trim(ctx context.Context, inst *instance, keepSince time.Time) error {
	if err := inst.change.take(ctx); err != nil {
		return err
	}
	defer inst.change.give()
	repo, err := s.cfg.Repository()
	if err != nil {
		return err
	}
	s.mu.Lock()
	surveyed := inst.surveyed
	s.mu.Unlock()
	if !surveyed { // what is not known yet must not be taken for rubbish
		if err := s.surveyHeld(ctx, repo, inst); err != nil {
			return err
		}
		s.mu.Lock()
		surveyed = inst.surveyed
		s.mu.Unlock()
		if !surveyed {
			return errLess
		}
	}
	faultpoint.Reach("before", "trim-log")
	s.mu.Lock()
	err = s.forgetBefore(inst, keepSince)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	faultpoint.Reach("after", "trim-claims")
	if err := s.sweep(ctx, repo, inst); err != nil {
		return err
	}
	faultpoint.Reach("after", "trim-log")
	return s.removeEmpty(inst)
}

// forgetBefore takes what is needless out of the runs. Callers hold mu.
func (s *Store) forgetBefore(inst *instance, keepSince time.Time) error {
	var err error
	for _, r := range inst.runs {
		n := r.needless(keepSince)
		if n == 0 {
			continue
		}
		s.dropLocked(inst, r.pieces[:n])
		r.pieces = slices.Clone(r.pieces[n:])
		if r.ended != "" { // so that a start finds what is left to remove
			err = errors.Join(err, writeEnded(s.runDir(inst.id, r.folder), r.ended))
		}
		err = errors.Join(err, s.saveIndexLocked(inst, r.folder))
	}
	return err
}

// needless counts the pieces at the beginning of a run that no snapshot of keepSince
// or later needs. Such a snapshot's position is not before that of a mark which was
// complete by then, so the files before that mark's can go; at the very beginning of
// a file the position may be called the end of the one before, hence an inner mark.
func (r *run) needless(keepSince time.Time) int {
	if r.ended != "" && r.last().At.Before(keepSince) {
		return len(r.pieces)
	}
	for n := len(r.pieces) - 1; n >= 0; n-- {
		p := r.pieces[n]
		if hasMark(p.Inner) && !p.Inner.Until.After(keepSince) {
			for n > 0 && r.pieces[n-1].File == p.File {
				n--
			}
			return n
		}
	}
	return 0
}

// sweep deletes the objects of folders known here that belong to nothing, oldest
// first: what Trim took out, and what half a push left.
func (s *Store) sweep(ctx context.Context, repo *blob.Repository, inst *instance) error {
	type extent struct {
		known map[span]bool
		end   kurabe.LogPosition // nothing from here on is touched
		all   bool
	}
	folders := map[string]*extent{}
	s.mu.Lock()
	for _, r := range inst.runs {
		e := folders[r.folder]
		if e == nil {
			e = &extent{known: map[span]bool{}, all: true}
			folders[r.folder] = e
		}
		for _, p := range r.pieces {
			e.known[p.span], e.all = true, false
			if p.from().Compare(e.end) > 0 {
				e.end = p.from()
			}
		}
		e.all = e.all && r.ended != ""
	}
	s.mu.Unlock()
	for info, err := range repo.List(ctx, prefix+string(inst.id)+"/") {
		if err != nil {
			return err
		}
		o, ok := parseObject(info.Name)
		if !ok {
			continue
		}
		e := folders[o.run]
		if e == nil || e.known[o.span] || !e.all && o.span.to().Compare(e.end) > 0 {
			continue
		}
		if err := repo.Delete(ctx, info.Name); err != nil {
			return err
		}
		faultpoint.Reach("after", "trim-object")
	}
	return nil
}

// removeEmpty forgets runs of which nothing is left.
func (s *Store) removeEmpty(inst *instance) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := map[string]bool{}
	for _, r := range inst.runs {
		used[r.folder] = used[r.folder] || len(r.pieces) > 0 || r.ended == ""
	}
	inst.runs = slices.DeleteFunc(inst.runs, func(r *run) bool { return len(r.pieces) == 0 && r.ended != "" })
	var err error
	for folder, is := range used {
		if !is {
			err = errors.Join(err, os.RemoveAll(s.runDir(inst.id, folder)))
		}
	}
	return err
}

// Remove removes the whole log of an instance, in repository and spool, but for what other
// hosts keep of it. It may be repeated. Follow must have ended.
func (s *Store) Remove(ctx context.Context, id kurabe.InstanceID) error {
	if err := checkPart(string(id)); err != nil {
		return fmt.Errorf("remove the log: %w", err)
	}
	inst := s.get(id)
	select {
	case inst.follow <- struct{}{}:
	default:
		return fmt.Errorf("remove the log of %s: %w", id, ErrFollowed)
	}
	defer inst.follow.give()
	if err := s.removeHeld(ctx, inst); err != nil {
		return fmt.Errorf("remove the log of %s: %w", id, err)
	}
	return nil
}

func (s *Store) removeHeld(ctx context.Context, inst *instance) error {
	if err := inst.change.take(ctx); err != nil {
		return err
	}
	defer inst.change.give()
	repo, err := s.cfg.Repository()
	if err != nil {
		return err
	}
	s.mu.Lock()
	known := map[string]bool{}
	for _, r := range inst.runs { // nothing is claimed from here on
		s.dropLocked(inst, r.pieces)
		known[r.folder] = true
	}
	inst.runs = nil
	s.mu.Unlock()
	for info, err := range repo.List(ctx, prefix+string(inst.id)+"/") {
		if err != nil {
			return err
		}
		if o, ok := parseObject(info.Name); ok && !known[o.run] && !s.mine(o.run) {
			continue
		}
		if err := repo.Delete(ctx, info.Name); err != nil {
			return err
		}
	}
	if err := volume.RemoveTree(s.cfg.Spool, s.dir(inst.id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.instances, inst.id)
	return nil
}
