package logquery

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// literals are texts of which a message must contain at least one.
type literals struct {
	list [][]byte
	fold bool // they are in lower case; the message's ASCII letters are compared as such
}

const literalsMax = 8

// length is that of the shortest: the longer, the rarer.
func (l literals) length() int {
	if len(l.list) == 0 {
		return 0
	}
	n := len(l.list[0])
	for _, one := range l.list {
		n = min(n, len(one))
	}
	return n
}

// better returns the literals that likely drop more events.
func (l literals) better(o literals) literals {
	weight := func(l literals) int {
		n := 2 * l.length()
		if l.fold {
			n -= 3 // the block has to be written in lower case first
		}
		return n - len(l.list)
	}
	if len(l.list) == 0 || len(o.list) > 0 && weight(o) > weight(l) {
		return o
	}
	return l
}

// either returns literals of which a message must contain one when it must contain one of a or of b.
func (l literals) either(o literals) literals {
	if len(l.list) == 0 || len(o.list) == 0 || len(l.list)+len(o.list) > literalsMax {
		return literals{}
	}
	fold := l.fold || o.fold
	both := literals{fold: fold}
	for _, one := range append(append([][]byte{}, l.list...), o.list...) {
		if fold {
			if one = foldable(string(one)); len(one) == 0 {
				return literals{}
			}
		}
		both.list = append(both.list, one)
	}
	return both
}

// regexpLiterals returns literals that every match contains; none when there are no such.
func regexpLiterals(re *regexp.Regexp) literals {
	tree, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return literals{}
	}
	return required(tree.Simplify())
}

func required(re *syntax.Regexp) (best literals) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			if one := foldable(string(re.Rune)); len(one) > 0 {
				return literals{[][]byte{one}, true}
			}
			return literals{}
		}
		return literals{list: [][]byte{[]byte(string(re.Rune))}}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			best = best.better(required(sub))
		}
	case syntax.OpAlternate:
		best = required(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			best = best.either(required(sub))
		}
	}
	return best
}

// foldable returns the longest part of a text whose letters have no other form than the upper and
// the lower case of ASCII, in lower case: k is also the Kelvin sign, s the long s.
func foldable(text string) (best []byte) {
	var part []byte
	for _, r := range text + "\x80" {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		if r < utf8.RuneSelf && r != 'k' && r != 's' {
			part = append(part, byte(r))
			continue
		}
		if len(part) > len(best) {
			best = part
		}
		part = nil
	}
	return best
}

// lower writes text with ASCII letters in lower case over buffer.
func lower(buffer, text []byte) []byte {
	buffer = append(buffer[:0], text...)
	for n, c := range buffer {
		if c-'A' < 26 {
			buffer[n] = c + 'a' - 'A'
		}
	}
	return buffer
}

// search finds the places in a block where a message may contain what it must.
type search struct {
	literals
	data   []byte // of the block, in lower case with fold
	next   []int  // of each literal
	buffer []byte
}

const nowhere = int(^uint(0) >> 1)

func (s *search) begin(data []byte) {
	if s.data = data; s.fold {
		s.buffer = lower(s.buffer, data)
		s.data = s.buffer
	}
	s.next = append(s.next[:0], make([]int, len(s.list))...)
	for n := range s.next {
		s.next[n] = -1
	}
}

// from returns the first place at or behind an offset, nowhere if there is none.
func (s *search) from(at int) int {
	first := nowhere
	for n, one := range s.list {
		if s.next[n] < at {
			s.next[n] = nowhere
			if i := bytes.Index(s.data[min(at, len(s.data)):], one); i >= 0 {
				s.next[n] = at + i
			}
		}
		first = min(first, s.next[n])
	}
	return first
}

// mayContain says that a text contains one of the literals, or that this is not known cheaply.
func (l literals) mayContain(text []byte) bool {
	if l.fold || len(l.list) == 0 {
		return true
	}
	for _, one := range l.list {
		if bytes.Contains(text, one) {
			return true
		}
	}
	return false
}
