package logstream

import (
	"cmp"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"kurabe"
)

func crcUpdate(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

// piece is a range of the log, in the spool, in the repository or on its way.
// Store.mu guards all fields.
type piece struct {
	head
	First kurabe.LogMark `json:"first,omitzero"` // of its marks
	Last  kurabe.LogMark `json:"last,omitzero"`
	// Inner is the first mark after the beginning of the piece's file: whoever knows
	// a position of that moment or later needs no earlier file.
	Inner kurabe.LogMark `json:"inner,omitzero"`
	// StoredBytes is the size in the repository, the content's before that is known.
	StoredBytes int64 `json:"storedBytes"`

	path       string // of the spool file, "" when it has none
	spoolBytes int64  // of that file, as it counts against the bounds
	closed     bool   // nothing is added any more; durable
	pushed     bool
	dropped    bool // out of its run: whoever is pushing it stops
}

func (p *piece) note(m kurabe.LogMark) {
	if !hasMark(p.First) {
		p.First = m
	}
	p.Last = m
	if !hasMark(p.Inner) && m.Position.File == p.File && m.Position.Offset > 0 {
		p.Inner = m
	}
}

// run is a chain of pieces. Store.mu guards all fields.
type run struct {
	folder string // its name below the instance, in spool and repository
	pieces []*piece
	ended  string // why nothing follows; "" while the run is live
	server kurabe.InstanceID
	joins  *joint
}

// joinedWord is why a run has ended from which another one goes on, or is about to.
const joinedWord = "the log continues on another server of the instance"

func (r *run) end() *piece {
	if len(r.pieces) == 0 {
		return nil
	}
	return r.pieces[len(r.pieces)-1]
}

// last is the newest mark, zero without one.
func (r *run) last() kurabe.LogMark {
	for _, p := range slices.Backward(r.pieces) {
		if hasMark(p.Last) {
			return p.Last
		}
	}
	if len(r.pieces) > 0 {
		return r.pieces[0].From
	}
	return kurabe.LogMark{}
}

// report is false for a run that reaches nothing yet.
func (r *run) report() (kurabe.LogRun, bool) {
	n := slices.IndexFunc(r.pieces, func(p *piece) bool { return hasMark(p.First) })
	if n < 0 {
		return kurabe.LogRun{}, false
	}
	begin, mark := r.pieces[0], r.pieces[n].First
	// At the beginning of all it is the first mark: the file begins before, but what
	// lies there may be older than the clock says. Of a later piece the mark before it
	// is true of its beginning too.
	first := mark
	if hasMark(begin.From) {
		first.At, first.Position = begin.From.At, begin.from()
	} else if first.Position.Compare(begin.from()) < 0 {
		// A mark at the end of a file goes into the next one's piece, and Trim may have taken
		// the file that its position names: the same place has the other name too.
		first.Position = begin.from()
	}
	told := kurabe.LogRun{Began: runBegan(r.folder), First: first, Last: r.last(), Ended: r.ended, Damaged: strings.Contains(r.ended, lostWord)}
	for _, p := range r.pieces {
		if !p.pushed {
			break
		}
		if hasMark(p.Last) {
			told.Pushed = p.Last
		}
	}
	told.First.Position.Server, told.Last.Position.Server, told.Pushed.Position.Server = r.server, r.server, r.server
	return told, true
}

// follows says if a piece is proven to be what comes after another. A file may have
// ended after its last piece was closed, without a byte more.
func (p *piece) follows(before *piece) bool {
	return p.After != nil && *p.After == before.span && (p.from() == before.to() || p.Start == 0)
}

// byPlace orders pieces of one folder.
func byPlace(a, b *piece) int {
	return cmp.Or(a.compare(b.span), cmp.Compare(a.path, b.path))
}

// chains cuts pieces of one folder, in order, into stretches without a gap, each from
// the beginning of a file on. What lies in no such stretch is left over.
func chains(pieces []*piece) (whole [][]*piece, left []*piece) {
	var current []*piece
	for _, p := range pieces {
		if n := len(current); n > 0 && p.follows(current[n-1]) {
			current = append(current, p)
			continue
		}
		if len(current) > 0 {
			whole = append(whole, current)
			current = nil
		}
		if p.Start == 0 {
			current = []*piece{p}
		} else {
			left = append(left, p)
		}
	}
	if len(current) > 0 {
		whole = append(whole, current)
	}
	return whole, left
}

const layout = "20060102T150405Z"

// runBegan is the time in a run's name, zero if it has none.
func runBegan(name string) time.Time {
	t, err := time.Parse(layout, name[:min(len(name), len(layout))])
	if err != nil {
		return time.Time{}
	}
	return t
}

// runName begins with the time, so that names sort, also when the clock went back:
// then with the time of the one before and a second more.
func runName(now time.Time, before, owner, random string) string {
	name := now.UTC().Format(layout)
	if t := runBegan(before); !t.IsZero() && name <= t.Format(layout) {
		name = t.Add(time.Second).Format(layout)
	}
	if owner != "" {
		name += "-" + owner
	}
	return name + "-" + random
}
