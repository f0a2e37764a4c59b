package binlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The form of a binary log of version 4: Magic, then events of a header of
// headerBytes (time, type, server, length, end, flags), a body, and checksumBytes.
const (
	Magic         = "\xfebin"
	headerBytes   = 19
	checksumBytes = 4
	// EventBytesMax is the server's own bound: slave_max_allowed_packet.
	EventBytesMax = 1 << 30
	// formatBytesMax bounds the event that describes the others; it has some 250.
	formatBytesMax = 4096
)

// The types of events that are told apart.
const (
	queryEvent            = 2
	stopEvent             = 3
	rotateEvent           = 4
	formatEvent           = 15
	XIDEvent              = 16
	xaPrepareEvent        = 38
	checkpointEvent       = 161
	GTIDEvent             = 162
	GTIDListEvent         = 163
	startEncryptionEvent  = 164
	queryCompressedEvent  = 165
	InUseFlag             = 1 // of a file that its server has not closed
	checksumCRC32         = 1
	standaloneFlag        = 1 // of a group: one event follows, and no end
	flagsAt               = 17
	formatCreatedAt       = headerBytes + 2 + 50
	formatTypesAt         = headerBytes + 2 + 50 + 4 + 1
	formatHeaderBytes     = headerBytes
	queryPostHeaderBytes  = 13
	gtidFlagsAt           = 8 + 4
	checkpointNameBytes   = 4
	GTIDBodyBytesLeast    = gtidFlagsAt + 1
	rotateBodyBytesLeast  = 8
	eventNameBytesMax     = 512
	bodyBytesKept         = 64 << 10 // of an event that somebody looks into
	eventBufferBytes      = 256 << 10
	logPositionBytes      = 32 // the end of an event is kept modulo 2^32
	logPositionMask       = 1<<logPositionBytes - 1
	formatDescribedEvents = 171
)

// ErrTorn says that a file ends within an event.
var ErrTorn = errors.New("the file ends within an event")

// Event is one event of a file. body is without header and checksum, and cut at
// bodyBytesKept.
type Event struct {
	At, end int64 // in the file
	Kind    byte
	server  uint32
	seconds uint32 // since 1970, when its statement began
	flags   uint16
	body    []byte
}

// Reader reads a file from its beginning or from the end of an event on, and
// checks each event: length, place and checksum. What it reads goes into copyTo, an
// event at a time and whole, or not at all.
type Reader struct {
	Source io.ReaderAt
	At     int64 // of the next event
	Until  int64 // no event that ends after it is read
	CopyTo io.Writer
	buffer []byte
	// ahead was read from aheadAt on. A file has thousands of events a second, each
	// of them looked at four times.
	ahead   []byte
	aheadAt int64
}

// readAt reads what lies before until: from there on the file may still grow.
func (r *Reader) readAt(p []byte, at int64) error {
	if len(p) > eventBufferBytes/2 {
		_, err := r.Source.ReadAt(p, at)
		return torn(err)
	}
	if at < r.aheadAt || at+int64(len(p)) > r.aheadAt+int64(len(r.ahead)) {
		if r.ahead == nil {
			r.ahead = make([]byte, 0, eventBufferBytes)
		}
		n, err := r.Source.ReadAt(r.ahead[:max(int64(len(p)), min(eventBufferBytes, r.Until-at))], at)
		r.ahead, r.aheadAt = r.ahead[:n], at
		if n < len(p) {
			return torn(err)
		}
	}
	copy(p, r.ahead[at-r.aheadAt:])
	return nil
}

// ReadMagic begins a file.
func (r *Reader) ReadMagic() error {
	if r.Until < int64(len(Magic)) {
		return ErrTorn
	}
	magic := make([]byte, len(Magic))
	if err := r.readAt(magic, 0); err != nil {
		return err
	}
	if string(magic) != Magic {
		return errors.New("the file is no binary log")
	}
	r.At = int64(len(Magic))
	_, err := r.CopyTo.Write(magic)
	return err
}

func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTorn
	}
	return err
}

