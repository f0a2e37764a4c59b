package export

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"kurabe/internal/logevents"
)

// EventMax is the most bytes of an event's message. The rest of a longer one is given up and counted.
const EventMax = logevents.MessageMax

// State is what a log says before the bytes that follow. Its zero value is that of its beginning.
type State struct {
	Last int64 `json:"last,omitempty"` // Unix milliseconds: time of the newest event, for events that name none
	// Cut says that what follows belongs to an event that was too long, up to the next event;
	// Lost are the bytes of it that were given up.
	Cut  bool  `json:"cut,omitempty"`
	Lost int64 `json:"lost,omitempty"`
	// InLine says that the bytes begin within a line.
	InLine bool `json:"inLine,omitempty"`
}

// End is what is known of the bytes after those that Split is given.
type End int

// The ends. More bytes may follow at once; a file rests when nothing was added to it for a while; a
// file is over when nothing will be.
const (
	unsettled End = iota
	More
	Rests
	Over
)

// Split makes events of the bytes of a log, which begin where state says, and returns how many bytes
// it has dealt with. It leaves the newest event, of which more lines may follow: the caller comes
// again with it and with what follows. The newest event of a file that rests is complete, unless
// a line without an end follows, which waits until the file is over. Two events of EventMax are the most that is
// left. A message is a part of data, where that is valid UTF-8; the time is 0 where the log has not told
// any yet.
func (f Format) Split(data []byte, end End, state *State, emit func(at int64, message []byte)) (done int) {
	at, time, before := 0, state.Last, continues
	for at < len(data) {
		length, whole := bytes.IndexByte(data[at:], '\n')+1, true
		if length == 0 {
			length, whole = len(data)-at, end == Over
			if !whole && length <= EventMax {
				break
			}
		}
		what, told := continues, int64(0)
		if !state.InLine {
			what, told = f.head(data[at:at+length], before)
		}
		if what != continues {
			if state.Cut {
				emit(state.Last, fmt.Appendf(nil, "[%d bytes of the event before were not exported: it was longer than %d bytes]", state.Lost, EventMax))
				state.Cut, state.Lost = false, 0
			} else {
				flush(data[done:at], time, emit)
			}
			done = at
			if told != 0 {
				state.Last = told
			}
			time = state.Last
		}
		at, before, state.InLine = at+length, what, !whole
		switch {
		case state.Cut:
			state.Lost, done = state.Lost+int64(length), at
		case at-done > EventMax:
			flush(data[done:done+EventMax], time, emit)
			state.Cut, state.Lost, done = true, int64(at-done-EventMax), at
		}
	}
	if end != More && at == len(data) && at > done {
		flush(data[done:at], time, emit)
		done = at
	}
	return done
}

// flush emits what is no empty line.
func flush(message []byte, time int64, emit func(int64, []byte)) {
	message = bytes.TrimSuffix(message, []byte{'\n'})
	if len(message) == 0 {
		return
	}
	if !utf8.Valid(message) {
		message = bytes.ToValidUTF8(message, []byte("\uFFFD"))
		if len(message) > EventMax {
			message = bytes.ToValidUTF8(message[:EventMax], nil)
		}
	}
	emit(time, message)
}
