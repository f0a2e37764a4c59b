package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"kurabe/internal/harness"
)

// The records of a raw file from which the figures of the failovers are made again.
const (
	recordRun    = "run"
	recordEnd    = "end"
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

// piece is one run of the program into a file.
type piece struct {
	Machine  machine   `json:"machine"`
	Settings settings  `json:"settings"`
	Started  time.Time `json:"started"`
	seconds  float64   // 0: it was cut off
}

// book is all that a raw file has of the failovers.
type book struct {
	pieces  []piece
	tallies []*tally
	parts   map[string][]row // what is measured once, by its name
}

func newBook() *book { return &book{parts: map[string][]row{}} }

// side is the tally of a side, which is made of what is said of it at first.
func (b *book) side(a about) *tally {
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

func (b *book) role(role string) (list []*tally) {
	for _, t := range b.tallies {
		if t.Role == role {
			list = append(list, t)
		}
	}
	return list
}

// only is the one side of a role, nil when nobody has it.
func (b *book) only(role string) *tally {
	if list := b.role(role); len(list) > 0 {
		return list[0]
	}
	return nil
}

// maxRecord bounds a line of a raw file.
const maxRecord = 64 << 20

// readBook reads what earlier pieces have left. A last line that was cut off is no record.
func readBook(path string) (*book, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b := newBook()
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
	if len(b.pieces) == 0 {
		return nil, fmt.Errorf("%s is no raw file of a benchmark", path)
	}
	return b, nil
}

// take reads one record. Those of other benchmarks are left alone.
func (b *book) take(line []byte) error {
	var kind struct {
		T       string  `json:"t"`
		Seconds float64 `json:"seconds"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return err
	}
	switch kind.T {
	case recordRun:
		var p piece
		err := json.Unmarshal(line, &p)
		b.pieces = append(b.pieces, p)
		return err
	case recordEnd:
		if n := len(b.pieces); n > 0 {
			b.pieces[n-1].seconds = kind.Seconds
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
			Rows []row
		}
		err := json.Unmarshal(line, &x)
		b.parts[x.Part] = x.Rows
		return err
	}
	return nil
}

// sameMachine refuses to add to figures of another one: the mixture would be of neither.
func (b *book) sameMachine(m machine) error {
	for _, p := range b.pieces {
		if how := m.differs(p.Machine); how != "" {
			return fmt.Errorf("the file was begun on %s", how)
		}
	}
	return nil
}

// sameSizes refuses to add rounds of other sizes than the file has.
func (b *book) sameSizes(s settings) error {
	for _, p := range b.pieces {
		had := p.Settings
		if had.Quick != s.Quick || had.Blocks != s.Blocks || had.Seconds != s.Seconds {
			return fmt.Errorf("the file was begun with quick %t, %d blocks, %d seconds, and this is with quick %t, %d blocks, %d seconds", had.Quick, had.Blocks, had.Seconds, s.Quick, s.Blocks, s.Seconds)
		}
	}
	return nil
}
