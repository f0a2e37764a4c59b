package logstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/logkey"
)

// checkBytesPerSecond bounds how fast a check reads the repository.
const checkBytesPerSecond = 16 << 20

// Check reads all of the log of an instance that is in the repository and compares its
// checksums. A piece that is missing or damaged in a repository that is proven to be ours
// belongs to no run from then on, so that nothing claims to reach over it. Pieces that a
// survey missed are told of too.
func (s *Store) Check(ctx context.Context, id kurabe.InstanceID) (kurabe.TaskResult, error) {
	var result kurabe.TaskResult
	repo, err := s.cfg.Repository()
	if err != nil {
		return result, fmt.Errorf("check the log of %s: %w", id, err)
	}
	inst, ok := s.find(id)
	if !ok {
		return result, nil
	}
	var parts []*plan
	s.mu.Lock()
	for _, r := range inst.runs {
		p := &plan{id: id, folder: r.folder, repo: repo}
		for _, x := range r.pieces {
			if x.pushed {
				p.pieces = append(p.pieces, *x)
			}
		}
		parts = append(parts, p)
	}
	s.mu.Unlock()
	pieces, bytes := 0, int64(0)
	for _, p := range parts {
		for _, x := range p.pieces {
			x.path = "" // the repository is to be read
			read := func() error { return p.copyPiece(ctx, x, x.End-x.Start, io.Discard) }
			err := surely(read, func() error { return proveOurs(ctx, repo, parts) })
			nothing := errors.Is(err, errNothing)
			if nothing {
				err = surely(read, func() error { return repo.Verify(ctx) })
			}
			if isDamage(err) {
				err = s.lose(ctx, inst, p, x, err, nothing)
			}
			if err != nil {
				return result, fmt.Errorf("check the log of %s: %w", id, err)
			}
			pieces, bytes = pieces+1, bytes+x.End-x.Start
			wait(ctx, time.Duration(x.End-x.Start)*time.Second/checkBytesPerSecond)
		}
	}
	result.Problems = s.tellLost(inst)
	result.Summary = fmt.Sprintf("%d pieces with %d bytes were read", pieces, bytes)
	return result, ctx.Err()
}

// surely repeats a read that found damage, which may have happened on the way, and proves
// before and after that the repository which answers is the one that the log was put into:
// an emptied folder, another bucket or a broken service says "no such object" of everything.
// The error is damage only when all of that has been.
func surely(read, prove func() error) error {
	err := read()
	if !isDamage(err) {
		return err
	}
	if err := prove(); err != nil {
		return err
	}
	if err = read(); !isDamage(err) {
		return err
	}
	if err := prove(); err != nil {
		return err
	}
	return err
}

// proveOurs says nil when the repository is the one that was opened, and some object of the
// log can be read in it.
func proveOurs(ctx context.Context, repo *blob.Repository, parts []*plan) error {
	if err := repo.Verify(ctx); err != nil {
		return err
	}
	for _, p := range parts {
		for _, x := range p.pieces {
			if _, _, err := readMarks(ctx, repo, p.name(x)); !isDamage(err) {
				return err
			}
		}
	}
	return errNothing
}

// loseLocked marks a piece that is missing or damaged, for mendLocked and the next check.
func (inst *instance) loseLocked(p *piece, at place) {
	p.dropped = true
	if inst.lost == nil {
		inst.lost = map[place]time.Time{}
	}
	inst.lost[at] = p.From.At
	if !hasMark(p.From) { // the first of all
		inst.lost[at] = p.First.At
	}
}

// tellLost gives what was lost since the last check, in the order of time.
func (s *Store) tellLost(inst *instance) (all []kurabe.TaskProblem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, from := range inst.lost {
		all = append(all, kurabe.TaskProblem{From: from, Text: fmt.Sprintf("piece %s is %s", at.span, lostWord)})
	}
	inst.lost = nil
	slices.SortFunc(all, func(a, b kurabe.TaskProblem) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Text, b.Text))
	})
	return all
}

// lose takes a damaged piece out of its run, unless Trim was faster. Its marks go from the
// repository, without which nobody learns of it again; where nothing of the log can be read
// they stay, and the next survey looks whether they can be read again.
func (s *Store) lose(ctx context.Context, inst *instance, p *plan, x piece, why error, nothing bool) error {
	if err := inst.change.take(ctx); err != nil {
		return err
	}
	defer inst.change.give()
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := false
	for _, r := range inst.runs {
		for _, o := range r.pieces {
			if r.folder == p.folder && o.span == x.span && o.pushed {
				inst.loseLocked(o, place{r.folder, o.span})
				lost = true
			}
		}
	}
	if !lost {
		return nil
	}
	s.logger(inst).Error("a piece of the stored log is damaged", logkey.Error, why)
	if err := s.mendLocked(inst, p.folder, nil); err != nil {
		return err
	}
	if nothing {
		inst.surveyed = false
		return nil
	}
	return p.repo.Delete(ctx, p.name(x)+marksSuffix)
}
