package binlog

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"kurabe"
	"kurabe/internal/volume"
)

// The logs of servers that wrote one after the other overlap: the file with which the later
// one goes on begins before the place, and the earlier one may have transactions behind it
// that nobody else had. A transaction's number and its writer say which are the same: who has
// one has all before it, in the same order (gtid.go).

// joins is what a logScan knows of the history that it has read.
type joins struct {
	base    GTID       // newest before the snapshot's place
	last    GTID       // newest that was read, or base
	history []authored // of all that was read, in its order
	// limit is the newest that is read of this server's, 0 for all.
	limit uint64
	// joining: the first transaction that the servers before have not is still to come.
	joining bool
	pred    Place // of the last event that was left out
	openAt  int64 // where the newest transaction begins in its file
}

// authored is a stretch of transactions of one server.
type authored struct {
	server uint32
	lo, hi uint64
}

// errLimit ends the reading of a server's log.
var errLimit = errors.New("what follows is no part of the history")

// dir is the folder of a server's files.
func (s *logScan) dir(number int) string {
	if number == 0 {
		return s.r.Dir
	}
	return s.r.Joined[number-1]
}

func (s *logScan) clone() *logScan {
	c := *s
	c.files, c.pending, c.history = slices.Clone(s.files), slices.Clone(s.pending), slices.Clone(s.history)
	c.plan.Scheduled = slices.Clone(s.plan.Scheduled)
	c.seen, c.plan.Reached = maps.Clone(s.seen), maps.Clone(s.plan.Reached)
	return &c
}

// parts reads the logs of all servers. Where one goes on from an earlier place than the end
// of what was read before it, that is read again up to there.
func (s *logScan) parts() (*logScan, error) {
	if len(s.r.Joined) > 0 {
		base, err := placeAt(s.r.Dir, s.r.From)
		if err != nil {
			return s, fmt.Errorf("read the log, %s: %w", s.r.From.File, err)
		}
		s.base, s.last = base.Newest, base.Newest
	}
	before := []*logScan{s.clone()}
	err := s.one(0)
	for number := 1; number <= len(s.r.Joined) && err == nil; number++ {
		before = append(before, s.clone())
		if err = s.goOn(number); err != nil || s.pred.Newest == before[number].last {
			continue
		}
		from := number - 1
		for from > 0 && before[from].last.Seq >= s.pred.Newest.Seq {
			from--
		}
		again := before[from].clone()
		again.limit = s.pred.Newest.Seq
		if from == 0 {
			err = again.one(0)
		} else {
			err = again.goOn(from)
		}
		again.limit = 0
		before[number] = again.clone()
		if err == nil {
			err = again.goOn(number)
		}
		if err == nil && again.pred.Newest != before[number].last {
			err = fmt.Errorf("the log of a later server goes on from transaction %s, and the one before it ends with transaction %s", again.pred.Newest, before[number].last)
		}
		s = again
	}
	return s, err
}

// goOn reads the log of a later server.
func (s *logScan) goOn(number int) error {
	files := len(s.files)
	if s.groups.open { // nobody was told of it
		s.files[files-1].Cut = s.openAt
	}
	s.pending = nil
	s.joining, s.ended, s.pred, s.groups = true, true, Place{}, Grouper{}
	if err := s.one(number); err != nil {
		return err
	}
	if s.joining { // it has nothing that the others have not
		s.files = s.files[:files]
	}
	if !s.pred.Known || !s.covers(s.pred.Newest) {
		return fmt.Errorf("the log of a later server goes on from transaction %s, which the one before it does not have", s.pred.Newest)
	}
	return nil
}

// join leaves out what the servers before have, and says whether an event is to be read.
func (s *logScan) join(e Event) (mine bool, err error) {
	id, begins := e.begins()
	if begins {
		s.openAt = e.At
	}
	if !begins || id.domain != GroupDomain {
		if s.joining {
			s.pred.Add(e)
		}
		return !s.joining, nil
	}
	f := &s.files[len(s.files)-1]
	if s.limit > 0 && id.Seq > s.limit {
		f.Cut = e.At
		return false, errLimit
	}
	if !s.joining {
		return true, nil
	}
	if f.head == 0 {
		f.head = e.At
	}
	if s.covers(id) {
		s.pred.Add(e)
		return false, nil
	}
	if s.joining = false; e.At > f.head {
		f.skip = e.At
	}
	// The files before this one have nothing new.
	first := slices.IndexFunc(s.files, func(o ReplayFile) bool { return o.Dir == f.Dir })
	s.files = slices.Delete(s.files, first, len(s.files)-1)
	s.seen[id.domain], s.broken = s.pred.Newest, false
	return true, nil
}

// begins is the transaction that an event begins.
func (e Event) begins() (GTID, bool) {
	var g Grouper
	g.Add(e)
	return g.current.gtid, g.open
}

// covers says whether the servers before have a transaction.
func (s *logScan) covers(id GTID) bool {
	if id.Seq < s.base.Seq || id == s.base {
		return true
	}
	return slices.ContainsFunc(s.history, func(w authored) bool { return w.server == id.Server && id.Seq >= w.lo && id.Seq <= w.hi })
}

// note remembers a transaction that was read.
func (s *logScan) note(id GTID) {
	if id.domain != GroupDomain {
		return
	}
	s.last = id
	if n := len(s.history) - 1; n >= 0 && s.history[n].server == id.Server && s.history[n].hi+1 == id.Seq {
		s.history[n].hi = id.Seq
		return
	}
	s.history = append(s.history, authored{id.Server, id.Seq, id.Seq})
}

// placeAt reads a file up to an offset.
func placeAt(dir string, at kurabe.LogPosition) (Place, error) {
	root, err := volume.OpenRoot(dir)
	if err != nil {
		return Place{}, err
	}
	defer root.Close()
	file, _, err := Open(root, at.File)
	if err != nil {
		return Place{}, err
	}
	defer file.Close()
	r := Reader{Source: file, Until: at.Offset, CopyTo: io.Discard}
	p := Place{At: kurabe.LogPosition{File: at.File}}
	if at.Offset == 0 {
		return p, nil
	}
	for err = r.ReadMagic(); err == nil; {
		var e Event
		if e, err = r.Next(); err == nil {
			p.Add(e)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return p, err
}
