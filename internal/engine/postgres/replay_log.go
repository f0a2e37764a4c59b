package postgres

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"kurabe/internal/engine"
)

// span is the part of a log that a request gives: from the snapshot to where it ends.
type span struct {
	timeline    uint32
	from, after lsn
	before      lsn // 0 when there is no such mark
}

// spanOf refuses what cannot be: another order, another timeline.
func spanOf(r engine.ReplayRequest, c control) (span, error) {
	var s span
	var err error
	if s.timeline, s.from, err = c.segments.place(r.From); err != nil {
		return s, fmt.Errorf("the snapshot: %w", err)
	}
	other, after, err := c.segments.place(r.After.Position)
	switch {
	case err != nil:
		return s, fmt.Errorf("the log's end: %w", err)
	case other != s.timeline || s.timeline != c.timeline:
		return s, fmt.Errorf("the snapshot is of timeline %d, and the log of %d to %d", c.timeline, s.timeline, other)
	case after < s.from:
		return s, fmt.Errorf("the log ends at %s, before the snapshot at %s", after, s.from)
	case r.After.At.Before(r.At):
		return s, fmt.Errorf("the log is proven up to %s only, and %s is wanted", r.After.At, r.At)
	}
	s.after = after
	if r.Before.Position.File == "" {
		return s, nil
	}
	other, s.before, err = c.segments.place(r.Before.Position)
	if err == nil && (other != s.timeline || s.before > s.after) {
		err = fmt.Errorf("%s does not precede %s", r.Before.Position, r.After.Position)
	}
	return s, err
}

// takeLog moves the segments of a request into the data folder. One that is in both
// is the snapshot's copy of a segment that was still being written. What lies behind
// the last one is of other times: a stopped server's segments for later use.
func (p *private) takeLog(dir string, s span) error {
	to := filepath.Join(p.data, walDir)
	if info, err := os.Lstat(to); err != nil || !info.IsDir() {
		return errors.Join(err, fmt.Errorf("%s is no folder", walDir))
	}
	segments, last := p.control.segments, ""
	for at := segments.begin(s.from); at < s.after; at += lsn(segments.bytes) {
		last = segments.position(s.timeline, at).File
		if err := p.takeSegment(filepath.Join(dir, last), filepath.Join(to, last), min(int64(s.after-at), segments.bytes)); err != nil {
			return err
		}
	}
	end := segments.position(s.timeline, s.after)
	entries, err := os.ReadDir(to)
	if err != nil {
		return err
	}
	for _, e := range entries {
		// Compared without the timeline.
		name := e.Name()
		beyond := walSegment.MatchString(name) && (name[8:] > end.File[8:] || name[8:] == end.File[8:] && end.Offset == 0)
		if beyond || strings.HasSuffix(name, ".partial") {
			if err := os.Remove(filepath.Join(to, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeSegment moves one segment, of which the first bytes count. The rest becomes
// empty, as in a segment that is being written.
func (p *private) takeSegment(from, to string, bytes int64) error {
	info, err := os.Lstat(from)
	if err != nil {
		return &recoveryError{fmt.Sprintf("segment %s is missing", filepath.Base(from))}
	}
	if !info.Mode().IsRegular() || info.Size() < bytes || info.Size() > p.control.segments.bytes {
		return &recoveryError{fmt.Sprintf("segment %s has %d bytes of %d", filepath.Base(from), info.Size(), bytes)}
	}
	if err := move(from, to); err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	err = errors.Join(file.Truncate(bytes), file.Truncate(p.control.segments.bytes), file.Chmod(0o600))
	if u := p.i.User; u != nil {
		err = errors.Join(err, file.Chown(u.UID, u.GID))
	}
	return errors.Join(err, file.Close())
}

// move renames a file, or copies it from another file system.
func move(from, to string) error {
	err := os.Rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Remove(from))
}
