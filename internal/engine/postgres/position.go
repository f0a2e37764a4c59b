package postgres

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kurabe"
)

// lsn is a place in the server's log: how many bytes lie before it since the
// cluster was made.
type lsn uint64

// parseLSN reads the server's notation, as 1/A0000028.
func parseLSN(text string) (lsn, error) {
	high, low, ok := strings.Cut(strings.TrimSpace(text), "/")
	h, highErr := strconv.ParseUint(high, 16, 32)
	l, lowErr := strconv.ParseUint(low, 16, 32)
	if !ok || highErr != nil || lowErr != nil {
		return 0, fmt.Errorf("invalid WAL position %q", text)
	}
	return lsn(h<<32 | l), nil
}

func (l lsn) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint32(l)) }

const (
	pageBytes       = 8192 // XLOG_BLCKSZ of every package
	segmentBytesMin = 1 << 20
	segmentBytesMax = 1 << 30
	pageHeaderBytes = 24 // XLogPageHeaderData; a segment's first page has the long one
	walHeaderBytes  = 40 // XLogLongPageHeaderData
	segmentForm     = "%08X%08X%08X"
)

// walDir is the folder of the segments in a server's data.
const walDir = "pg_wal"

// walSegment is the form of a segment's name.
var walSegment = regexp.MustCompile(`^[0-9A-F]{24}$`)

// segments tells names of segments and places in the log apart: a segment's name is
// its timeline and its number, and how many of them go into 4 GiB.
type segments struct{ bytes int64 }

func newSegments(bytes int64) (segments, error) {
	if bytes < segmentBytesMin || bytes > segmentBytesMax || bytes&(bytes-1) != 0 {
		return segments{}, fmt.Errorf("a log segment of %d bytes", bytes)
	}
	return segments{bytes}, nil
}

// position is never the end of a segment but the beginning of the next one, which
// need not exist yet.
func (s segments) position(timeline uint32, at lsn) kurabe.LogPosition {
	number, each := uint64(at)/uint64(s.bytes), uint64(1<<32)/uint64(s.bytes)
	return kurabe.LogPosition{
		File: fmt.Sprintf(segmentForm, timeline, number/each, number%each), Offset: int64(uint64(at) % uint64(s.bytes)),
	}
}

// positionOf is the beginning of a segment.
func positionOf(name string) kurabe.LogPosition { return kurabe.LogPosition{File: name} }

// place is the reverse of position. It also takes the end of a segment, as somebody has
// it who counts the bytes of a whole file.
func (s segments) place(p kurabe.LogPosition) (timeline uint32, at lsn, err error) {
	each := uint64(1<<32) / uint64(s.bytes)
	if !walSegment.MatchString(p.File) || p.Offset < 0 || p.Offset > s.bytes {
		return 0, 0, fmt.Errorf("invalid WAL position %s for segments of %d bytes", p, s.bytes)
	}
	var part [3]uint64
	for n := range part {
		// Eight hexadecimal digits: the name's form has been checked.
		part[n], _ = strconv.ParseUint(p.File[8*n:8*n+8], 16, 32)
	}
	if part[2] >= each || part[0] == 0 {
		return 0, 0, fmt.Errorf("invalid WAL position %s for segments of %d bytes", p, s.bytes)
	}
	return uint32(part[0]), lsn((part[1]*each+part[2])*uint64(s.bytes)) + lsn(p.Offset), nil
}

// begin is the beginning of the segment that a place is in.
func (s segments) begin(at lsn) lsn { return at - at%lsn(s.bytes) }

// skipHeader is where the next record begins when the one before ended at that
// place: pages begin with a header, and a segment's first page with a longer one.
func (s segments) skipHeader(at lsn) lsn {
	switch {
	case at%lsn(s.bytes) == 0:
		return at + walHeaderBytes
	case at%pageBytes == 0:
		return at + pageHeaderBytes
	}
	return at
}

// dropHeader is the reverse of skipHeader: where the record before the next one ended. The
// server names the latter when it is asked how far it has written, and no follower can
// confirm a header that is not written yet.
func (s segments) dropHeader(next lsn) lsn {
	switch {
	case next%lsn(s.bytes) == walHeaderBytes:
		return next - walHeaderBytes
	case next%pageBytes == pageHeaderBytes:
		return next - pageHeaderBytes
	}
	return next
}
