package mariadb

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The form of a binary log of version 4: logMagic, then events of a header of
// headerBytes (time, type, server, length, end, flags), a body, and checksumBytes.
const (
	logMagic      = "\xfebin"
	headerBytes   = 19
	checksumBytes = 4
	// eventBytesMax is the server's own bound: slave_max_allowed_packet.
	eventBytesMax = 1 << 30
	// formatBytesMax bounds the event that describes the others; it has some 250.
	formatBytesMax = 4096
)

// The types of events that are told apart.
const (
	queryEvent            = 2
	stopEvent             = 3
	rotateEvent           = 4
	formatEvent           = 15
	xidEvent              = 16
	xaPrepareEvent        = 38
	checkpointEvent       = 161
	gtidEvent             = 162
	gtidListEvent         = 163
	startEncryptionEvent  = 164
	queryCompressedEvent  = 165
	inUseFlag             = 1 // of a file that its server has not closed
	checksumCRC32         = 1
	standaloneFlag        = 1 // of a group: one event follows, and no end
	flagsAt               = 17
	formatCreatedAt       = headerBytes + 2 + 50
	formatTypesAt         = headerBytes + 2 + 50 + 4 + 1
	formatHeaderBytes     = headerBytes
	queryPostHeaderBytes  = 13
	gtidFlagsAt           = 8 + 4
	checkpointNameBytes   = 4
	gtidBodyBytesLeast    = gtidFlagsAt + 1
	rotateBodyBytesLeast  = 8
	eventNameBytesMax     = 512
	bodyBytesKept         = 64 << 10 // of an event that somebody looks into
	eventBufferBytes      = 256 << 10
	logPositionBytes      = 32 // the end of an event is kept modulo 2^32
	logPositionMask       = 1<<logPositionBytes - 1
	formatDescribedEvents = 171
)

// errTorn says that a file ends within an event.
var errTorn = errors.New("the file ends within an event")

// event is one event of a file. body is without header and checksum, and cut at
// bodyBytesKept.
type event struct {
	at, end int64 // in the file
	kind    byte
	server  uint32
	seconds uint32 // since 1970, when its statement began
	flags   uint16
	body    []byte
}

// eventReader reads a file from its beginning or from the end of an event on, and
// checks each event: length, place and checksum. What it reads goes into copyTo, an
// event at a time and whole, or not at all.
type eventReader struct {
	source io.ReaderAt
	at     int64 // of the next event
	until  int64 // no event that ends after it is read
	copyTo io.Writer
	buffer []byte
	// ahead was read from aheadAt on. A file has thousands of events a second, each
	// of them looked at four times.
	ahead   []byte
	aheadAt int64
}

// readAt reads what lies before until: from there on the file may still grow.
func (r *eventReader) readAt(p []byte, at int64) error {
	if len(p) > eventBufferBytes/2 {
		_, err := r.source.ReadAt(p, at)
		return torn(err)
	}
	if at < r.aheadAt || at+int64(len(p)) > r.aheadAt+int64(len(r.ahead)) {
		if r.ahead == nil {
			r.ahead = make([]byte, 0, eventBufferBytes)
		}
		n, err := r.source.ReadAt(r.ahead[:max(int64(len(p)), min(eventBufferBytes, r.until-at))], at)
		r.ahead, r.aheadAt = r.ahead[:n], at
		if n < len(p) {
			return torn(err)
		}
	}
	copy(p, r.ahead[at-r.aheadAt:])
	return nil
}

// readMagic begins a file.
func (r *eventReader) readMagic() error {
	if r.until < int64(len(logMagic)) {
		return errTorn
	}
	magic := make([]byte, len(logMagic))
	if err := r.readAt(magic, 0); err != nil {
		return err
	}
	if string(magic) != logMagic {
		return errors.New("the file is no binary log")
	}
	r.at = int64(len(logMagic))
	_, err := r.copyTo.Write(magic)
	return err
}

func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTorn
	}
	return err
}

