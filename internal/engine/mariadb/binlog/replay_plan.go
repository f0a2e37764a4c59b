package binlog

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// ReplayPlan is how far a log is applied.
type ReplayPlan struct {
	Files []ReplayFile // the log, oldest first, up to that of stop
	Stop  kurabe.LogPosition
	// Reached is the last group of each domain before stop, none when there is
	// nothing to apply.
	Reached map[uint32]GTID
	// Scheduled are the statements about events of the scheduler up to stop.
	Scheduled []scheduledChange
}

// logScan reads the whole log of a request, before a server sees any of it.
type logScan struct {
	r       engine.ReplayRequest
	plan    ReplayPlan
	files   []ReplayFile // that were read
	stopsIn int          // number of the file of plan.stop
	groups  Grouper
	seen    map[uint32]GTID // newest of each domain, of half groups too
	ended   bool            // the file before was complete
	owner   uint32          // whose file it is
	broken  bool            // a server died since the last group
	done    bool            // what follows is not before r.At

	pending []scheduledChange // of the group that is open
	joins
}

// PlanReplay checks every event of the log and finds where to stop: between the marks
// around the moment, at the first transaction that was begun at the moment or later.
// Nothing behind it was acknowledged before. The times are seconds of the beginnings
// and can be set by clients: what claims to be later than the mark after it says
// nothing.
func PlanReplay(r engine.ReplayRequest) (ReplayPlan, error) {
	s := &logScan{r: r, seen: map[uint32]GTID{}}
	s.plan.Reached = map[uint32]GTID{}
	s.plan.Stop = r.From
	if r.After.At.Before(r.At) || len(r.Joined) == 0 && r.After.Position.Compare(r.From) < 0 {
		return s.plan, fmt.Errorf("the log ends at %s, before the moment or the snapshot", r.After.Position)
	}
	s, err := s.parts()
	if err != nil {
		return s.plan, err
	}
	s.plan.Files = s.files[:s.stopsIn+1]
	s.plan.Files[s.stopsIn].Cut = s.plan.Stop.Offset
	return s.plan, nil
}

// one reads the files of one server, from the snapshot on if it is the first and up to the
// mark if it is the last.
func (s *logScan) one(number int) error {
	dir := s.dir(number)
	names, err := List(dir)
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
		s.files = append(s.files, ReplayFile{Dir: dir, Name: name})
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
		first, last = FileNumber(names[0]), FileNumber(names[len(names)-1])
	}
	if number == 0 {
		first = FileNumber(s.r.From.File)
	}
	if number == len(s.r.Joined) {
		last = FileNumber(s.r.After.Position.File)
	}
	return first, last
}

func (s *logScan) file(number int, name string) error {
	root, err := volume.OpenRoot(s.dir(number))
	if err != nil {
		return err
	}
	defer root.Close()
	file, size, err := Open(root, name)
	if err != nil {
		return err
	}
	defer file.Close()
	r := Reader{Source: file, Until: size, CopyTo: io.Discard}
	if number == len(s.r.Joined) && name == s.r.After.Position.File {
		if r.Until = s.r.After.Position.Offset; r.Until > size {
			return fmt.Errorf("it has %d bytes, not the %d that it must have", size, r.Until)
		}
	} else if size == 0 {
		// Its server died when it had made the file. Another start follows.
		s.ended = false
		return nil
	}
	switch {
	case number == 0 && name == s.r.From.File && s.r.From.Offset > 0:
		r.At, s.ended = s.r.From.Offset, true
	default:
		if err := r.ReadMagic(); err != nil {
			return err
		}
	}
	return s.events(number, name, &r)
}

func (s *logScan) events(number int, name string, r *Reader) error {
	first, fromStart := true, r.At == int64(len(Magic))
	begins := len(s.files) == 1 || s.joining && s.files[len(s.files)-2].Dir != s.dir(number)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if first && fromStart && !begins && !s.ended && !e.startsServer() {
			return errors.New("the file before it has no end, and no server was started with this one")
		}
		if e.Kind == formatEvent {
			s.owner = e.server
		}
		s.broken = s.broken || e.startsServer()
		first, s.ended = false, e.Ends()
		if err := s.event(number, name, e); err != nil {
			return err
		}
	}
}

func (s *logScan) event(number int, name string, e Event) error {
	if mine, err := s.join(e); err != nil || !mine {
		return err
	}
	g, whole := s.groups.Add(e)
	if change, ok := e.scheduled(); ok && !s.done {
		s.pending = append(s.pending, change)
	}
	if e.Kind == GTIDEvent && s.groups.open {
		id := s.groups.current.gtid
		// The server counts without a gap. What a crash left half it may count or not, and one
		// that was promoted leaves out the number of what it had received half. Of what it was
		// sent it logs nothing that changed nothing here.
		before := s.seen[id.domain]
		skips := id.Seq > before.Seq && (id.Server != before.Server || id.Server != s.owner)
		if before.Seq > 0 && id.Seq != before.Seq+1 && !skips && !(s.broken && id.Seq >= before.Seq) {
			return fmt.Errorf("transaction %s follows number %d: some are missing", id, before.Seq)
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
	end := kurabe.LogPosition{File: name, Offset: g.End}
	if (number > s.r.BeforeIn || number == s.r.BeforeIn && end.Compare(s.r.Before.Position) > 0) && s.later(g) {
		s.done = true
		return nil
	}
	s.plan.Scheduled, s.pending = append(s.plan.Scheduled, s.pending...), nil
	s.plan.Reached[g.gtid.domain] = g.gtid
	s.plan.Stop, s.stopsIn = end, len(s.files)-1
	return nil
}

// later says whether a group was begun at the moment or after it, as far as its time
// can be believed.
func (s *logScan) later(g group) bool {
	at := time.Unix(int64(g.seconds), 0)
	return !at.Before(s.r.At) && !at.After(s.r.After.Until)
}

// Has says whether a server's gtid_slave_pos shows that all groups were applied.
func (p ReplayPlan) Has(position string) bool {
	have := map[uint32]string{}
	for _, id := range slices.Collect(maps.Values(p.Reached)) {
		have[id.domain] = id.String()
	}
	return sameGTIDs(position, have)
}

// sameGTIDs compares a gtid_slave_pos with the groups wanted, by domain.
func sameGTIDs(position string, wanted map[uint32]string) bool {
	found := 0
	for id := range strings.SplitSeq(position, ",") {
		domain, _, _ := strings.Cut(id, "-")
		n, err := strconv.ParseUint(domain, 10, 32)
		if err != nil || wanted[uint32(n)] != id {
			return false
		}
		found++
	}
	return found == len(wanted)
}
