package failover

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"kurabe/internal/harness"
	"kurabe/test/bench/bed"
)

// The records of a raw file from which the figures of the failovers are made again.
const (
	recordSide   = "side"
	recordStrike = "strike"
	recordPart   = "part"
)

// Who takes part in the comparison.
const (
	roleOwn      = "own"
	roleOther    = "other"     // our other engine
	roleFar      = "far"       // over two hosts
	roleFarOther = "far-other" // our other engine over two hosts
	rolePeer     = "peer"

	roleCluster      = "cluster"
	roleClusterOther = "cluster-other" // of our other engine
)

// about is what there is to say of a side. Its name is its key in a file.
type about struct {
	Name  string `json:"name"`
	Role  string `json:"role"`
	Note  string `json:"note,omitempty"` // its settings
	Where string `json:"where,omitempty"`
	Why   string `json:"why,omitempty"` // there is none, or it was given up
}

// strike is one thing that has happened to one pair.
type strike struct {
	Side    string  `json:"side"`
	Loss    string  `json:"loss"`
	Round   int     `json:"round"`
	Seconds float64 `json:"seconds"`           // that the client has seen
	Abreast int     `json:"abreast,omitempty"` // how many other sides went through it at the same time
	Took    float64 `json:"took"`              // seconds of the measurement, all that is waited for included
	// The rows since the strike before: how many were acknowledged, and how many that once
	// were are missing now and were not then.
	Acked   int    `json:"acked"`
	Missing int    `json:"missing"`
	Wrong   string `json:"wrong,omitempty"`  // rows that are there twice, or were never written
	Unread  bool   `json:"unread,omitempty"` // they could not be read
	Failed  string `json:"failed,omitempty"` // the pair did not become whole again
}

// tally is what was seen of one side.
type tally struct {
	about
	strikes []strike
}

func (t *tally) count(s strike) { t.strikes = append(t.strikes, s) }

// rounds is how often a thing has happened to it, whatever came of that.
func (t *tally) rounds(x *loss) int { return len(t.of(x)) }

func (t *tally) of(x *loss) (list []strike) {
	for _, s := range t.strikes {
		if s.Loss == x.name {
			list = append(list, s)
		}
	}
	return list
}

// seen are the seconds of those after which it became whole again.
func (t *tally) seen(x *loss) (seconds []float64) {
	for _, s := range t.of(x) {
		if s.Failed == "" {
			seconds = append(seconds, s.Seconds)
		}
	}
	return seconds
}

// broken are the reasons of those after which it did not.
func (t *tally) broken(x *loss) (reasons []string) {
	for _, s := range t.of(x) {
		if s.Failed != "" {
			reasons = append(reasons, s.Failed)
		}
	}
	return reasons
}

// together is in how many rounds others went through it at the same time.
func (t *tally) together(x *loss) (count int) {
	for _, s := range t.of(x) {
		if s.Abreast > 0 {
			count++
		}
	}
	return count
}

// sum is what became of all rows.
func (t *tally) sum() (acked, missing, unread int, wrong string) {
	var words []string
	for _, s := range t.strikes {
		acked, missing = acked+s.Acked, missing+s.Missing
		if s.Unread {
			unread++
		}
		if s.Wrong != "" {
			words = append(words, s.Wrong)
		}
	}
	return acked, missing, unread, strings.Join(words, "; ")
}

// since is what a verdict says of the rows since an earlier one of the same pair.
func (s *strike) since(before, now harness.PulseVerdict) {
	s.Acked, s.Missing = now.Acked-before.Acked, len(now.Missing)-len(before.Missing)
	if len(now.Twice)+len(now.Strange) > len(before.Twice)+len(before.Strange) {
		s.Wrong = now.Wrong()
	}
}

// Book is all that a raw file has of the failovers.
type Book struct {
	Pieces  []bed.Piece
	tallies []*tally
	parts   map[string][]bed.Row // what is measured once, by its name
}

// NewBook is an empty one.
func NewBook() *Book { return &Book{parts: map[string][]bed.Row{}} }

// side is the tally of a side, which is made of what is said of it at first.
func (b *Book) side(a about) *tally {
	for _, t := range b.tallies {
		if t.Name == a.Name {
			if a.Role != "" {
				t.about = a
			}
			return t
		}
	}
	t := &tally{about: a}
	b.tallies = append(b.tallies, t)
	return t
}

func (b *Book) role(role string) (list []*tally) {
	for _, t := range b.tallies {
		if t.Role == role {
			list = append(list, t)
		}
	}
	return list
}

// only is the one side of a role, nil when nobody has it.
func (b *Book) only(role string) *tally {
	if list := b.role(role); len(list) > 0 {
		return list[0]
	}
	return nil
}

// maxRecord bounds a line of a raw file.
const maxRecord = 64 << 20

// ReadBook reads what earlier pieces have left. A last line that was cut off is no record.
func ReadBook(path string) (*Book, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b := NewBook()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxRecord)
	for number := 1; lines.Scan(); number++ {
		if err := b.take(lines.Bytes()); err != nil {
			if !lines.Scan() {
				break
			}
			return nil, fmt.Errorf("%s, line %d: %w", path, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(b.Pieces) == 0 {
		return nil, fmt.Errorf("%s is no raw file of a benchmark", path)
	}
	return b, nil
}

// take reads one record. Those of other benchmarks are left alone.
func (b *Book) take(line []byte) error {
	var kind struct {
		T       string  `json:"t"`
		Seconds float64 `json:"seconds"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return err
	}
	switch kind.T {
	case bed.RecordRun:
		var p bed.Piece
		err := json.Unmarshal(line, &p)
		b.Pieces = append(b.Pieces, p)
		return err
	case bed.RecordEnd:
		if n := len(b.Pieces); n > 0 {
			b.Pieces[n-1].Seconds = kind.Seconds
		}
	case recordSide:
		var x struct{ About about }
		err := json.Unmarshal(line, &x)
		b.side(x.About)
		return err
	case recordStrike:
		var x struct{ Strike strike }
		err := json.Unmarshal(line, &x)
		b.side(about{Name: x.Strike.Side}).count(x.Strike)
		return err
	case recordPart:
		var x struct {
			Part string
			Rows []bed.Row
		}
		err := json.Unmarshal(line, &x)
		b.parts[x.Part] = x.Rows
		return err
	}
	return nil
}
