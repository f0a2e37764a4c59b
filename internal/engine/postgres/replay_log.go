package postgres

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/volume"
)

// span is the part of a log that a request gives: from the snapshot to where it ends.
type span struct {
	past        wal.Lineage // from the snapshot's timeline to that of the end
	from, after wal.LSN
	before      wal.LSN // 0 when there is no such mark
}

// spanOf refuses what cannot be: another order, a timeline that no server was promoted to.
func spanOf(r engine.ReplayRequest, c control) (span, error) {
	var s span
	timeline, from, err := c.segments.Place(r.From)
	if err != nil {
		return s, fmt.Errorf("the snapshot: %w", err)
	}
	s.from = from
	other, after, err := c.segments.Place(r.After.Position)
	switch {
	case err != nil:
		return s, fmt.Errorf("the log's end: %w", err)
	case timeline != c.timeline || other != timeline && len(r.Joined) == 0:
		return s, fmt.Errorf("the snapshot is of timeline %d, and the log of %d to %d", c.timeline, timeline, other)
	case after < s.from:
		return s, fmt.Errorf("the log ends at %s, before the snapshot at %s", after, s.from)
	case r.After.At.Before(r.At):
		return s, fmt.Errorf("the log is proven up to %s only, and %s is wanted", r.After.At, r.At)
	}
	s.after = after
	if s.past, err = findLineage(r.Dir, c.segments, timeline, other, s.after); err != nil {
		return s, err
	}
	if first := s.past[0]; s.from > first.End {
		return s, fmt.Errorf("the snapshot at %s is later than the end of its timeline at %s", r.From, first.End)
	}
	if r.Before.Position.File == "" {
		return s, nil
	}
	return s, s.markBefore(r, c)
}

// markBefore: what the former writer had behind the end of its timeline is not in this log.
func (s *span) markBefore(r engine.ReplayRequest, c control) error {
	timeline, before, err := c.segments.Place(r.Before.Position)
	if err != nil {
		return err
	}
	n := s.past.Find(timeline)
	if n >= 0 {
		s.before = min(before, s.past[n].End)
	}
	if n < 0 || s.before > s.after {
		return fmt.Errorf("%s does not precede %s", r.Before.Position, r.After.Position)
	}
	return nil
}