// Next reads one event; io.EOF at until, ErrTorn when until lies within one.
func (r *Reader) Next() (Event, error) {
	if r.At == r.Until {
		return Event{}, io.EOF
	}
	var raw [headerBytes]byte
	if r.Until-r.At < headerBytes {
		return Event{}, ErrTorn
	}
	if err := r.readAt(raw[:], r.At); err != nil {
		return Event{}, err
	}
	length := int64(binary.LittleEndian.Uint32(raw[9:]))
	e := Event{
		At: r.At, end: r.At + length, seconds: binary.LittleEndian.Uint32(raw[:]), Kind: raw[4],
		server: binary.LittleEndian.Uint32(raw[5:]), flags: binary.LittleEndian.Uint16(raw[flagsAt:]),
	}
	if length < headerBytes+checksumBytes || length > EventBytesMax {
		return e, fmt.Errorf("the event at %d has the invalid length %d", e.At, length)
	}
	if place := binary.LittleEndian.Uint32(raw[13:]); int64(place) != e.end&logPositionMask {
		return e, fmt.Errorf("the event at %d has the end position %d instead of %d", e.At, place, e.end)
	}
	if e.Kind == formatEvent && length > formatBytesMax {
		return e, fmt.Errorf("the description at %d has %d bytes", e.At, length)
	}
	if r.Until < e.end {
		return e, ErrTorn
	}
	if err := r.check(&e); err != nil {
		return e, err
	}
	if e.Kind == formatEvent {
		if err := e.checkFormat(); err != nil {
			return e, err
		}
	}
	if e.Kind == startEncryptionEvent {
		return e, fmt.Errorf("the log is encrypted after position %d", e.At)
	}
	r.At = e.end
	return e, r.write(e)
}

// check sums an event up. A long one is read in pieces, so it is read again to be
// copied.
func (r *Reader) check(e *Event) error {
	if r.buffer == nil {
		r.buffer = make([]byte, eventBufferBytes)
	}
	sum, at, last := uint32(0), e.At, e.end-checksumBytes
	for at < last {
		piece := r.buffer[:min(int64(len(r.buffer)), last-at)]
		if err := r.readAt(piece, at); err != nil {
			return err
		}
		if at == e.At {
			// The server takes the mark away when it closes the file, so the sum is
			// without it, and so is the copy: the same whenever it is made.
			if e.Kind == formatEvent {
				piece[flagsAt] &^= InUseFlag
			}
			e.body = append([]byte(nil), piece[headerBytes:min(len(piece), headerBytes+bodyBytesKept)]...)
		}
		sum = crc32.Update(sum, crc32.IEEETable, piece)
		at += int64(len(piece))
	}
	var raw [checksumBytes]byte
	if err := r.readAt(raw[:], last); err != nil {
		return err
	}
	if sum != binary.LittleEndian.Uint32(raw[:]) {
		return fmt.Errorf("the checksum of the event at %d is wrong", e.At)
	}
	return nil
}

func (r *Reader) write(e Event) error {
	if r.CopyTo == io.Discard {
		return nil
	}
	length := e.end - e.At
	if length > int64(len(r.buffer)) {
		_, err := io.Copy(r.CopyTo, bufio.NewReaderSize(io.NewSectionReader(r.Source, e.At, length), eventBufferBytes))
		return err
	}
	if err := r.readAt(r.buffer[:length], e.At); err != nil {
		return err
	}
	if e.Kind == formatEvent {
		r.buffer[flagsAt] &^= InUseFlag
	}
	_, err := r.CopyTo.Write(r.buffer[:length])
	return err
}

// checkFormat: what is read here is of version 4, of headers as we know them, and
// with checksums.
func (e Event) checkFormat() error {
	const version = 4
	algorithm := len(e.body) - 1 // before the checksum
	headerLength := formatTypesAt - headerBytes - 1
	if algorithm <= headerLength || binary.LittleEndian.Uint16(e.body) != version || e.body[headerLength] != formatHeaderBytes ||
		e.body[algorithm] != checksumCRC32 {
		return fmt.Errorf("the description at %d is not of version %d with checksums", e.At, version)
	}
	return nil
}

// startsServer says of a description that a server began with this file. What a
// crash left half before it was rolled back.
func (e Event) startsServer() bool {
	at := formatCreatedAt - headerBytes
	return e.Kind == formatEvent && len(e.body) >= at+4 && binary.LittleEndian.Uint32(e.body[at:]) != 0
}

// Ends says whether the file is complete with this event.
func (e Event) Ends() bool { return e.Kind == rotateEvent || e.Kind == stopEvent }
