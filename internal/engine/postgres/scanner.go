package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"kurabe/internal/volume"
)

// A scanner reads the records of a part of the log, as recovery will. It says
// beforehand where recovery has to stop: where the log that was given ends, or before
// the first transaction end that is too late. So the replay has a place to reach and
// not a time, and falling short of it is an error whatever the reason. PostgreSQL
// alone would, without a target, take a damaged record for the log's end.
//
// The form of pages and records, and of what is read of transactions, is the same in
// 13 to 18 (xlogrecord.h, xlog_internal.h, xact.h).
type scanner struct {
	dir      string
	segments segments
	timeline uint32
	past     lineage // that led to the timeline, where more than one is read
	limit    lsn     // nothing from here on counts
	pages    pageCheck

	file   *os.File
	opened lsn // where the open segment begins
	page   [pageBytes]byte
	loaded lsn // the place of page, 0 for none
}

// record is what is kept of one record of the log.
type record struct {
	begin, end lsn
	next       lsn // where the one that follows begins
	resource   byte
	info       byte
	head       []byte // its first bytes after the header, at most headBytes
}

const (
	recordHeaderBytes = 24
	recordCRCAt       = 20
	recordBytesMax    = 1 << 30 // XLogRecordMaxSize, about
	headBytes         = 64
)

var checksumTable = crc32.MakeTable(crc32.Castagnoli)

// errLogEnds is the end of the log that was given: all before it is whole.
var errLogEnds = errors.New("the log ends here")

func (s *scanner) close() {
	if s.file != nil {
		_ = s.file.Close() // It was read only.
	}
}

