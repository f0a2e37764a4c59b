package logstream

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/logkey"
)

// readers is how many objects are read at a time.
const readers = 8

// survey compares what is known with what the repository holds. The first time it
// also learns what only the repository knows.
func (s *Store) survey(ctx context.Context, repo *blob.Repository) error {
	s.mu.Lock()
	first := !s.listed
	s.mu.Unlock()
	if first {
		if err := s.meet(ctx, repo); err != nil {
			return err
		}
	}
	for _, l := range s.All() {
		inst, ok := s.find(l.Instance)
		if !ok {
			continue
		}
		if err := s.surveyOne(ctx, repo, inst); err != nil {
			return err
		}
	}
	return nil
}

// meet makes the instances known that only the repository knows.
func (s *Store) meet(ctx context.Context, repo *blob.Repository) error {
	for info, err := range repo.List(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("list the log: %w", err)
		}
		if o, ok := parseObject(info.Name); ok && s.mine(o.run) {
			s.get(o.id)
		}
	}
	s.mu.Lock()
	s.listed = true
	s.mu.Unlock()
	return nil
}

// found is what a listing tells of one piece.
type found struct {
	bytes        int64
	piece, marks bool
}

type place struct {
	folder string
	span   span
}

func list(ctx context.Context, repo *blob.Repository, id kurabe.InstanceID) (map[place]found, error) {
	seen := map[place]found{}
	for info, err := range repo.List(ctx, prefix+string(id)+"/") {
		if err != nil {
			return nil, fmt.Errorf("list the log: %w", err)
		}
		o, ok := parseObject(info.Name)
		if !ok {
			continue
		}
		at := place{o.run, o.span}
		f := seen[at]
		f.bytes += info.SizeBytes
		f.piece, f.marks = f.piece || !o.marks, f.marks || o.marks
		seen[at] = f
	}
	return seen, nil
}

// surveyOne holds the change token, so that nothing comes or goes meanwhile but by
// others' hands.
func (s *Store) surveyOne(ctx context.Context, repo *blob.Repository, inst *instance) error {
	if err := inst.change.take(ctx); err != nil {
		return err
	}
	defer inst.change.give()
	return s.surveyHeld(ctx, repo, inst)
}

