package logstream

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"kurabe"
	"kurabe/internal/faultpoint"
)

// clockBackMax is how far the clock may go back without a gap: marks wait meanwhile.
const clockBackMax = time.Second

// framesIdleMax is how many marks a file without bytes gets before it is written anew
// with the first and the last of them: every quarter of an hour.
const framesIdleMax = 900

// tick takes what is new and, when all of it is durable, the mark.
func (f *follower) tick(ctx context.Context, log Log) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	m, err := log.Mark(call)
	cancel()
	if err != nil {
		return f.judge(fmt.Errorf("mark the log: %w", err))
	}
	m.At, m.Until = m.At.Round(0).UTC(), m.Until.Round(0).UTC()
	last := f.last
	if !hasMark(last) {
		last = f.before
	}
	if m.At.Before(last.At.Add(-clockBackMax)) || m.Until.Before(m.At.Add(-clockBackMax)) {
		return &gapError{reason: fmt.Sprintf("the clock went back from %s to %s", last.At.Format(errTime), m.At.Format(errTime))}
	}
	if m.At.Before(last.At) || m.Until.Before(last.Until) || m.Until.Before(m.At) {
		return nil // it catches up
	}
	if err := f.takeTo(ctx, log, m.Position); err != nil {
		return err
	}
	if m.Position.Compare(f.cur) > 0 {
		// The Log has not come so far yet: an older mark may count now.
		if !hasMark(f.waiting) {
			f.waiting = m
		}
		if m = f.waiting; m.Position.Compare(f.cur) > 0 {
			f.trouble(fmt.Errorf("cannot read the server's log from %s to %s yet", f.cur, m.Position))
			return errNotYet
		}
	}
	f.waiting = kurabe.LogMark{}
	m.State = log.State(m.Position)
	if f.justBefore(m.Position) {
		m.Position = f.cur // the end of a file and the beginning of the next are one place
	}
	if err := f.addMark(m); err != nil {
		return f.spoolTrouble(err)
	}
	return f.release(ctx, log, m.Position)
}

// addMark makes the mark and all before it durable.
func (f *follower) addMark(m kurabe.LogMark) error {
	if err := f.ensureOpen(); err != nil {
		return err
	}
	o := f.open
	if o.end == o.Start && o.frames >= framesIdleMax {
		if err := f.rewrite(); err != nil {
			return err
		}
	}
	if err := o.file.write(frameMark, appendMark(nil, m)); err != nil {
		return err
	}
	closing := o.end > o.Start && time.Since(o.born) >= f.s.cfg.PieceAge
	if closing {
		if err := o.writeEnd(f.cur); err != nil {
			return err
		}
	}
	if err := o.file.sync(); err != nil {
		return err
	}
	o.marks = addMark(o.marks, m)
	o.frames++
	first := !hasMark(f.last)
	f.last, f.alone = m, false
	f.account(o, o.file.place)
	f.s.mu.Lock()
	o.note(m)
	f.inst.grew = time.Now()
	f.publishLocked(closing)
	f.s.mu.Unlock()
	if first {
		f.s.cfg.Changed(f.inst.id)
	}
	return nil
}

// takeTo copies until the position is reached.
func (f *follower) takeTo(ctx context.Context, log Log, to kurabe.LogPosition) error {
	if to.Compare(f.cur) < 0 && !f.justBefore(to) {
		return &gapError{reason: fmt.Sprintf("the server's log went back from %s to %s", f.cur, to)}
	}
	whole := false // the piece's bound may lie within a record: then without it
	for f.cur.Compare(to) < 0 {
		if err := f.backpressure(ctx); err != nil {
			return err
		}
		limit := to
		if bound := (kurabe.LogPosition{File: f.cur.File, Offset: f.pieceStart() + f.s.cfg.PieceBytes}); !whole && bound.Compare(limit) < 0 {
			limit = bound
		}
		next, err := f.copy(ctx, log, limit)
		if err != nil {
			return err
		}
		still := next == f.cur
		if still && limit == to {
			return nil
		}
		if still && (f.open == nil || f.open.end == f.open.Start) {
			whole = true
			continue
		}
		whole = false
		closed, err := f.advance(next, still)
		if err != nil {
			return f.spoolTrouble(err)
		}
		if closed {
			if err := f.release(ctx, log, f.cur); err != nil {
				return err
			}
		}
	}
	return nil
}

