package mariadb

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

// replayPlan is how far a log is applied.
type replayPlan struct {
	files []string // the log, oldest first, up to that of stop
	stop  kurabe.LogPosition
	// reached is the last group of each domain before stop, none when there is
	// nothing to apply.
	reached map[uint32]gtid
	// scheduled are the statements about events of the scheduler up to stop.
	scheduled []scheduledChange
}

// logScan reads the whole log of a request, before a server sees any of it.
type logScan struct {
	r      engine.ReplayRequest
	plan   replayPlan
	groups grouper
	seen   map[uint32]uint64 // newest number of each domain, of half groups too
	ended  bool              // the file before was complete
	broken bool              // a server died since the last group
	done   bool              // what follows is not before r.At

	pending []scheduledChange // of the group that is open
}

// planReplay checks every event of the log and finds where to stop: between the marks
// around the moment, at the first transaction that was begun at the moment or later.
// Nothing behind it was acknowledged before. The times are seconds of the beginnings
// and can be set by clients: what claims to be later than the mark after it says
// nothing.
func planReplay(r engine.ReplayRequest) (replayPlan, error) {
	s := logScan{r: r, seen: map[uint32]uint64{}}
	s.plan.reached = map[uint32]gtid{}
	s.plan.stop = r.From
	if r.After.At.Before(r.At) || r.After.Position.Compare(r.From) < 0 {
		return s.plan, fmt.Errorf("the log ends at %s, before the moment or the snapshot", r.After.Position)
	}
	names, err := binlogs(r.Dir)
	if err != nil {
		return s.plan, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return (kurabe.LogPosition{File: name}).Compare(kurabe.LogPosition{File: r.From.File}) < 0 ||
			(kurabe.LogPosition{File: name}).Compare(kurabe.LogPosition{File: r.After.Position.File}) > 0
	})
	first, last := binlogNumber(r.From.File), binlogNumber(r.After.Position.File)
	if first == 0 || int64(len(names)) != last-first+1 {
		return s.plan, fmt.Errorf("the log from %s to %s is not complete: %d files", r.From.File, r.After.Position.File, len(names))
	}
	for _, name := range names {
		if err := s.file(name); err != nil {
			return s.plan, fmt.Errorf("read the log, %s: %w", name, err)
		}
	}
	s.plan.files = names[:binlogNumber(s.plan.stop.File)-first+1]
	return s.plan, nil
}

func (s *logScan) file(name string) error {
	root, err := os.OpenRoot(s.r.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	file, size, err := openBinlog(root, name)
	if err != nil {
		return err
	}
	defer file.Close()
	r := eventReader{source: file, until: size, copyTo: io.Discard}
	if name == s.r.After.Position.File {
		if r.until = s.r.After.Position.Offset; r.until > size {
			return fmt.Errorf("it has %d bytes, not the %d that it must have", size, r.until)
		}
	} else if size == 0 {
		// Its server died when it had made the file. Another start follows.
		s.ended = false
		return nil
	}
	switch {
	case name == s.r.From.File && s.r.From.Offset > 0:
		r.at, s.ended = s.r.From.Offset, true
	default:
		if err := r.readMagic(); err != nil {
			return err
		}
	}
	return s.events(name, &r)
}

func (s *logScan) events(name string, r *eventReader) error {
	first, fromStart := true, r.at == int64(len(logMagic))
	for {
		e, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if first && fromStart && name != s.r.From.File && !s.ended && !e.startsServer() {
			return errors.New("the file before it has no end, and no server was started with this one")
		}
		s.broken = s.broken || e.startsServer()
		first, s.ended = false, e.ends()
		if err := s.event(name, e); err != nil {
			return err
		}
	}
}

func (s *logScan) event(name string, e event) error {
	g, whole := s.groups.add(e)
	if change, ok := e.scheduled(); ok && !s.done {
		s.pending = append(s.pending, change)
	}
	if e.kind == gtidEvent && s.groups.open {
		id := s.groups.current.gtid
		// The server counts without a gap. What a crash left half it may count or not.
		if before := s.seen[id.domain]; before > 0 && id.seq != before+1 && !(s.broken && id.seq >= before) {
			return fmt.Errorf("transaction %s follows number %d: some are missing", id, before)
		}
		s.seen[id.domain], s.broken = id.seq, false
	}
	if !whole || s.done {
		return nil
	}
	end := kurabe.LogPosition{File: name, Offset: g.end}
	if end.Compare(s.r.Before.Position) > 0 && s.later(g) {
		s.done = true
		return nil
	}
	s.plan.scheduled, s.pending = append(s.plan.scheduled, s.pending...), nil
	s.plan.reached[g.gtid.domain] = g.gtid
	s.plan.stop = end
	return nil
}

// later says whether a group was begun at the moment or after it, as far as its time
// can be believed.
func (s *logScan) later(g group) bool {
	at := time.Unix(int64(g.seconds), 0)
	return !at.Before(s.r.At) && !at.After(s.r.After.Until)
}

// has says whether a server's gtid_slave_pos shows that all groups were applied.
func (p replayPlan) has(position string) bool {
	have := map[uint32]string{}
	for _, id := range slices.Collect(maps.Values(p.reached)) {
		have[id.domain] = id.String()
	}
	return sameGTIDs(position, have)
}
