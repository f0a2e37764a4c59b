package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Flags of a page's header.
const (
	pageContinues   = 0x0001 // XLP_FIRST_IS_CONTRECORD: it begins inside of a record
	pageOverwritten = 0x0008 // XLP_FIRST_IS_OVERWRITE_CONTRECORD: the record that it should go on with was given up
)

// pageHeader begins each 8 KiB of the log.
type pageHeader struct {
	magic     uint16 // one for each major version
	flags     uint16
	timeline  uint32
	at        LSN
	remaining uint32 // bytes of the record that the page begins inside of
}

// ErrZeroPage is a page without even a header. The rest of a segment is made of
// them after the record that ends it early.
var ErrZeroPage = errors.New("the page is empty")

func readPageHeader(page []byte) pageHeader {
	le := binary.LittleEndian
	return pageHeader{
		magic: le.Uint16(page), flags: le.Uint16(page[2:]), timeline: le.Uint32(page[4:]),
		at: LSN(le.Uint64(page[8:])), remaining: le.Uint32(page[16:]),
	}
}

// PageCheck knows what the pages of one log have in common. The magic number is the
// first page's: each major version has its own, and no log has two.
type PageCheck struct{ magic uint16 }

// check says why a page is not the one that belongs to that place. Segments are
// files that are used again: the place in the header is what tells a page from one
// that an earlier life of the file left there. Pages of an older timeline stand only
// in the segment in which a new one began.
func (c *PageCheck) check(page []byte, timeline uint32, at LSN) (pageHeader, error) {
	h := readPageHeader(page)
	switch {
	case h == pageHeader{}:
		return h, ErrZeroPage
	case h.magic == 0 || c.magic != 0 && h.magic != c.magic:
		return h, fmt.Errorf("the page at %s has the magic number %04X and not %04X", at, h.magic, c.magic)
	case h.at != at:
		return h, fmt.Errorf("the page at %s is that of %s", at, h.at)
	case h.timeline == 0 || h.timeline > timeline:
		return h, fmt.Errorf("the page at %s is of timeline %d and not %d", at, h.timeline, timeline)
	}
	c.magic = h.magic
	return h, nil
}

// Check says why a page is not the one that belongs to that place, ErrZeroPage for an empty one.
func (c *PageCheck) Check(page []byte, timeline uint32, at LSN) error {
	_, err := c.check(page, timeline, at)
	return err
}
