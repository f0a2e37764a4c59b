package logstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/faultpoint"
	"kurabe/internal/logkey"
)

const (
	sessionPauseMin = 250 * time.Millisecond
	sessionPauseMax = 5 * time.Second
	callTimeout     = 30 * time.Second // of one call of a Log but Copy
	copyTimeout     = 5 * time.Minute
	releaseEvery    = 5 * time.Second
)

// Follow keeps the log of a running instance until ctx ends, and then returns nil; an
// error says that it could not begin. open makes a session of server, one of the
// instance's: it is called again, with growing pauses, after each that failed.
func (s *Store) Follow(ctx context.Context, id, server kurabe.InstanceID, open func(ctx context.Context) (Log, error)) error {
	if err := checkPart(string(id)); err != nil {
		return fmt.Errorf("follow the log: %w", err)
	}
	inst := s.get(id)
	if inst.follow.take(ctx) != nil {
		return nil
	}
	defer inst.follow.give()
	f := &follower{s: s, inst: inst, server: server}
	defer f.leave()
	pause := time.Duration(0)
	for ctx.Err() == nil {
		newest := f.last
		err := f.session(ctx, open)
		if ctx.Err() != nil {
			break
		}
		f.trouble(err)
		if f.open != nil && !f.open.born.IsZero() && time.Since(f.open.born) > f.s.cfg.PieceAge {
			f.trouble(errors.Join(err, f.settle(f.s.cfg.PieceAge)))
		}
		if f.last != newest {
			pause = 0 // it was a good one
		}
		pause = min(max(2*pause, sessionPauseMin), sessionPauseMax)
		wait(ctx, pause)
	}
	f.trouble(nil)
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// follower writes the spool of one instance. One goroutine uses it.
type follower struct {
	s      *Store
	inst   *instance
	server kurabe.InstanceID // that is read

	run  *run               // nil: none is live
	open *openPiece         // nil: none
	cur  kurabe.LogPosition // the bytes before it are in the spool
	last kurabe.LogMark     // the newest mark that counts
	// alone: the next run goes on from none.
	alone bool
	// sought is since when another host's run is looked for, zero when it is not.
	sought time.Time
	// before is the newest mark of the run that this one goes on from: its own cannot be older.
	before kurabe.LogMark
	// waiting is the oldest mark whose position the Log has not given yet.
	waiting kurabe.LogMark

	released   kurabe.LogPosition
	releasedAt time.Time
	buf        *bufio.Writer
	told       string // of the session, as logged
}

// openPiece is the piece that grows. The piece in Store is brought up to its state
// when a mark has become durable.
type openPiece struct {
	*piece
	file   *spoolFile
	end    int64
	sum    uint32
	marks  []kurabe.LogMark
	frames int       // marks in the file
	born   time.Time // of its first byte, zero before
}

// session reads from one session until it fails.
func (f *follower) session(ctx context.Context, open func(context.Context) (Log, error)) (err error) {
	log, err := open(ctx)
	if err != nil {
		return fmt.Errorf("open a session for the log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	resumed := false
	for ctx.Err() == nil {
		err := f.step(ctx, log, &resumed)
		var gap *gapError
		switch {
		case errors.As(err, &gap):
			if resumed, err = f.passOver(ctx, log, gap); err != nil {
				return err
			}
			continue
		case errors.Is(err, errNotYet):
		case errors.Is(err, errNoRoom):
			f.trouble(fmt.Errorf("%w: %s", errNoRoom, f.s.whyFull(f.inst)))
		case err != nil:
			return errors.Join(err, f.reopen())
		default:
			f.trouble(nil)
		}
		now := f.s.cfg.Now()
		wait(ctx, now.Truncate(time.Second).Add(time.Second).Sub(now))
	}
	return nil
}

// step is one second: go on where we were or begin anew, and take what is new.
func (f *follower) step(ctx context.Context, log Log, resumed *bool) error {
	faultpoint.Reach("before", "follow-log")
	if f.run == nil {
		if err := f.pickUp(); err != nil {
			return err
		}
	}
	if ended := f.endedMeanwhile(); ended != "" {
		return &gapError{reason: ended}
	}
	if f.run == nil {
		if !f.roomAgain() {
			if err := f.letGo(ctx, log); err != nil {
				return err
			}
			return errNoRoom
		}
		if err := f.begin(ctx, log); err != nil {
			return err
		}
		*resumed = true
	}
	if !*resumed {
		if err := f.resume(ctx, log); err != nil {
			return err
		}
		*resumed = true
	}
	return f.tick(ctx, log)
}

// judge makes a gap of an error that says that the log is gone.
func (f *follower) judge(err error) error {
	if f.s.cfg.Gone(err) {
		return &gapError{reason: fmt.Sprintf("the server no longer has its log from %s on: %v", f.cur, err)}
	}
	return err
}

// pickUp goes on with the live run that the spool holds, if there is one.
func (f *follower) pickUp() error {
	f.s.mu.Lock()
	r := f.inst.live()
	var p *piece
	if r != nil {
		f.last = r.last()
		if p = r.end(); p == nil {
			f.inst.runs = f.inst.runs[:len(f.inst.runs)-1] // begun, and nothing came of it
			r = nil
		}
	}
	f.s.mu.Unlock()
	if r == nil {
		return nil
	}
	f.run = r
	return f.reopenAt(p)
}

// reopen goes back to what counts, after a failure that may have left anything.
func (f *follower) reopen() error {
	if f.run == nil {
		return nil
	}
	f.closeFile()
	f.waiting = kurabe.LogMark{}
	f.s.mu.Lock()
	p := f.run.end()
	f.s.mu.Unlock()
	if p == nil {
		return f.abandon()
	}
	return f.reopenAt(p)
}

func (f *follower) reopenAt(p *piece) error {
	f.s.mu.Lock()
	closed, path := p.closed, p.path
	f.cur = p.Next
	f.s.mu.Unlock()
	if closed {
		return nil
	}
	got, err := scanSpoolFile(path, nil)
	if err != nil {
		return &gapError{reason: fmt.Sprintf("a file of the spool is damaged: %v", err)}
	}
	if len(got.marks) == 0 && got.head.End == got.head.Start {
		// Nothing in it counts yet.
		f.s.mu.Lock()
		f.run.pieces = f.run.pieces[:len(f.run.pieces)-1]
		f.s.dropLocked(f.inst, []*piece{p})
		before := f.run.end()
		f.s.mu.Unlock()
		if before == nil {
			return f.abandon()
		}
		return f.reopenAt(before)
	}
	file, err := openSpoolFile(path, got.place, f.s.toDisk)
	if err != nil {
		return fmt.Errorf("log spool: %w", err)
	}
	o := &openPiece{piece: p, file: file, end: got.head.End, sum: got.head.Sum, marks: got.marks, frames: got.frames}
	if o.end > o.Start {
		o.born = time.Now()
	}
	f.open, f.cur = o, got.head.Next
	f.account(o, got.place)
	f.s.mu.Lock()
	f.publishLocked(false)
	f.s.mu.Unlock()
	return nil
}

// abandon forgets a run in which nothing counts.
func (f *follower) abandon() error {
	r := f.run
	f.closeFile()
	f.run = nil
	f.s.mu.Lock()
	f.s.dropLocked(f.inst, r.pieces)
	f.inst.removeRun(r)
	shared := slices.ContainsFunc(f.inst.runs, func(o *run) bool { return o.folder == r.folder })
	f.s.mu.Unlock()
	if shared {
		return nil
	}
	return os.RemoveAll(f.s.runDir(f.inst.id, r.folder))
}

func (inst *instance) removeRun(r *run) {
	for n := range inst.runs {
		if inst.runs[n] == r {
			inst.runs = append(inst.runs[:n:n], inst.runs[n+1:]...)
			return
		}
	}
}

func (f *follower) endedMeanwhile() string {
	if f.run == nil {
		return ""
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.run.ended
}

// begin starts a run at the beginning of a file, from where another server's goes on if
// that is possible.
func (f *follower) begin(ctx context.Context, log Log) error {
	if joined, err := f.beginJoined(ctx, log); joined || err != nil {
		return err
	}
	if !f.alone {
		if joined, err := f.beginElsewhere(ctx, log); joined || err != nil {
			return err
		}
		if joined, err := f.beginBack(ctx, log); joined || err != nil {
			return err
		}
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	at, err := log.Begin(call)
	if err != nil {
		return fmt.Errorf("begin with the log: %w", err)
	}
	return f.beginAt(at, nil, kurabe.LogMark{})
}

// beginAt makes the run.
func (f *follower) beginAt(at kurabe.LogPosition, joins *joint, before kurabe.LogMark) error {
	if at.Offset != 0 || checkPart(at.File) != nil {
		return fmt.Errorf("begin with the log: %s is not the beginning of a file", at)
	}
	r, err := f.s.addRun(f.inst, f.server, joins)
	if err != nil {
		return fmt.Errorf("log spool: %w", err)
	}
	f.run, f.open, f.cur, f.last, f.before, f.waiting = r, nil, at, kurabe.LogMark{}, before, kurabe.LogMark{}
	return nil
}

// finishRun ends the run at its newest mark, with a reason that is durable.
func (f *follower) finishRun(reason string) error {
	r := f.run
	if r == nil {
		return nil
	}
	f.closeFile()
	f.s.mu.Lock()
	p, counts := r.end(), hasMark(r.last())
	f.s.mu.Unlock()
	if p == nil || r.joins != nil && !counts {
		f.s.logger(f.inst).Warn("the log does not continue on the other server", logkey.Reason, reason)
		f.alone = true // else it would be tried again for ever
		return errors.Join(f.abandon(), f.endJoined(reason))
	}
	if reason == joinedWord {
		f.s.logger(f.inst).Info("the log continues on another server", logkey.Instance, f.server)
	} else {
		f.s.logger(f.inst).Warn("the log has a gap", logkey.Reason, reason)
	}
	if !p.closed {
		got, err := scanSpoolFile(p.path, nil)
		if err == nil && got.head.End > got.head.Start {
			err = f.s.closeFile(p, got.place)
		} else if err == nil {
			err = f.cutOff(p, got.place) // what has no mark counts for nothing
		}
		if err != nil {
			f.s.logger(f.inst).Warn("lost the newest piece of the log", logkey.Error, err)
		}
		f.s.mu.Lock()
		if err != nil {
			r.pieces = r.pieces[:len(r.pieces)-1]
			f.s.dropLocked(f.inst, []*piece{p})
		} else {
			p.head = got.head
		}
		f.s.mu.Unlock()
	}
	err := writeEnded(f.s.runDir(f.inst.id, r.folder), reason)
	f.s.mu.Lock()
	r.ended = reason
	f.s.mu.Unlock()
	f.run = nil
	f.s.poke()
	f.s.cfg.Changed(f.inst.id)
	if err != nil {
		return fmt.Errorf("log spool: %w", err)
	}
	return nil
}

// cutOff removes what lies behind the last good place of a piece that is not complete.
func (f *follower) cutOff(p *piece, place int64) error {
	file, err := openSpoolFile(p.path, place, f.s.toDisk)
	if err != nil {
		return err
	}
	if err := file.file.Close(); err != nil {
		return err
	}
	f.account(&openPiece{piece: p}, place)
	return nil
}

func (f *follower) closeFile() {
	if f.open != nil {
		_ = f.open.file.file.Close() // what counts is synced
		f.open = nil
	}
}

// leave closes the piece that was growing, so that it is pushed although nobody
// follows.
func (f *follower) leave() {
	if err := f.settle(0); err != nil {
		f.s.logger(f.inst).Warn("the newest piece of the log was not closed", logkey.Error, err)
	}
	f.closeFile()
	f.run = nil
}

// settle cuts the run back to what counts and closes the open piece if its first byte
// is so old.
func (f *follower) settle(age time.Duration) error {
	if f.run == nil || f.endedMeanwhile() != "" {
		return nil
	}
	if err := f.reopen(); err != nil || f.open == nil || f.open.end == f.open.Start || time.Since(f.open.born) < age {
		return err
	}
	return f.closePiece()
}

// trouble remembers why nothing grows, and logs it once.
func (f *follower) trouble(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	f.s.mu.Lock()
	f.inst.session = text
	stands := time.Since(f.inst.grew) >= silenceMax
	f.s.mu.Unlock()
	if text == f.told || text != "" && !stands {
		return
	}
	if f.told = text; text != "" {
		f.s.logger(f.inst).Warn("the log does not grow", logkey.Reason, text)
	} else {
		f.s.logger(f.inst).Info("the log grows again")
	}
}

func (f *follower) spoolPath() string {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	n := f.inst.next
	f.inst.next++
	return filepath.Join(f.s.runDir(f.inst.id, f.run.folder), fmt.Sprintf("%010d%s", n, spoolSuffix))
}
