package etcdnode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// The page format of bbolt (its internal/common: page.go, meta.go, inode.go). Its own
// readers trust the pages: one that names itself as its child is followed for ever,
// and bbolt's Check runs out of stack on it. Here each page is entered once at most.
const (
	pageHeaderBytes  = 16 // id 8, flags 2, count 2, overflow 4
	pageElementBytes = 16
	metaBytes        = 64 // without the page's header
	metaMagic        = 0xED0CDAED
	metaVersion      = 2
	flagBranch       = 0x01
	flagLeaf         = 0x02
	flagBucket       = 0x01 // of a leaf's element
	bucketBytes      = 16   // root page 8, sequence 8
	pageBytesMin     = 1 << 10
	pageBytesMax     = 1 << 16
)

// pages walks the tree of a database file.
type pages struct {
	file    io.ReaderAt
	size    int64 // of a page, bytes
	high    uint64
	root    uint64
	entered []bool // by page
}

// checkPages reads every page that is in use: each must be where it says it is, in
// one place of the tree, and hold its elements in order within its bounds.
func checkPages(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() // read only: nothing to lose
	info, err := file.Stat()
	if err != nil {
		return err
	}
	p, err := readMeta(file)
	if err != nil {
		return err
	}
	if p.high > uint64(info.Size()/p.size) {
		return fmt.Errorf("%d pages of %d bytes in a file of %d bytes", p.high, p.size, info.Size())
	}
	p.entered = make([]bool, p.high)
	return p.walk(p.root, nil, nil)
}

// readMeta takes the newer of the two valid meta pages, as bbolt does. The second is
// looked for at each size that a page may have.
func readMeta(file io.ReaderAt) (*pages, error) {
	var best *pages
	var newest uint64
	for at := int64(0); at <= pageBytesMax; at = max(pageBytesMin, 2*at) {
		raw := make([]byte, pageHeaderBytes+metaBytes)
		if _, err := file.ReadAt(raw, at); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		m := raw[pageHeaderBytes:]
		sum := fnv.New64a()
		sum.Write(m[:metaBytes-8])
		if le32(m) != metaMagic || le32(m[4:]) != metaVersion || le64(m[metaBytes-8:]) != sum.Sum64() {
			continue
		}
		size := int64(le32(m[8:]))
		if at != 0 && at != size || size < pageBytesMin || size > pageBytesMax {
			continue
		}
		if txid := le64(m[48:]); best == nil || txid > newest {
			best, newest = &pages{file: file, size: size, root: le64(m[16:]), high: le64(m[40:])}, txid
		}
	}
	if best == nil {
		return nil, errors.New("no valid meta page")
	}
	return best, nil
}

// walk checks a page and all below it; its keys must be from low to before high,
// where those are given.
func (p *pages) walk(id uint64, low, high []byte) error {
	if id >= p.high {
		return fmt.Errorf("page %d is past the end, page %d", id, p.high)
	}
	head := make([]byte, pageHeaderBytes)
	if _, err := p.file.ReadAt(head, int64(id)*p.size); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	overflow := uint64(le32(head[12:]))
	if own := le64(head); own != id || overflow >= p.high-id {
		return fmt.Errorf("page %d has the number %d and %d overflow pages", id, own, overflow)
	}
	for n := id; n <= id+overflow; n++ {
		if p.entered[n] {
			return fmt.Errorf("page %d is in the tree twice", n)
		}
		p.entered[n] = true
	}
	page := make([]byte, int64(overflow+1)*p.size)
	if _, err := p.file.ReadAt(page, int64(id)*p.size); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	if err := p.elements(page, low, high, true); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// elements checks the content of a page. An inline bucket is a leaf without pages
// below it; only there may descend be false.
func (p *pages) elements(page, low, high []byte, descend bool) error {
	flags, count := le16(page[8:]), int(le16(page[10:]))
	if flags != flagLeaf && (flags != flagBranch || !descend || count == 0) {
		return fmt.Errorf("flags %#x with %d elements", flags, count)
	}
	if pageHeaderBytes+count*pageElementBytes > len(page) {
		return fmt.Errorf("%d elements do not fit", count)
	}
	keys := make([][]byte, count+1) // the last is where the page ends
	keys[count] = high
	last := low
	for n := range count {
		e, err := readElement(page, n, flags)
		if err != nil {
			return fmt.Errorf("element %d: %w", n, err)
		}
		// The first key of a page may be the branch's own; from then on each is new.
		if order := bytes.Compare(e.key, last); order < 0 || order == 0 && n > 0 || high != nil && bytes.Compare(e.key, high) >= 0 {
			return fmt.Errorf("element %d is out of order", n)
		}
		keys[n], last = e.key, e.key
		if e.bucket && descend {
			if err := p.bucket(e.value); err != nil {
				return fmt.Errorf("bucket %q: %w", e.key, err)
			}
		} else if e.bucket {
			return fmt.Errorf("element %d is a bucket in an inline one", n)
		}
	}
	for n := 0; flags == flagBranch && n < count; n++ {
		child := le64(page[pageHeaderBytes+n*pageElementBytes+8:])
		if err := p.walk(child, keys[n], keys[n+1]); err != nil {
			return err
		}
	}
	return nil
}

func (p *pages) bucket(value []byte) error {
	if len(value) < bucketBytes {
		return fmt.Errorf("%d bytes", len(value))
	}
	if root := le64(value); root != 0 {
		return p.walk(root, nil, nil)
	}
	inline := value[bucketBytes:]
	if len(inline) < pageHeaderBytes {
		return fmt.Errorf("%d bytes inline", len(inline))
	}
	return p.elements(inline, nil, nil, false)
}

type pageElement struct {
	key, value []byte
	bucket     bool
}

// readElement cuts an element out of its page: a leaf's is flags 4, position 4, key
// size 4, value size 4; a branch's position 4, key size 4, child 8. Positions count
// from the element itself.
func readElement(page []byte, n int, flags uint16) (pageElement, error) {
	start := pageHeaderBytes + n*pageElementBytes
	raw := page[start:]
	var e pageElement
	var at, keyBytes, valueBytes uint64
	if flags == flagLeaf {
		e.bucket = le32(raw)&flagBucket != 0
		at, keyBytes, valueBytes = uint64(le32(raw[4:])), uint64(le32(raw[8:])), uint64(le32(raw[12:]))
	} else {
		at, keyBytes = uint64(le32(raw)), uint64(le32(raw[4:]))
	}
	at += uint64(start)
	if keyBytes == 0 || at+keyBytes+valueBytes > uint64(len(page)) {
		return e, fmt.Errorf("%d and %d bytes at %d of %d", keyBytes, valueBytes, at, len(page))
	}
	e.key, e.value = page[at:at+keyBytes], page[at+keyBytes:at+keyBytes+valueBytes]
	return e, nil
}

// bbolt writes in the machine's order; every machine that Kurabe runs on is little-endian.
func le16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
