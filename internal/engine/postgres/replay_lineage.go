package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/volume"
)

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
