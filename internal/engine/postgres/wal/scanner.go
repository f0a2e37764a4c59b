package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"kurabe/internal/volume"
)

// Scanner reads the records of a part of the log, as recovery will. It says
// beforehand where recovery has to stop: where the log that was given ends, or before
// the first transaction end that is too late. So the replay has a place to reach and
// not a time, and falling short of it is an error whatever the reason. PostgreSQL
// alone would, without a target, take a damaged record for the log's end.
//
// The form of pages and records, and of what is read of transactions, is the same in
// 13 to 18 (xlogrecord.h, xlog_internal.h, xact.h).
type Scanner struct {
	Dir      string
	Segments Segments
	Timeline uint32
	Past     Lineage // that led to the timeline, where more than one is read
	Limit    LSN     // nothing from here on counts
	pages    PageCheck

	file   *os.File
	opened LSN // where the open segment begins
	page   [PageBytes]byte
	loaded LSN // the place of page, 0 for none
}

const (
	recordHeaderBytes = 24
	recordCRCAt       = 20
	recordBytesMax    = 1 << 30 // XLogRecordMaxSize, about
	headBytes         = 64
)

var checksumTable = crc32.MakeTable(crc32.Castagnoli)

// ErrEnd is the end of the log that was given: all before it is whole.
var ErrEnd = errors.New("the log ends here")

func (s *Scanner) Close() {
	if s.file != nil {
		_ = s.file.Close() // It was read only.
	}
}

// load reads the page that begins at a place.
func (s *Scanner) load(at LSN) (pageHeader, error) {
	if s.loaded != at || at == 0 {
		begin := s.Segments.Begin(at)
		if s.file == nil || s.opened != begin {
			s.Close()
			var err error
			s.opened = begin
			name := s.Segments.Position(s.timelineAt(begin), begin).File
			s.file, err = volume.Open(filepath.Join(s.Dir, name))
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
func (s *Scanner) timelineAt(at LSN) uint32 {
	if len(s.Past) == 0 {
		return s.Timeline
	}
	return s.Past.At(s.Segments, at)
}

// First is where the first record begins that begins in the segment at a place, or in
// a later one when a long record fills it.
func (s *Scanner) First(at LSN) (LSN, error) {
	for {
		h, err := s.load(at)
		if err != nil {
			return 0, err
		}
		begin := s.Segments.SkipHeader(at)
		if h.flags&pageContinues == 0 {
			return begin, nil
		}
		begin += aligned(LSN(h.remaining))
		if begin < at+PageBytes {
			return begin, nil
		}
		at += PageBytes
		if begin == at && at < s.Limit {
			return s.Segments.SkipHeader(at), nil
		}
		if at >= s.Limit {
			return s.Segments.SkipHeader(at), nil
		}
	}
}

// aligned: records begin at multiples of eight.
func aligned(n LSN) LSN { return (n + 7) &^ 7 }

// Read returns the record at a place, ErrEnd when the log ends there, or what is
// wrong with it. A record that the server gave up after a crash has resource
// Abandoned, and the next one begins on the page that says so.
func (s *Scanner) Read(at LSN) (Record, error) {
	if at >= s.Limit {
		return Record{}, ErrEnd
	}
	if _, err := s.load(at - at%PageBytes); err != nil {
		return Record{}, fmt.Errorf("record at %s: %w", at, err)
	}
	length := binary.LittleEndian.Uint32(s.page[at%PageBytes:])
	if length < recordHeaderBytes || length > recordBytesMax {
		return Record{}, fmt.Errorf("record at %s has a length of %d", at, length)
	}
	r, err := s.gather(at, LSN(length))
	if err != nil && !errors.Is(err, ErrEnd) {
		return Record{}, fmt.Errorf("record at %s: %w", at, err)
	}
	return r, err
}

// Abandoned is no resource manager of the server's.
const Abandoned = 255

// gather reads a record piece by piece. Its checksum is of what follows the header,
// and then of the header.
func (s *Scanner) gather(begin, length LSN) (Record, error) {
	r := Record{Begin: begin}
	var header [recordHeaderBytes]byte
	var got LSN
	sum, at := uint32(0), begin
	for got < length {
		if at%PageBytes == 0 {
			if at >= s.Limit {
				// The server makes pages durable before the record's end is: nobody
				// was told of it.
				return r, ErrEnd
			}
			h, err := s.load(at)
			if err != nil {
				return r, err
			}
			if h.flags&pageOverwritten != 0 {
				r.Next, r.Resource = s.Segments.SkipHeader(at), Abandoned
				return r, nil
			}
			if h.flags&pageContinues == 0 || LSN(h.remaining) != length-got {
				return r, fmt.Errorf("the page at %s does not go on with it", at)
			}
			at = s.Segments.SkipHeader(at)
		}
		piece := s.page[at%PageBytes:]
		piece = piece[:min(LSN(len(piece)), length-got)]
		at += LSN(len(piece))
		if got < recordHeaderBytes {
			n := copy(header[got:], piece)
			got, piece = got+LSN(n), piece[n:]
		}
		sum = crc32.Update(sum, checksumTable, piece)
		if room := headBytes - len(r.head); room > 0 {
			r.head = append(r.head, piece[:min(room, len(piece))]...)
		}
		got += LSN(len(piece))
	}
	if at > s.Limit {
		return r, fmt.Errorf("it goes on past %s", s.Limit)
	}
	if crc32.Update(sum, checksumTable, header[:recordCRCAt]) != binary.LittleEndian.Uint32(header[recordCRCAt:]) {
		return r, errors.New("its checksum is wrong")
	}
	r.Info, r.Resource = header[16], header[17]
	r.End = aligned(at)
	if r.ends() {
		r.End = s.Segments.Begin(at-1) + LSN(s.Segments.Bytes)
	}
	r.Next = s.Segments.SkipHeader(r.End)
	return r, nil
}
