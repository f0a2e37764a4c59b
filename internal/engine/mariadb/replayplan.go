package mariadb

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// replayPlan is how far a log is applied.
type replayPlan struct {
	files []replayFile // the log, oldest first, up to that of stop
	stop  kurabe.LogPosition
	// reached is the last group of each domain before stop, none when there is
	// nothing to apply.
	reached map[uint32]gtid
	// scheduled are the statements about events of the scheduler up to stop.
	scheduled []scheduledChange
}

// replayFile is what of a file is applied: all up to cut (0: to its end), without what lies
// between head, behind the events that describe the file, and skip (0: nothing).
type replayFile struct {
	dir, name       string
	head, skip, cut int64
}

// place is where something of a file is in what is handed to the server.
func (f replayFile) place(offset int64) int64 {
	if f.skip == 0 {
		return offset
	}
	return offset - (f.skip - f.head)
}

// logScan reads the whole log of a request, before a server sees any of it.
type logScan struct {
	r       engine.ReplayRequest
	plan    replayPlan
	files   []replayFile // that were read
	stopsIn int          // number of the file of plan.stop
	groups  grouper
	seen    map[uint32]gtid // newest of each domain, of half groups too
	ended   bool            // the file before was complete
	owner   uint32          // whose file it is
	broken  bool            // a server died since the last group
	done    bool            // what follows is not before r.At

	pending []scheduledChange // of the group that is open
	joins
}

// planReplay checks every event of the log and finds where to stop: between the marks
// around the moment, at the first transaction that was begun at the moment or later.
// Nothing behind it was acknowledged before. The times are seconds of the beginnings
// and can be set by clients: what claims to be later than the mark after it says
// nothing.
func planReplay(r engine.ReplayRequest) (replayPlan, error) {
	s := &logScan{r: r, seen: map[uint32]gtid{}}
	s.plan.reached = map[uint32]gtid{}
	s.plan.stop = r.From
	if r.After.At.Before(r.At) || len(r.Joined) == 0 && r.After.Position.Compare(r.From) < 0 {
		return s.plan, fmt.Errorf("the log ends at %s, before the moment or the snapshot", r.After.Position)
	}
	s, err := s.parts()
	if err != nil {
		return s.plan, err
	}
	s.plan.files = s.files[:s.stopsIn+1]
	s.plan.files[s.stopsIn].cut = s.plan.stop.Offset
	return s.plan, nil
}

// one reads the files of one server, from the snapshot on if it is the first and up to the
// mark if it is the last.
func (s *logScan) one(number int) error {
	dir := s.dir(number)
	names, err := binlogs(dir)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		p := kurabe.LogPosition{File: name}
		return number == 0 && p.Compare(kurabe.LogPosition{File: s.r.From.File}) < 0 ||
			number == len(s.r.Joined) && p.Compare(kurabe.LogPosition{File: s.r.After.Position.File}) > 0
	})
	first, last := s.ends(number, names)
	if first == 0 || int64(len(names)) != last-first+1 {
		return fmt.Errorf("the log is not complete: %d files from number %d to %d", len(names), first, last)
	}
	for _, name := range names {
		s.files = append(s.files, replayFile{dir: dir, name: name})
		if err := s.file(number, name); err != nil {
			if errors.Is(err, errLimit) {
				return nil
			}
			return fmt.Errorf("read the log, %s: %w", name, err)
		}
	}
	return nil
}

// ends are the numbers of the first and the last file that there must be.
func (s *logScan) ends(number int, names []string) (first, last int64) {
	if len(names) > 0 {
		first, last = binlogNumber(names[0]), binlogNumber(names[len(names)-1])
	}
	if number == 0 {
		first = binlogNumber(s.r.From.File)
	}
	if number == len(s.r.Joined) {
		last = binlogNumber(s.r.After.Position.File)
	}
	return first, last
}

func (s *logScan) file(number int, name string) error {
	root, err := volume.OpenRoot(s.dir(number))
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
	if number == len(s.r.Joined) && name == s.r.After.Position.File {
		if r.until = s.r.After.Position.Offset; r.until > size {
			return fmt.Errorf("it has %d bytes, not the %d that it must have", size, r.until)
		}
	} else if size == 0 {
		// Its server died when it had made the file. Another start follows.
		s.ended = false
		return nil
	}
	switch {
	case number == 0 && name == s.r.From.File && s.r.From.Offset > 0:
		r.at, s.ended = s.r.From.Offset, true
	default:
		if err := r.readMagic(); err != nil {
			return err
		}
	}
	return s.events(number, name, &r)
}

func (s *logScan) events(number int, name string, r *eventReader) error {
	first, fromStart := true, r.at == int64(len(logMagic))
	begins := len(s.files) == 1 || s.joining && s.files[len(s.files)-2].dir != s.dir(number)
	for {
		e, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if first && fromStart && !begins && !s.ended && !e.startsServer() {
			return errors.New("the file before it has no end, and no server was started with this one")
		}
		if e.kind == formatEvent {
			s.owner = e.server
		}
		s.broken = s.broken || e.startsServer()
		first, s.ended = false, e.ends()
		if err := s.event(number, name, e); err != nil {
			return err
		}
	}
}

func (s *logScan) event(number int, name string, e event) error {
	if mine, err := s.join(e); err != nil || !mine {
		return err
	}
	g, whole := s.groups.add(e)
	if change, ok := e.scheduled(); ok && !s.done {
		s.pending = append(s.pending, change)
	}
	if e.kind == gtidEvent && s.groups.open {
		id := s.groups.current.gtid
		// The server counts without a gap. What a crash left half it may count or not, and one
		// that was promoted leaves out the number of what it had received half. Of what it was
		// sent it logs nothing that changed nothing here.
		before := s.seen[id.domain]
		skips := id.seq > before.seq && (id.server != before.server || id.server != s.owner)
		if before.seq > 0 && id.seq != before.seq+1 && !skips && !(s.broken && id.seq >= before.seq) {
			return fmt.Errorf("transaction %s follows number %d: some are missing", id, before.seq)
		}
		s.seen[id.domain], s.broken = id, false
	}
	if !whole {
		return nil
	}
	s.note(g.gtid)
	if s.done {
		return nil
	}
	end := kurabe.LogPosition{File: name, Offset: g.end}
	if (number > s.r.BeforeIn || number == s.r.BeforeIn && end.Compare(s.r.Before.Position) > 0) && s.later(g) {
		s.done = true
		return nil
	}
	s.plan.scheduled, s.pending = append(s.plan.scheduled, s.pending...), nil
	s.plan.reached[g.gtid.domain] = g.gtid
	s.plan.stop, s.stopsIn = end, len(s.files)-1
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