// takeLog moves the segments of a request into the data folder. One that is in both
// is the snapshot's copy of a segment that was still being written. What lies behind
// the last one is of other times: a stopped server's segments for later use.
func (p *private) takeLog(dir string, s span) error {
	to := filepath.Join(p.data, wal.Dir)
	if info, err := volume.Lstat(to); err != nil || !info.IsDir() {
		return errors.Join(err, fmt.Errorf("%s is no folder", wal.Dir))
	}
	segments, last := p.control.segments, ""
	for at := segments.Begin(s.from); at < s.after; at += wal.LSN(segments.Bytes) {
		last = segments.Position(s.past.At(segments, at), at).File
		if err := p.takeSegment(filepath.Join(dir, last), filepath.Join(to, last), min(int64(s.after-at), segments.Bytes)); err != nil {
			return err
		}
	}
	end := segments.Position(s.past.At(segments, s.after), s.after)
	entries, err := volume.ReadDir(to)
	if err != nil {
		return err
	}
	for _, e := range entries {
		// Compared without the timeline.
		name := e.Name()
		beyond := wal.SegmentName.MatchString(name) && (name[8:] > end.File[8:] || name[8:] == end.File[8:] && end.Offset == 0)
		if beyond || strings.HasSuffix(name, ".partial") {
			if err := volume.Remove(filepath.Join(to, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeSegment moves one segment, of which the first bytes count. The rest becomes
// empty, as in a segment that is being written.
func (p *private) takeSegment(from, to string, bytes int64) error {
	info, err := volume.Lstat(from)
	if err != nil {
		return &recoveryError{fmt.Sprintf("segment %s is missing", filepath.Base(from))}
	}
	if !info.Mode().IsRegular() || info.Size() < bytes || info.Size() > p.control.segments.Bytes {
		return &recoveryError{fmt.Sprintf("segment %s has %d bytes of %d", filepath.Base(from), info.Size(), bytes)}
	}
	if err := move(from, to); err != nil {
		return err
	}
	file, err := volume.OpenFile(to, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = errors.Join(file.Truncate(bytes), file.Truncate(p.control.segments.Bytes), file.Chmod(0o600))
	if owner := engine.OwnerFor(p.i.User); owner != nil {
		err = errors.Join(err, owner.Own(file))
	}
	return errors.Join(err, file.Close())
}

// move renames a file, or copies it from another file system.
func move(from, to string) error {
	err := volume.Rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	in, err := volume.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := volume.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	out, err := volume.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), volume.Remove(from))
}

// joinLog puts the segments of servers that wrote later to those of the first one. The same
// name is the same segment, and the later server's has all of it that is a part of the history.
func joinLog(r engine.ReplayRequest) error {
	for _, dir := range r.Joined {
		entries, err := volume.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := move(filepath.Join(dir, e.Name()), filepath.Join(r.Dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// findLineage reads out of the log itself how it came from one timeline to another: the first
// segment of each goes on with the old one up to the record that ends it.
func findLineage(dir string, s wal.Segments, from, to uint32, limit wal.LSN) (wal.Lineage, error) {
	past, forks := wal.Lineage{{Timeline: to, End: wal.Endless}}, map[uint32]wal.Stretch{}
	for past[0].Timeline != from {
		id := past[0].Timeline
		if _, known := forks[id]; !known {
			if err := findForks(dir, s, id, limit, forks); err != nil {
				return nil, err
			}
		}
		f, known := forks[id]
		if !known || f.Timeline >= id {
			return nil, &recoveryError{fmt.Sprintf("the log of timeline %d does not come from %d", to, from)}
		}
		past = slices.Insert(past, 0, f)
	}
	for n := range past[1:] {
		if past[n].End > past[n+1].End {
			return nil, &recoveryError{fmt.Sprintf("timeline %d ends before the one it came from", past[n+1].Timeline)}
		}
	}
	return past, nil
}

// findForks reads the first segment of a timeline.
func findForks(dir string, s wal.Segments, timeline uint32, limit wal.LSN, forks map[uint32]wal.Stretch) error {
	entries, err := volume.ReadDir(dir)
	if err != nil {
		return err
	}
	prefix := fmt.Sprintf("%08X", timeline)
	n := slices.IndexFunc(entries, func(e os.DirEntry) bool { // they are in the order of their names
		return wal.SegmentName.MatchString(e.Name()) && strings.HasPrefix(e.Name(), prefix)
	})
	if n < 0 {
		return &recoveryError{fmt.Sprintf("there is no log of timeline %d", timeline)}
	}
	_, begin, err := s.Place(wal.PositionOf(entries[n].Name()))
	if err != nil {
		return err
	}
	log := &wal.Scanner{Dir: dir, Segments: s, Timeline: timeline, Limit: limit}
	defer log.Close()
	next, err := log.First(begin)
	for err == nil && next < begin+wal.LSN(s.Bytes) {
		var r wal.Record
		if r, err = log.Read(next); err != nil {
			break
		}
		next = r.Next
		if into, f, ok := r.Fork(s); ok {
			forks[into] = f
			if into == timeline {
				return nil
			}
		}
	}
	if err != nil && !errors.Is(err, wal.ErrEnd) {
		return &recoveryError{"the log is damaged: " + err.Error()}
	}
	return nil
}

// keepTo leaves out the timelines that began behind the goal, so that the server whose
// recovery ends there does not begin one in their names. The segment in which the next one
// began has all of the old one.
func (p *private) keepTo(s span, g goal) (span, error) {
	n := slices.IndexFunc(s.past, func(e wal.Stretch) bool { return g.target < e.End })
	if g.target == 0 || n == len(s.past)-1 {
		return s, nil
	}
	dir, segments := filepath.Join(p.data, wal.Dir), p.control.segments
	border := segments.Begin(g.target)
	have, want := segments.Position(s.past.At(segments, border), border).File, segments.Position(s.past[n].Timeline, border).File
	if have != want {
		if err := volume.Rename(filepath.Join(dir, have), filepath.Join(dir, want)); err != nil {
			return s, err
		}
	}
	s.past = append(slices.Clone(s.past[:n]), wal.Stretch{Timeline: s.past[n].Timeline, End: wal.Endless})
	entries, err := volume.ReadDir(dir)
	for _, e := range entries {
		if newest := fmt.Sprintf("%08X", s.past[n].Timeline); wal.SegmentName.MatchString(e.Name()) && e.Name()[:len(newest)] > newest {
			err = errors.Join(err, volume.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return s, err
}

// writeHistory gives the server the history of the timeline that it recovers.
func (p *private) writeHistory(past wal.Lineage) error {
	if len(past) == 1 {
		return nil
	}
	path := filepath.Join(p.data, wal.HistoryFile(past[len(past)-1].Timeline))
	return volume.WriteNew(path, []byte(past.Text()), 0o600, engine.OwnerFor(p.i.User))
}
