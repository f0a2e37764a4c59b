package logs

import (
	"bytes"
	"unicode/utf8"
)

// maxPortion bounds one portion in bytes, as on RDS.
const maxPortion = 1 << 20

// window is a part of a file, at most maxPortion of it. No line of it is cut,
// except one that is longer than a window: that one is given in pieces.
type window struct {
	data           []byte
	atStart, atEnd bool // of the file
	quiet          bool // nobody has written for a while
}

// first returns how many bytes are the first whole lines, and whether there is
// more to read after them.
func (w window) first(lines int) (end int, more bool) {
	for range lines {
		at := bytes.IndexByte(w.data[end:], '\n')
		if at < 0 {
			break
		}
		end += at + 1
	}
	rest := w.data[end:]
	switch {
	case bytes.IndexByte(rest, '\n') >= 0:
		return end, true // the number of lines was the limit
	case !w.atEnd && end > 0:
		return end, true // the window ends in the middle of a line
	case !w.atEnd:
		return wholeRunes(w.data), true // of a line longer than a window
	case !w.quiet || len(rest) == 0:
		return end, false // what is left, if anything, is still being written
	case bytes.Count(w.data[:end], []byte{'\n'}) < lines:
		return len(w.data), false
	}
	return end, true
}

// last returns where the last whole lines begin and end.
func (w window) last(lines int) (begin, end int) {
	end = len(w.data)
	if !w.quiet {
		end = bytes.LastIndexByte(w.data, '\n') + 1
	}
	if !w.atStart {
		begin = bytes.IndexByte(w.data[:end], '\n') + 1 // after the line that began earlier
	}
	if begin == end { // one line, longer than the window
		begin = 0
	}
	for at := end; lines > 0; lines-- {
		at = bytes.LastIndexByte(w.data[begin:max(at-1, begin)], '\n') + begin
		if at < begin {
			return begin, end
		}
		if lines == 1 {
			return at + 1, end
		}
		at++
	}
	return begin, end
}

// wholeRunes is the length of data without a character that its end cuts.
func wholeRunes(data []byte) int {
	for n := 1; n < utf8.UTFMax && n < len(data); n++ {
		if c := data[len(data)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(data[len(data)-n:]) {
				return len(data) - n
			}
			break
		}
	}
	return len(data)
}
