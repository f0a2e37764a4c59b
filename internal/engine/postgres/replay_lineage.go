package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kurabe/internal/engine"
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

// fork is the record by which a server began a timeline: its end of recovery.
type fork struct {
	from uint32
	at   lsn
}

// findLineage reads out of the log itself how it came from one timeline to another: the first
// segment of each goes on with the old one up to the record that ends it.
func findLineage(dir string, s segments, from, to uint32, limit lsn) (lineage, error) {
	past, forks := lineage{{to, endless}}, map[uint32]fork{}
	for past[0].timeline != from {
		id := past[0].timeline
		if _, known := forks[id]; !known {
			if err := findForks(dir, s, id, limit, forks); err != nil {
				return nil, err
			}
		}
		f, known := forks[id]
		if !known || f.from >= id {
			return nil, &recoveryError{fmt.Sprintf("the log of timeline %d does not come from %d", to, from)}
		}
		past = slices.Insert(past, 0, stretch{f.from, f.at})
	}
	for n := range past[1:] {
		if past[n].end > past[n+1].end {
			return nil, &recoveryError{fmt.Sprintf("timeline %d ends before the one it came from", past[n+1].timeline)}
		}
	}
	return past, nil
}

// findForks reads the first segment of a timeline.
func findForks(dir string, s segments, timeline uint32, limit lsn, forks map[uint32]fork) error {
	entries, err := volume.ReadDir(dir)
	if err != nil {
		return err
	}
	prefix := fmt.Sprintf("%08X", timeline)
	n := slices.IndexFunc(entries, func(e os.DirEntry) bool { // they are in the order of their names
		return walSegment.MatchString(e.Name()) && strings.HasPrefix(e.Name(), prefix)
	})
	if n < 0 {
		return &recoveryError{fmt.Sprintf("there is no log of timeline %d", timeline)}
	}
	_, begin, err := s.place(positionOf(entries[n].Name()))
	if err != nil {
		return err
	}
	log := &scanner{dir: dir, segments: s, timeline: timeline, limit: limit}
	defer log.close()
	next, err := log.first(begin)
	for err == nil && next < begin+lsn(s.bytes) {
		var r record
		if r, err = log.read(next); err != nil {
			break
		}
		next = r.next
		if into, f, ok := r.forks(s); ok {
			forks[into] = f
			if into == timeline {
				return nil
			}
		}
	}
	if err != nil && !errors.Is(err, errLogEnds) {
		return &recoveryError{"the log is damaged: " + err.Error()}
	}
	return nil
}

// forks reads the end of a recovery that began a timeline. The record of it and a checkpoint
// have the two timelines at the same place (xl_end_of_recovery, CheckPoint).
func (r record) forks(s segments) (into uint32, f fork, ok bool) {
	const timelineAt, previousAt, least = 8, 12, 16
	if r.resource != resourceXLOG || r.info&xlogMask != xlogShutdown && r.info&xlogMask != xlogEndOfRecovery {
		return 0, fork{}, false
	}
	data, err := r.mainData()
	if err != nil || len(data) < least {
		return 0, fork{}, false
	}
	into, from := binary.LittleEndian.Uint32(data[timelineAt:]), binary.LittleEndian.Uint32(data[previousAt:])
	return into, fork{from, s.dropHeader(r.begin)}, into != from
}

// keepTo leaves out the timelines that began behind the goal, so that the server whose
// recovery ends there does not begin one in their names. The segment in which the next one
// began has all of the old one.
func (p *private) keepTo(s span, g goal) (span, error) {
	n := slices.IndexFunc(s.past, func(e stretch) bool { return g.target < e.end })
	if g.target == 0 || n == len(s.past)-1 {
		return s, nil
	}
	dir, segments := filepath.Join(p.data, walDir), p.control.segments
	border := segments.begin(g.target)
	have, want := segments.position(s.past.at(segments, border), border).File, segments.position(s.past[n].timeline, border).File
	if have != want {
		if err := volume.Rename(filepath.Join(dir, have), filepath.Join(dir, want)); err != nil {
			return s, err
		}
	}
	s.past = append(slices.Clone(s.past[:n]), stretch{s.past[n].timeline, endless})
	entries, err := volume.ReadDir(dir)
	for _, e := range entries {
		if newest := fmt.Sprintf("%08X", s.past[n].timeline); walSegment.MatchString(e.Name()) && e.Name()[:len(newest)] > newest {
			err = errors.Join(err, volume.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return s, err
}

// writeHistory gives the server the history of the timeline that it recovers.
func (p *private) writeHistory(past lineage) error {
	if len(past) == 1 {
		return nil
	}
	path := filepath.Join(p.data, historyFile(past[len(past)-1].timeline))
	return volume.WriteNew(path, []byte(past.text()), 0o600, engine.OwnerFor(p.i.User))
}