// next reads one event; io.EOF at until, errTorn when until lies within one.
func (r *eventReader) next() (event, error) {
	if r.at == r.until {
		return event{}, io.EOF
	}
	var raw [headerBytes]byte
	if r.until-r.at < headerBytes {
		return event{}, errTorn
	}
	if err := r.readAt(raw[:], r.at); err != nil {
		return event{}, err
	}
	length := int64(binary.LittleEndian.Uint32(raw[9:]))
	e := event{
		at: r.at, end: r.at + length, seconds: binary.LittleEndian.Uint32(raw[:]), kind: raw[4],
		server: binary.LittleEndian.Uint32(raw[5:]), flags: binary.LittleEndian.Uint16(raw[flagsAt:]),
	}
	if length < headerBytes+checksumBytes || length > eventBytesMax {
		return e, fmt.Errorf("the event at %d says that it has %d bytes", e.at, length)
	}
	if place := binary.LittleEndian.Uint32(raw[13:]); int64(place) != e.end&logPositionMask {
		return e, fmt.Errorf("the event at %d says that it ends at %d, not at %d", e.at, place, e.end)
	}
	if e.kind == formatEvent && length > formatBytesMax {
		return e, fmt.Errorf("the description at %d has %d bytes", e.at, length)
	}
	if r.until < e.end {
		return e, errTorn
	}
	if err := r.check(&e); err != nil {
		return e, err
	}
	if e.kind == formatEvent {
		if err := e.checkFormat(); err != nil {
			return e, err
		}
	}
	if e.kind == startEncryptionEvent {
		return e, fmt.Errorf("what follows %d is encrypted", e.at)
	}
	r.at = e.end
	return e, r.write(e)
}

// check sums an event up. A long one is read in pieces, so it is read again to be
// copied.
func (r *eventReader) check(e *event) error {
	if r.buffer == nil {
		r.buffer = make([]byte, eventBufferBytes)
	}
	sum, at, last := uint32(0), e.at, e.end-checksumBytes
	for at < last {
		piece := r.buffer[:min(int64(len(r.buffer)), last-at)]
		if err := r.readAt(piece, at); err != nil {
			return err
		}
		if at == e.at {
			// The server takes the mark away when it closes the file, so the sum is
			// without it, and so is the copy: the same whenever it is made.
			if e.kind == formatEvent {
				piece[flagsAt] &^= inUseFlag
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
		return fmt.Errorf("the checksum of the event at %d is wrong", e.at)
	}
	return nil
}

func (r *eventReader) write(e event) error {
	if r.copyTo == io.Discard {
		return nil
	}
	length := e.end - e.at
	if length > int64(len(r.buffer)) {
		_, err := io.Copy(r.copyTo, bufio.NewReaderSize(io.NewSectionReader(r.source, e.at, length), eventBufferBytes))
		return err
	}
	if err := r.readAt(r.buffer[:length], e.at); err != nil {
		return err
	}
	if e.kind == formatEvent {
		r.buffer[flagsAt] &^= inUseFlag
	}
	_, err := r.copyTo.Write(r.buffer[:length])
	return err
}

// checkFormat: what is read here is of version 4, of headers as we know them, and
// with checksums.
func (e event) checkFormat() error {
	const version = 4
	algorithm := len(e.body) - 1 // before the checksum
	headerLength := formatTypesAt - headerBytes - 1
	if algorithm <= headerLength || binary.LittleEndian.Uint16(e.body) != version || e.body[headerLength] != formatHeaderBytes ||
		e.body[algorithm] != checksumCRC32 {
		return fmt.Errorf("the description at %d is not of version %d with checksums", e.at, version)
	}
	return nil
}

// startsServer says of a description that a server began with this file. What a
// crash left half before it was rolled back.
func (e event) startsServer() bool {
	at := formatCreatedAt - headerBytes
	return e.kind == formatEvent && len(e.body) >= at+4 && binary.LittleEndian.Uint32(e.body[at:]) != 0
}

// ends says whether the file is complete with this event.
func (e event) ends() bool { return e.kind == rotateEvent || e.kind == stopEvent }
