package logstream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kurabe"
)

// A run is the log of one server. When another server of the instance writes, its log may
// have all that was written after a mark of the run: then a run begins there that names the
// mark as its joint, and the two of them are the log without a gap. Positions mean nothing
// across the joint, and bytes may be in both runs; the engine's replay knows how they fit.

// jointTries is how many marks are tried, from the newest on: a second each in a database
// that is busy. What a server had that its successor has not is younger than that, or was
// given up by a person.
const jointTries = 64

// resume goes on in the run where it was.
func (f *follower) resume(ctx context.Context, log Log) error {
	if before := f.run.server; before != "" && before != f.server {
		return &gapError{reason: fmt.Sprintf("server %s writes, and no longer %s", f.server, before), moved: true}
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := log.Resume(call, f.cur)
	if err == nil {
		return nil
	}
	err = f.judge(fmt.Errorf("resume at %s: %w", f.cur, err))
	if gap := (*gapError)(nil); errors.As(err, &gap) {
		gap.moved = true // it may have followed another one meanwhile
	}
	return err
}

// passOver ends the run at a gap, or has another one go on from it. resumed says that it has.
func (f *follower) passOver(ctx context.Context, log Log, gap *gapError) (resumed bool, err error) {
	if !gap.moved || f.run == nil {
		return false, f.finishRun(gap.reason)
	}
	at, joins, before, err := f.findJoint(ctx, log)
	switch {
	case f.noJoint(err):
		return false, f.finishRun(fmt.Sprintf("%s: %v", gap.reason, err))
	case err != nil:
		return false, err
	}
	if err := f.finishRun(joinedWord); err != nil {
		return false, err
	}
	return true, f.beginAt(at, joins, before)
}

// beginJoined begins the run that was to go on from another one when the service or the
// session ended.
func (f *follower) beginJoined(ctx context.Context, log Log) (bool, error) {
	f.s.mu.Lock()
	r := f.inst.counting()
	waits := r != nil && r.ended == joinedWord
	f.s.mu.Unlock()
	if !waits {
		return false, nil
	}
	at, joins, before, err := f.findJoint(ctx, log)
	switch {
	case f.noJoint(err):
		return false, f.endJoined(err.Error())
	case err != nil:
		return false, err
	}
	return true, f.beginAt(at, joins, before)
}

// endJoined notes that no run goes on from the one that waits for that.
func (f *follower) endJoined(reason string) error {
	f.s.mu.Lock()
	r := f.inst.counting()
	waits := reason != joinedWord && r != nil && r.ended == joinedWord
	if waits {
		r.ended = reason
	}
	f.s.mu.Unlock()
	if !waits {
		return nil
	}
	f.s.cfg.Changed(f.inst.id)
	if err := writeEnded(f.s.runDir(f.inst.id, r.folder), reason); err != nil {
		return fmt.Errorf("log spool: %w", err)
	}
	return nil
}

// noJoint says whether an error means that the log cannot go on, now or later.
func (f *follower) noJoint(err error) bool {
	return err != nil && (errors.Is(err, ErrElsewhere) || errors.Is(err, errNoMark) || f.s.cfg.Gone(err))
}

// findJoint asks the server from where it has all that was written after the newest mark
// that its history has.
func (f *follower) findJoint(ctx context.Context, log Log) (at kurabe.LogPosition, joins *joint, before kurabe.LogMark, err error) {
	folder, server, marks := f.newestMarks()
	return firstJoint(ctx, log, folder, server, marks)
}

// firstJoint is the first of some marks, the newest first, that the server's history has.
func firstJoint(ctx context.Context, log Log, folder string, server kurabe.InstanceID, marks []kurabe.LogMark) (at kurabe.LogPosition, joins *joint, before kurabe.LogMark, err error) {
	err = errNoMark
	for _, m := range marks {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		at, err = log.Continue(call, m)
		cancel()
		if !errors.Is(err, ErrElsewhere) {
			m.Position.Server = server
			return at, &joint{folder, m.Position}, marks[0], err
		}
	}
	return at, nil, before, err
}

// counting is the newest run in which something counts, nil without one.
func (inst *instance) counting() *run {
	for _, r := range slices.Backward(inst.runs) {
		if len(r.pieces) > 0 && hasMark(r.last()) {
			return r
		}
	}
	return nil
}

// newestMarks are those of the newest run that counts, the newest first. Of pieces that the
// spool does not have any more it is two for each.
func (f *follower) newestMarks() (folder string, server kurabe.InstanceID, marks []kurabe.LogMark) {
	f.s.mu.Lock()
	r := f.inst.counting()
	var pieces []piece
	if r != nil {
		folder, server = r.folder, r.server
		for _, p := range r.pieces {
			pieces = append(pieces, *p)
		}
	}
	f.s.mu.Unlock()
	for n := len(pieces) - 1; n >= 0 && len(marks) < jointTries; n-- {
		p := &pieces[n]
		if !hasMark(p.Last) {
			continue
		}
		own := []kurabe.LogMark{p.First, p.Last}
		if p.path != "" {
			if got, err := scanSpoolFile(p.path, nil); err == nil && len(got.marks) > 0 {
				own = got.marks
			}
		}
		slices.Reverse(own)
		marks = append(marks, own...)
	}
	return folder, server, slices.Compact(marks[:min(len(marks), jointTries)])
}

// told is what a report says of the runs, with the run that each is of. Callers hold mu.
func (inst *instance) told() (told []kurabe.LogRun, of []*run) {
	for _, r := range inst.runs {
		t, ok := r.report()
		if !ok {
			continue
		}
		if j := r.joins; j != nil {
			here := slices.ContainsFunc(inst.runs, func(o *run) bool { return o.folder == j.Run && len(o.pieces) > 0 })
			if t.Elsewhere = !here && ownerOf(j.Run) != ownerOf(r.folder); here || t.Elsewhere {
				t.Continues, t.After = runBegan(j.Run), j.At
			}
		}
		told, of = append(told, t), append(of, r)
	}
	if n := len(told); n > 0 && told[n-1].Ended == joinedWord {
		told[n-1].Ended = "" // until it is known whether another one goes on
	}
	return told, of
}