func (s *Store) surveyHeld(ctx context.Context, repo *blob.Repository, inst *instance) error {
	seen, err := s.listSurely(ctx, repo, inst)
	if err != nil {
		return err
	}
	s.mu.Lock()
	changed, unknown := s.compareLocked(inst, seen)
	first := !inst.surveyed
	s.mu.Unlock()
	learned := map[string][]*piece{}
	if first && len(unknown) > 0 {
		if learned, err = s.learn(ctx, repo, inst, unknown, seen); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// What is seen again later, after all, is learned again.
	inst.surveyed = len(changed) == 0
	for folder, pieces := range learned {
		for _, p := range pieces {
			delete(inst.lost, place{folder, p.span})
		}
		if !slices.Contains(changed, folder) {
			changed = append(changed, folder)
		}
	}
	slices.Sort(changed)
	for _, folder := range changed {
		if err := s.mendLocked(inst, folder, learned[folder]); err != nil {
			return err
		}
	}
	return s.leaveLocked(inst)
}

// listSurely lists what the repository holds of an instance. Where something is missing it
// lists once more, and proves before and after that it is still our repository: what it does
// not list leaves the index, and what is in no index is deleted by Trim.
func (s *Store) listSurely(ctx context.Context, repo *blob.Repository, inst *instance) (seen map[place]found, err error) {
	look := func() error {
		if seen, err = list(ctx, repo, inst.id); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, r := range inst.runs {
			for _, p := range r.pieces {
				if f := seen[place{r.folder, p.span}]; p.pushed && !(f.piece && f.marks) {
					return &MissingError{p.span.String()}
				}
			}
		}
		return nil
	}
	if err = surely(look, func() error { return repo.Verify(ctx) }); isDamage(err) {
		err = nil // compareLocked says which
	}
	return seen, err
}

// compareLocked drops pieces that are gone, and gives the folders in which some are
// and the whole pieces that nobody here knows.
func (s *Store) compareLocked(inst *instance, seen map[place]found) (changed []string, unknown []place) {
	known := map[place]bool{}
	for _, r := range inst.runs {
		for _, p := range r.pieces {
			at := place{r.folder, p.span}
			known[at] = true
			if !p.pushed {
				continue
			}
			f := seen[at]
			if f.piece && f.marks {
				p.StoredBytes = f.bytes
				continue
			}
			inst.loseLocked(p, at)
			s.logger(inst).Warn("a piece of the log is missing in the repository", logkey.Path, objectName(inst.id, r.folder, p.span))
			if !slices.Contains(changed, r.folder) {
				changed = append(changed, r.folder)
			}
		}
	}
	for at, f := range seen {
		if f.piece && f.marks && !known[at] && (len(inst.adopted) > 0 || s.mine(at.folder)) {
			unknown = append(unknown, at)
		}
	}
	return changed, unknown
}

// mendLocked arranges the pieces of a folder anew.
func (s *Store) mendLocked(inst *instance, folder string, more []*piece) error {
	pieces, ended, gone := more, "", ""
	here := false
	for _, r := range inst.runs {
		if r.folder != folder {
			continue
		}
		here, ended = true, r.ended
		for _, p := range r.pieces {
			if p.dropped {
				gone = p.span.String()
			} else {
				pieces = append(pieces, p)
			}
		}
	}
	switch {
	case gone != "" && ended == "":
		ended = fmt.Sprintf("piece %s is %s in the repository", gone, lostWord)
	case !here:
		ended = noWord
	}
	if len(pieces) == 0 {
		for _, r := range inst.runs {
			if r.folder == folder {
				r.pieces, r.ended = nil, ended
			}
		}
	} else {
		s.arrangeLocked(inst, folder, pieces, ended)
	}
	if err := makeRunDir(s.cfg.Spool, s.runDir(inst.id, folder)); err != nil {
		return err
	}
	if ended != "" {
		if err := writeEnded(s.runDir(inst.id, folder), ended); err != nil {
			return err
		}
	}
	return s.saveIndexLocked(inst, folder)
}

// saveIndexLocked writes what is in the repository of one folder. Only whoever holds
// the change token writes indexes.
func (s *Store) saveIndexLocked(inst *instance, folder string) error {
	var pieces []*piece
	for _, r := range inst.runs {
		for _, p := range r.pieces {
			if r.folder == folder && p.pushed {
				pieces = append(pieces, p)
			}
		}
	}
	return writeIndex(s.runDir(inst.id, folder), pieces)
}

// learn reads the marks of pieces. One whose marks are damaged is as good as missing.
func (s *Store) learn(ctx context.Context, repo *blob.Repository, inst *instance, unknown []place, seen map[place]found) (map[string][]*piece, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := map[string][]*piece{}
	var mu sync.Mutex // guards out
	var wg sync.WaitGroup
	work := make(chan place)
	for range readers {
		wg.Go(func() {
			for at := range work {
				var h head
				var marks []kurabe.LogMark
				err := surely(func() (err error) {
					h, marks, err = readMarks(ctx, repo, objectName(inst.id, at.folder, at.span))
					if err == nil && h.span != at.span {
						err = &DamagedError{objectName(inst.id, at.folder, at.span), errMarks}
					}
					return err
				}, func() error { return repo.Verify(ctx) })
				if isDamage(err) {
					s.logger(inst).Warn("marks of the log cannot be read", logkey.Error, err)
					continue
				}
				if err != nil {
					cancel(err)
					continue
				}
				p := &piece{head: h, pushed: true, closed: true, StoredBytes: seen[at].bytes}
				for _, m := range marks {
					p.note(m)
				}
				mu.Lock()
				out[at.folder] = append(out[at.folder], p)
				mu.Unlock()
			}
		})
	}
	for _, at := range unknown {
		select {
		case work <- at:
		case <-ctx.Done():
		}
	}
	close(work)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return out, nil
}

// readMarks reads the marks of a piece.
func readMarks(ctx context.Context, repo *blob.Repository, name string) (head, []kurabe.LogMark, error) {
	r, err := repo.Get(ctx, name+marksSuffix)
	if err != nil {
		return head{}, nil, judgeRead(name, err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, marksBytesMax+1))
	if err != nil {
		return head{}, nil, judgeRead(name, err)
	}
	h, marks, err := parseMarks(text)
	if err != nil {
		return head{}, nil, &DamagedError{strings.TrimPrefix(name, prefix), err}
	}
	return h, marks, nil
}
