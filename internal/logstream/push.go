package logstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/faultpoint"
	"kurabe/internal/logkey"
)

const (
	pushPauseMin = time.Second
	pushPauseMax = time.Minute
	pushTimeout  = 10 * time.Minute // of one object
)

// pushAll brings all complete pieces of an instance into the repository, in order.
func (s *Store) pushAll(ctx context.Context, inst *instance) error {
	if err := inst.change.take(ctx); err != nil {
		return err
	}
	defer inst.change.give()
	for {
		r, p := s.toPush(inst)
		if p == nil {
			s.pushed(inst, nil)
			return nil
		}
		err := s.push(ctx, inst, r, p)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.pushed(inst, err)
		if err != nil {
			return err
		}
	}
}

// toPush is the oldest complete piece that is not in the repository.
func (s *Store) toPush(inst *instance) (*run, *piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range inst.runs {
		for _, p := range r.pieces {
			if p.closed && !p.pushed {
				return r, p
			}
		}
	}
	return nil, nil
}

// pushed remembers how it went, and logs a change once.
func (s *Store) pushed(inst *instance, err error) {
	text := ""
	if err != nil {
		text = "the repository: " + err.Error()
	}
	s.mu.Lock()
	before := inst.pushing
	inst.pushing = text
	if err == nil {
		inst.pause = 0
	} else {
		inst.pause = min(max(2*inst.pause, pushPauseMin), pushPauseMax)
		inst.retry = time.Now().Add(inst.pause)
	}
	s.mu.Unlock()
	switch {
	case text == before:
	case text != "":
		s.logger(inst).Warn("log not uploaded", logkey.Error, text)
	default:
		s.logger(inst).Info("log uploads work again")
	}
}

// push brings one piece into the repository: its marks first, so that a piece that is
// there is complete. The caller holds the instance's change token.
func (s *Store) push(ctx context.Context, inst *instance, r *run, p *piece) error {
	s.mu.Lock()
	path, folder, want, dropped := p.path, r.folder, p.head, p.dropped
	s.mu.Unlock()
	if dropped {
		return nil
	}
	repo, err := s.cfg.Repository()
	if err != nil {
		return err
	}
	got, err := scanSpoolFile(path, nil)
	if err == nil && (!got.closed || !sameHead(got.head, want)) {
		err = errTorn
	}
	if err != nil {
		return s.lost(inst, r, p, err)
	}
	name := objectName(inst.id, folder, want.span)
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	faultpoint.Reach("before", "push-piece")
	err = repo.Put(ctx, name+marksSuffix, bytes.NewReader(formatMarks(got.head, got.marks)))
	if err == nil {
		faultpoint.Reach("after", "push-marks")
		err = putContent(ctx, repo, name, path)
		if errors.Is(err, errTorn) {
			return s.lost(inst, r, p, errTorn)
		}
	}
	if errors.Is(err, blob.ErrExists) {
		return s.lost(inst, r, p, err)
	}
	if err != nil {
		return err
	}
	return s.settlePushed(inst, r, p)
}

func sameHead(a, b head) bool {
	return a.span == b.span && a.Sum == b.Sum && a.Next == b.Next
}

func putContent(ctx context.Context, repo *blob.Repository, name, path string) error {
	content, err := openContent(path)
	if err != nil {
		return err
	}
	defer content.Close()
	return repo.Put(ctx, name, content)
}

// settlePushed notes that a piece is in the repository; then its spool file goes.
func (s *Store) settlePushed(inst *instance, r *run, p *piece) error {
	s.mu.Lock()
	dropped, folder, copied := p.dropped, r.folder, *p
	s.mu.Unlock()
	if dropped {
		return nil
	}
	faultpoint.Reach("before", "settle-piece")
	if err := appendIndex(s.runDir(inst.id, folder), &copied); err != nil {
		return fmt.Errorf("log spool: %w", err)
	}
	faultpoint.Reach("after", "settle-piece")
	s.mu.Lock()
	defer s.mu.Unlock()
	p.pushed = true
	s.forgetLocked(inst, p)
	return nil
}

// lost ends the run before a piece that cannot be pushed for good: its spool file is
// damaged, or somebody else's object has its name.
func (s *Store) lost(inst *instance, r *run, p *piece, cause error) error {
	s.mu.Lock()
	if p.dropped && errors.Is(cause, fs.ErrNotExist) {
		s.mu.Unlock()
		return nil
	}
	reason := fmt.Sprintf("piece %s was lost: %v", p.span, cause)
	s.cutLocked(inst, r, p, reason)
	folder := r.folder
	s.mu.Unlock()
	s.logger(inst).Warn("the log has a gap", logkey.Reason, reason)
	s.cfg.Changed(inst.id)
	return writeEnded(s.runDir(inst.id, folder), reason)
}

// cutLocked drops a piece and all after it. Whoever follows the run sees its end.
func (s *Store) cutLocked(inst *instance, r *run, from *piece, reason string) {
	for n, p := range r.pieces {
		if p == from {
			s.dropLocked(inst, r.pieces[n:])
			r.pieces = r.pieces[:n:n]
			break
		}
	}
	if r.ended == "" {
		r.ended = reason
	}
}

// Finish is for an instance that is to be stopped, or deleted with its backups kept:
// what its server has by now is taken and everything pushed. log is a session of the
// running server; nil only pushes. Follow must have ended.
func (s *Store) Finish(ctx context.Context, id, server kurabe.InstanceID, log Log) error {
	inst, ok := s.find(id)
	if !ok {
		return nil
	}
	select {
	case inst.follow <- struct{}{}:
	default:
		return fmt.Errorf("finish the log of %s: %w", id, ErrFollowed)
	}
	defer inst.follow.give()
	f := &follower{s: s, inst: inst, server: server}
	var err error
	if log == nil {
		err = f.pickUp()
	} else {
		err = f.finalStep(ctx, log)
	}
	f.leave()
	if err = errors.Join(err, s.pushAll(ctx, inst)); err != nil {
		return fmt.Errorf("finish the log of %s: %w", id, err)
	}
	return nil
}

// End ends the run that goes on, for an instance whose log is not to be kept any more:
// should it be followed again, that is another run. Follow must have ended.
func (s *Store) End(id kurabe.InstanceID, reason string) error {
	inst, ok := s.find(id)
	if !ok {
		return nil
	}
	select {
	case inst.follow <- struct{}{}:
	default:
		return fmt.Errorf("end the log of %s: %w", id, ErrFollowed)
	}
	defer inst.follow.give()
	f := &follower{s: s, inst: inst}
	err := f.pickUp()
	if err == nil {
		err = f.finishRun(reason)
	}
	if err == nil {
		err = f.endJoined(reason)
	}
	if err != nil {
		return fmt.Errorf("end the log of %s: %w", id, err)
	}
	return nil
}

// finalStep takes all that there is, but begins no run.
func (f *follower) finalStep(ctx context.Context, log Log) error {
	if err := f.pickUp(); err != nil || f.run == nil {
		return err
	}
	resumed := false
	err := f.step(ctx, log, &resumed)
	var gap *gapError
	if errors.As(err, &gap) {
		err = errors.Join(err, f.finishRun(gap.reason))
	}
	return err
}