// load reads the page that begins at a place.
func (s *scanner) load(at lsn) (pageHeader, error) {
	if s.loaded != at || at == 0 {
		begin := s.segments.begin(at)
		if s.file == nil || s.opened != begin {
			s.close()
			var err error
			s.opened = begin
			name := s.segments.position(s.timelineAt(begin), begin).File
			s.file, err = volume.Open(filepath.Join(s.dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				return pageHeader{}, fmt.Errorf("segment %s is missing", name)
			}
			if err != nil {
				return pageHeader{}, err
			}
		}
		s.loaded = 0
		// A segment that is cut at the log's end, and not filled up yet, ends within a page.
		n, err := s.file.ReadAt(s.page[:], int64(at-begin))
		if errors.Is(err, io.EOF) && n >= pageHeaderBytes {
			clear(s.page[n:])
			err = nil
		}
		if err != nil {
			return pageHeader{}, err
		}
		s.loaded = at
	}
	return s.pages.check(s.page[:], s.timelineAt(at), at)
}

// timelineAt is the timeline whose segment has a place.
func (s *scanner) timelineAt(at lsn) uint32 {
	if len(s.past) == 0 {
		return s.timeline
	}
	return s.past.at(s.segments, at)
}

// first is where the first record begins that begins in the segment at a place, or in
// a later one when a long record fills it.
func (s *scanner) first(at lsn) (lsn, error) {
	for {
		h, err := s.load(at)
		if err != nil {
			return 0, err
		}
		begin := s.segments.skipHeader(at)
		if h.flags&pageContinues == 0 {
			return begin, nil
		}
		begin += aligned(lsn(h.remaining))
		if begin < at+pageBytes {
			return begin, nil
		}
		at += pageBytes
		if begin == at && at < s.limit {
			return s.segments.skipHeader(at), nil
		}
		if at >= s.limit {
			return s.segments.skipHeader(at), nil
		}
	}
}

// aligned: records begin at multiples of eight.
func aligned(n lsn) lsn { return (n + 7) &^ 7 }

// read returns the record at a place, errLogEnds when the log ends there, or what is
// wrong with it. A record that the server gave up after a crash has resource
// abandoned, and the next one begins on the page that says so.
func (s *scanner) read(at lsn) (record, error) {
	if at >= s.limit {
		return record{}, errLogEnds
	}
	if _, err := s.load(at - at%pageBytes); err != nil {
		return record{}, fmt.Errorf("record at %s: %w", at, err)
	}
	length := binary.LittleEndian.Uint32(s.page[at%pageBytes:])
	if length < recordHeaderBytes || length > recordBytesMax {
		return record{}, fmt.Errorf("record at %s has a length of %d", at, length)
	}
	r, err := s.gather(at, lsn(length))
	if err != nil && !errors.Is(err, errLogEnds) {
		return record{}, fmt.Errorf("record at %s: %w", at, err)
	}
	return r, err
}

// abandoned is no resource manager of the server's.
const abandoned = 255

// gather reads a record piece by piece. Its checksum is of what follows the header,
// and then of the header.
func (s *scanner) gather(begin, length lsn) (record, error) {
	r := record{begin: begin}
	var header [recordHeaderBytes]byte
	var got lsn
	sum, at := uint32(0), begin
	for got < length {
		if at%pageBytes == 0 {
			if at >= s.limit {
				// The server makes pages durable before the record's end is: nobody
				// was told of it.
				return r, errLogEnds
			}
			h, err := s.load(at)
			if err != nil {
				return r, err
			}
			if h.flags&pageOverwritten != 0 {
				r.next, r.resource = s.segments.skipHeader(at), abandoned
				return r, nil
			}
			if h.flags&pageContinues == 0 || lsn(h.remaining) != length-got {
				return r, fmt.Errorf("the page at %s does not go on with it", at)
			}
			at = s.segments.skipHeader(at)
		}
		piece := s.page[at%pageBytes:]
		piece = piece[:min(lsn(len(piece)), length-got)]
		at += lsn(len(piece))
		if got < recordHeaderBytes {
			n := copy(header[got:], piece)
			got, piece = got+lsn(n), piece[n:]
		}
		sum = crc32.Update(sum, checksumTable, piece)
		if room := headBytes - len(r.head); room > 0 {
			r.head = append(r.head, piece[:min(room, len(piece))]...)
		}
		got += lsn(len(piece))
	}
	if at > s.limit {
		return r, fmt.Errorf("it goes on past %s", s.limit)
	}
	if crc32.Update(sum, checksumTable, header[:recordCRCAt]) != binary.LittleEndian.Uint32(header[recordCRCAt:]) {
		return r, errors.New("its checksum is wrong")
	}
	r.info, r.resource = header[16], header[17]
	r.end = aligned(at)
	if r.ends() {
		r.end = s.segments.begin(at-1) + lsn(s.segments.bytes)
	}
	r.next = s.segments.skipHeader(r.end)
	return r, nil
}

// The resource managers and kinds of record that are looked into.
const (
	resourceXLOG      = 0
	xlogShutdown      = 0x00 // a checkpoint
	xlogSwitch        = 0x40
	xlogEndOfRecovery = 0x90
	xlogMask          = 0xF0
	resourceXact      = 1
	xactMask          = 0x70
	xactCommit        = 0x00
	xactPrepare       = 0x10
	xactAbort         = 0x20
	xactCommitTwo     = 0x30
	xactAbortTwo      = 0x40
	preparedAtOffset  = 16 // in xl_xact_prepare
)

// ends: the rest of the segment after this record is empty.
func (r record) ends() bool { return r.resource == resourceXLOG && r.info&xlogMask == xlogSwitch }

// postgresEpoch is the server's year 0.
var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// transactionEnd is when a record's transaction was committed, rolled back or
// prepared, in microseconds; false when the record is something else.
func (r record) transactionEnd() (time.Time, bool, error) {
	if r.resource != resourceXact {
		return time.Time{}, false, nil
	}
	offset := 0
	switch r.info & xactMask {
	case xactCommit, xactAbort, xactCommitTwo, xactAbortTwo:
	case xactPrepare:
		offset = preparedAtOffset
	default:
		return time.Time{}, false, nil
	}
	data, err := r.mainData()
	if err != nil || len(data) < offset+8 {
		return time.Time{}, false, fmt.Errorf("transaction end at %s cannot be read", r.begin)
	}
	micros := int64(binary.LittleEndian.Uint64(data[offset:]))
	return postgresEpoch.Add(time.Duration(micros/1e6)*time.Second + time.Duration(micros%1e6)*time.Microsecond), true, nil
}

// mainData skips what may precede a record's own data when it is of no block.
func (r record) mainData() ([]byte, error) {
	const (
		idShort, idLong, idOrigin, idTopLevel     = 255, 254, 253, 252
		skipShort, skipLong, skipOrigin, skipTopX = 2, 5, 3, 5
	)
	for data := r.head; len(data) > 0; {
		skip := 0
		switch data[0] {
		case idShort:
			skip = skipShort
		case idLong:
			skip = skipLong
		case idOrigin:
			skip = skipOrigin
		case idTopLevel:
			skip = skipTopX
		}
		if skip == 0 || skip > len(data) {
			break
		}
		last := data[0] >= idLong
		if data = data[skip:]; last {
			return data, nil
		}
	}
	return nil, errors.New("the record has no data of its own")
}
