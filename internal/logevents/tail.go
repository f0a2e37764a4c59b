package logevents

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
)

// A frame is the length of its body and a checksum of that, both of four bytes, and the body, which
// begins with its kind.
const (
	frameHead = 8
	// frameMax bounds a body: a batch of 1 MiB of messages (PutLogEvents' bound) and what an
	// exporter stores at once.
	frameMax = 64 << 20

	kindHeader = 'H' // the number of the first event, the mark
	kindEvents = 'E' // events, the mark
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// tail is the file of a stream's newest events. The events themselves are in the file only.
type tail struct {
	path string
	file *os.File // nil: closed

	first int64 // the number of the first event
	sum   summary
	mark  []byte
	size  int64 // of the file
	// broken: what the file holds is not known, since a write or its undoing failed. It is read
	// anew before anything is added.
	broken bool
}

// summary is what is known of some events.
type summary struct {
	count, bytes       int64
	min, max, ingested int64 // times; ingested is the latest
}

func (s *summary) add(e Event) {
	if s.count == 0 {
		s.min, s.max, s.ingested = e.Time, e.Time, e.Ingested
	}
	s.count++
	s.bytes += int64(len(e.Message))
	s.min, s.max, s.ingested = min(s.min, e.Time), max(s.max, e.Time), max(s.ingested, e.Ingested)
}

func (s *summary) merge(o summary) {
	switch {
	case o.count == 0:
	case s.count == 0:
		*s = o
	default:
		s.min, s.max, s.ingested = min(s.min, o.min), max(s.max, o.max), max(s.ingested, o.ingested)
		s.count, s.bytes = s.count+o.count, s.bytes+o.bytes
	}
}

// seal finishes a frame whose body begins at frameHead.
func seal(frame []byte) []byte {
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-frameHead))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(frame[frameHead:], castagnoli))
	return frame
}

// headerFrame begins a tail.
func headerFrame(first int64, mark []byte) []byte {
	frame := append(make([]byte, frameHead, frameHead+16+len(mark)), kindHeader)
	return seal(append(binary.AppendVarint(frame, first), mark...))
}

// eventsFrame is that of some events; mark nil leaves the one before.
func eventsFrame(events []Event, mark []byte) []byte {
	size := frameHead + 32 + len(mark)
	for _, e := range events {
		size += len(e.Message) + 16
	}
	frame := append(make([]byte, frameHead, size), kindEvents)
	frame = binary.AppendUvarint(frame, uint64(len(events)))
	var before Event
	for _, e := range events {
		frame = binary.AppendVarint(frame, e.Time-before.Time)
		frame = binary.AppendVarint(frame, e.Ingested-e.Time)
		frame = binary.AppendUvarint(frame, uint64(len(e.Message)))
		frame = append(frame, e.Message...)
		before = e
	}
	if mark != nil {
		frame = append(append(frame, 1), mark...)
	}
	return seal(frame)
}

var errFrame = errors.New("a frame is damaged")

// cursor reads varints and bytes of a body; its first fault stays.
type cursor struct {
	data []byte
	bad  bool
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.data)
	if n <= 0 {
		c.bad, n = true, len(c.data)
	}
	c.data = c.data[n:]
	return v
}

func (c *cursor) varint() int64 {
	v, n := binary.Varint(c.data)
	if n <= 0 {
		c.bad, n = true, len(c.data)
	}
	c.data = c.data[n:]
	return v
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.data)) {
		c.bad, n = true, uint64(len(c.data))
	}
	out := c.data[:n]
	c.data = c.data[n:]
	return out
}

// readEvents calls each of the events of a frame's body, whose messages lie in it, and returns the
// mark, nil for none.
func readEvents(body []byte, each func(Event)) (mark []byte, err error) {
	c := cursor{data: body}
	count := c.uvarint()
	if count > uint64(len(body)) {
		return nil, errFrame
	}
	var before int64
	for range count {
		var e Event
		e.Time = before + c.varint()
		e.Ingested = e.Time + c.varint()
		size := c.uvarint()
		if size > MessageMax {
			return nil, errFrame
		}
		e.Message = c.take(size)
		if c.bad {
			return nil, errFrame
		}
		before = e.Time
		each(e)
	}
	if len(c.data) == 0 {
		return nil, nil
	}
	if c.data[0] != 1 || len(c.data)-1 > MarkMax {
		return nil, errFrame
	}
	return c.data[1:], nil
}

// readTail calls each with the events of a tail, and returns the tail as it is up to the first
// frame that is damaged or not whole, whose error it returns.
func readTail(data []byte, each func(Event)) (t tail, err error) {
	t.first = 1
	for len(data) > 0 {
		if len(data) < frameHead {
			return t, io.ErrUnexpectedEOF
		}
		size := int64(binary.LittleEndian.Uint32(data))
		if size == 0 || size > frameMax {
			return t, errFrame
		}
		if int64(len(data)) < frameHead+size {
			return t, io.ErrUnexpectedEOF
		}
		body := data[frameHead : frameHead+size]
		if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(data[4:]) {
			return t, errFrame
		}
		if err := t.take(body, each); err != nil {
			return t, err
		}
		t.size += frameHead + size
		data = data[frameHead+size:]
	}
	return t, nil
}

// take adds a frame's body.
func (t *tail) take(body []byte, each func(Event)) error {
	switch kind, rest := body[0], body[1:]; {
	case kind == kindHeader && t.size == 0:
		c := cursor{data: rest}
		t.first = c.varint()
		if c.bad || t.first < 1 || len(c.data) > MarkMax {
			return errFrame
		}
		t.mark = append([]byte(nil), c.data...)
	case kind == kindEvents && t.size > 0:
		var list []Event
		mark, err := readEvents(rest, func(e Event) { list = append(list, e) })
		if err != nil {
			return err
		}
		for _, e := range list {
			t.sum.add(e)
			each(e)
		}
		if mark != nil {
			t.mark = append([]byte(nil), mark...)
		}
	default:
		return errFrame
	}
	return nil
}

// openTail reads a tail. What is damaged of it is cut off, and said with the number of its bytes.
func openTail(path string) (t tail, lost int64, why error, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return tail{path: path, first: 1}, 0, nil, nil
	}
	if err != nil {
		return t, 0, nil, err
	}
	t, why = readTail(data, func(Event) {})
	t.path = path
	if lost = int64(len(data)) - t.size; lost > 0 {
		err = os.Truncate(path, t.size)
	}
	return t, lost, why, err
}

// write adds a frame and returns with what is to be synced. What cannot be written whole is undone.
func (t *tail) write(frame []byte) (err error) {
	if t.file == nil {
		if t.file, err = os.OpenFile(t.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return err
		}
	}
	if _, err = t.file.WriteAt(frame, t.size); err != nil {
		if undo := t.file.Truncate(t.size); undo != nil {
			t.broken = true
		}
		return err
	}
	t.size += int64(len(frame))
	return nil
}

func (t *tail) close() {
	if t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}

// events reads the events of a tail into a block. Bytes beyond size are being written.
func (t tail) events(b *Block) error {
	b.reset(t.first)
	if t.sum.count == 0 {
		return nil
	}
	data, err := os.ReadFile(t.path)
	if err != nil {
		return err
	}
	read, err := readTail(data[:min(int64(len(data)), t.size)], b.add)
	if err == nil && (read.first != t.first || read.sum.count != t.sum.count) {
		err = fmt.Errorf("the tail has events %d to %d, and not those from %d: %w", read.first, read.first+read.sum.count-1, t.first, errChanged)
	}
	return err
}