// justBefore says if a position is the end of the file before the one that begins at
// cur.
func (f *follower) justBefore(to kurabe.LogPosition) bool {
	if f.cur.Offset != 0 {
		return false
	}
	if f.open != nil {
		return f.open.After != nil && f.open.After.to() == to
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	p := f.run.end()
	return p != nil && p.to() == to
}

func (f *follower) pieceStart() int64 {
	if f.open != nil {
		return f.open.Start
	}
	return f.cur.Offset
}

// copy has the Log write into the spool once.
func (f *follower) copy(ctx context.Context, log Log, limit kurabe.LogPosition) (next kurabe.LogPosition, err error) {
	w := &pieceWriter{f: f}
	if f.buf == nil {
		f.buf = bufio.NewWriterSize(w, 128<<10)
	}
	f.buf.Reset(w)
	ctx, cancel := context.WithTimeout(ctx, copyTimeout)
	defer cancel()
	next, err = log.Copy(ctx, f.cur, limit, f.buf)
	if err == nil {
		err = f.buf.Flush()
	}
	switch {
	case w.err != nil:
		return next, f.spoolTrouble(w.err)
	case err != nil:
		return next, f.judge(fmt.Errorf("copy the log from %s: %w", f.cur, err))
	}
	want := f.cur
	want.Offset += w.n
	if next != want && (next.Offset != 0 || next.Compare(want) <= 0 || checkPart(next.File) != nil) {
		return next, fmt.Errorf("copy the log from %s: got %d bytes, expected the log up to %s", f.cur, w.n, next)
	}
	return next, nil
}

// pieceWriter writes data frames, and makes the file when the first one comes.
type pieceWriter struct {
	f   *follower
	n   int64
	err error
}

func (w *pieceWriter) Write(b []byte) (int, error) {
	done := 0
	for len(b) > 0 && w.err == nil {
		part := b[:min(len(b), frameBytesMax)]
		if w.err = w.f.addData(part); w.err == nil {
			done += len(part)
			b = b[len(part):]
		}
	}
	w.n += int64(done)
	return done, w.err
}

func (f *follower) addData(b []byte) error {
	if err := f.s.reserve(f.inst, f.run, int64(len(b)+frameHeadBytes)); err != nil {
		return err
	}
	if err := f.ensureOpen(); err != nil {
		return err
	}
	o := f.open
	if o.born.IsZero() {
		o.born = time.Now()
	}
	err := o.file.write(frameData, b)
	o.end += int64(len(b))
	o.sum = crcUpdate(o.sum, b)
	f.account(o, o.file.place)
	return err
}

// ensureOpen makes the file of the piece that begins at cur.
func (f *follower) ensureOpen() error {
	if f.open != nil {
		return nil
	}
	h := f.header()
	h.From = f.last
	f.s.mu.Lock()
	if before := f.run.end(); before != nil {
		after := before.span
		h.After = &after
	} else {
		h.Joins = f.run.joins
	}
	f.s.mu.Unlock()
	file, err := createSpoolFile(f.spoolPath(), h, nil, f.s.toDisk)
	if err != nil {
		return err
	}
	p := &piece{path: file.path, head: h.head()}
	f.open = &openPiece{piece: p, file: file, end: h.Start}
	f.s.mu.Lock()
	f.run.pieces = append(f.run.pieces, p)
	f.s.mu.Unlock()
	f.account(f.open, file.place)
	return nil
}

// header is that of a piece that begins at cur.
func (f *follower) header() header {
	return header{Version: headerVersion, Instance: f.inst.id, Run: f.run.folder, Server: f.run.server, File: f.cur.File, Start: f.cur.Offset}
}

// account counts the file of a piece against the bounds.
func (f *follower) account(o *openPiece, bytes int64) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if o.dropped {
		return
	}
	f.inst.spoolBytes += bytes - o.spoolBytes
	f.s.spoolBytes += bytes - o.spoolBytes
	o.spoolBytes = bytes
}

// advance moves to where the log goes on, and closes a piece that is complete; still
// says that its bound lies within what comes next.
func (f *follower) advance(next kurabe.LogPosition, still bool) (closed bool, err error) {
	moved := next.File != f.cur.File
	f.cur = next
	o := f.open
	switch {
	case o == nil:
		return false, nil
	case moved && o.end == o.Start: // it holds marks only
		return false, f.rewrite()
	case moved, still, o.end-o.Start >= f.s.cfg.PieceBytes:
		return true, f.closePiece()
	}
	return false, nil
}

// rewrite makes the file of a piece without bytes anew, at cur and with its first and
// last marks only.
func (f *follower) rewrite() error {
	o := f.open
	h := f.header()
	h.After, h.From, h.Joins = o.After, o.From, o.Joins
	file, err := createSpoolFile(o.file.path, h, o.marks, f.s.toDisk)
	if err != nil {
		return err
	}
	_ = o.file.file.Close()
	o.file, o.frames, o.end = file, len(o.marks), h.Start
	f.account(o, file.place)
	f.s.mu.Lock()
	o.span = span{h.File, h.Start, h.Start}
	f.publishLocked(false)
	f.s.mu.Unlock()
	return nil
}

func (o *openPiece) writeEnd(next kurabe.LogPosition) error {
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	return o.file.write(frameEnd, text)
}

// closePiece makes the open piece complete and durable.
func (f *follower) closePiece() error {
	o := f.open
	faultpoint.Reach("before", "close-piece")
	if err := o.writeEnd(f.cur); err != nil {
		return err
	}
	if err := o.file.sync(); err != nil {
		return err
	}
	faultpoint.Reach("after", "close-piece")
	f.account(o, o.file.place)
	f.s.mu.Lock()
	f.publishLocked(true)
	f.s.mu.Unlock()
	return nil
}

// publishLocked lets others see what is durable now of the open piece.
func (f *follower) publishLocked(closed bool) {
	o := f.open
	o.End, o.Sum, o.Next = o.end, o.sum, f.cur
	o.StoredBytes = o.End - o.Start
	if closed {
		o.closed = true
		f.closeFile()
		f.s.poke()
	}
}
