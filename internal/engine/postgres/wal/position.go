package wal

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kurabe"
)

// LSN is a place in the server's log: how many bytes lie before it since the
// cluster was made.
type LSN uint64

// ParseLSN reads the server's notation, as 1/A0000028.
func ParseLSN(text string) (LSN, error) {
	high, low, ok := strings.Cut(strings.TrimSpace(text), "/")
	h, highErr := strconv.ParseUint(high, 16, 32)
	l, lowErr := strconv.ParseUint(low, 16, 32)
	if !ok || highErr != nil || lowErr != nil {
		return 0, fmt.Errorf("invalid WAL position %q", text)
	}
	return LSN(h<<32 | l), nil
}

func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint32(l)) }

const (
	PageBytes          = 8192 // XLOG_BLCKSZ of every package
	segmentBytesMin    = 1 << 20
	SegmentBytesMax    = 1 << 30
	pageHeaderBytes    = 24 // XLogPageHeaderData; a segment's first page has the long one
	SegmentHeaderBytes = 40 // XLogLongPageHeaderData
	segmentForm        = "%08X%08X%08X"
)

// Dir is the folder of the segments in a server's data.
const Dir = "pg_wal"

// SegmentName is the form of a segment's name.
var SegmentName = regexp.MustCompile(`^[0-9A-F]{24}$`)

// Segments tells names of segments and places in the log apart: a segment's name is
// its timeline and its number, and how many of them go into 4 GiB.
type Segments struct{ Bytes int64 }

func NewSegments(bytes int64) (Segments, error) {
	if bytes < segmentBytesMin || bytes > SegmentBytesMax || bytes&(bytes-1) != 0 {
		return Segments{}, fmt.Errorf("a log segment of %d bytes", bytes)
	}
	return Segments{bytes}, nil
}

// Position is never the end of a segment but the beginning of the next one, which
// need not exist yet.
func (s Segments) Position(timeline uint32, at LSN) kurabe.LogPosition {
	number, each := uint64(at)/uint64(s.Bytes), uint64(1<<32)/uint64(s.Bytes)
	return kurabe.LogPosition{
		File: fmt.Sprintf(segmentForm, timeline, number/each, number%each), Offset: int64(uint64(at) % uint64(s.Bytes)),
	}
}

// PositionOf is the beginning of a segment.
func PositionOf(name string) kurabe.LogPosition { return kurabe.LogPosition{File: name} }

// Place is the reverse of position. It also takes the end of a segment, as somebody has
// it who counts the bytes of a whole file.
func (s Segments) Place(p kurabe.LogPosition) (timeline uint32, at LSN, err error) {
	each := uint64(1<<32) / uint64(s.Bytes)
	if !SegmentName.MatchString(p.File) || p.Offset < 0 || p.Offset > s.Bytes {
		return 0, 0, fmt.Errorf("invalid WAL position %s for segments of %d bytes", p, s.Bytes)
	}
	var part [3]uint64
	for n := range part {
		// Eight hexadecimal digits: the name's form has been checked.
		part[n], _ = strconv.ParseUint(p.File[8*n:8*n+8], 16, 32)
	}
	if part[2] >= each || part[0] == 0 {
		return 0, 0, fmt.Errorf("invalid WAL position %s for segments of %d bytes", p, s.Bytes)
	}
	return uint32(part[0]), LSN((part[1]*each+part[2])*uint64(s.Bytes)) + LSN(p.Offset), nil
}

// Begin is the beginning of the segment that a place is in.
func (s Segments) Begin(at LSN) LSN { return at - at%LSN(s.Bytes) }

// SkipHeader is where the next record begins when the one before ended at that
// place: pages begin with a header, and a segment's first page with a longer one.
func (s Segments) SkipHeader(at LSN) LSN {
	switch {
	case at%LSN(s.Bytes) == 0:
		return at + SegmentHeaderBytes
	case at%PageBytes == 0:
		return at + pageHeaderBytes
	}
	return at
}

// DropHeader is the reverse of skipHeader: where the record before the next one ended. The
// server names the latter when it is asked how far it has written, and no follower can
// confirm a header that is not written yet.
func (s Segments) DropHeader(next LSN) LSN {
	switch {
	case next%LSN(s.Bytes) == SegmentHeaderBytes:
		return next - SegmentHeaderBytes
	case next%PageBytes == pageHeaderBytes:
		return next - pageHeaderBytes
	}
	return next
}
