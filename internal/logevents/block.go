package logevents

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

const (
	// blockBytes of text become a block: enough for the compression to work, little enough to be
	// read for one event.
	blockBytes = 1 << 20
	// segmentBytes end a segment, the least that is removed at once.
	segmentBytes = 8 << 20
	// rawMax bounds a block: a tail that could not be sealed for long, and then was.
	rawMax = 1 << 30

	blockHead  = 68
	blockMagic = 0x316b6c6b // "klk1"
)

// Block is the events of a part of a stream. It is valid until the function that it is given to
// returns.
type Block struct {
	Group, Stream string
	First         int64  // the number of the first event
	Text          []byte // the messages, one behind the other
	Events        []Entry
}

// Entry is an event of a block, whose message is Text[Start:End].
type Entry struct {
	Time, Ingested int64 // Unix milliseconds
	Start, End     int
}

func (b *Block) reset(first int64) { b.First, b.Text, b.Events = first, b.Text[:0], b.Events[:0] }

func (b *Block) add(e Event) {
	start := len(b.Text)
	b.Text = append(b.Text, e.Message...)
	b.Events = append(b.Events, Entry{e.Time, e.Ingested, start, len(b.Text)})
}

// blockRef is where a block lies.
type blockRef struct {
	segment string // the path of the file
	offset  int64
	stored  int64 // bytes in the file, head included
	raw     int64 // bytes when decompressed
	crc     uint32
	first   int64
	sum     summary
}

func (r blockRef) end() int64 { return r.offset + r.stored }

// encoder is one for all: EncodeAll may be called at any time.
var encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))

// encode makes a block of events. The times lie apart from the text, which both are compressed
// better by, and which a scan can search as a whole.
func encode(b *Block) (data []byte, ref blockRef) {
	raw := make([]byte, 0, len(b.Text)+8*len(b.Events)+16)
	raw = binary.AppendUvarint(raw, uint64(len(b.Events)))
	var before int64
	for _, e := range b.Events {
		raw = binary.AppendVarint(raw, e.Time-before)
		raw = binary.AppendVarint(raw, e.Ingested-e.Time)
		raw = binary.AppendUvarint(raw, uint64(e.End-e.Start))
		before = e.Time
		ref.sum.add(Event{e.Time, e.Ingested, b.Text[e.Start:e.End]})
	}
	raw = append(raw, b.Text...)
	data = encoder.EncodeAll(raw, make([]byte, blockHead, blockHead+len(raw)/4))
	ref.first, ref.raw, ref.stored = b.First, int64(len(raw)), int64(len(data))
	ref.crc = crc32.Checksum(data[blockHead:], castagnoli)
	le := binary.LittleEndian
	le.PutUint32(data, blockMagic)
	le.PutUint32(data[8:], ref.crc)
	for n, v := range []int64{ref.stored, ref.raw, ref.first, ref.sum.count, ref.sum.min, ref.sum.max, ref.sum.ingested} {
		le.PutUint64(data[12+8*n:], uint64(v))
	}
	le.PutUint32(data[4:], crc32.Checksum(data[8:blockHead], castagnoli))
	return data, ref
}

var (
	errBlock   = errors.New("a block is damaged")
	errChanged = errors.New("it was replaced while it was read")
)

// readHead reads the head of a block.
func readHead(head []byte) (ref blockRef, err error) {
	le := binary.LittleEndian
	if len(head) < blockHead || le.Uint32(head) != blockMagic || le.Uint32(head[4:]) != crc32.Checksum(head[8:blockHead], castagnoli) {
		return ref, errBlock
	}
	at := func(n int) int64 { return int64(le.Uint64(head[12+8*n:])) }
	ref = blockRef{crc: le.Uint32(head[8:]), stored: at(0), raw: at(1), first: at(2)}
	ref.sum = summary{count: at(3), min: at(4), max: at(5), ingested: at(6)}
	if ref.stored < blockHead || ref.stored > rawMax || ref.raw < 1 || ref.raw > rawMax || ref.first < 1 || ref.sum.count < 1 || ref.sum.count > ref.raw {
		return ref, errBlock
	}
	return ref, nil
}

// reader decompresses blocks, one at a time, into memory of its own.
type reader struct {
	zstd *zstd.Decoder
	file *os.File
	from []byte
	raw  []byte
}

func newReader() (*reader, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(rawMax))
	return &reader{zstd: z}, err
}

func (r *reader) close() {
	r.zstd.Close()
	if r.file != nil {
		_ = r.file.Close()
	}
}

// read reads a block; Block.Text is r's.
func (r *reader) read(ref blockRef, b *Block) (err error) {
	if r.file == nil || r.file.Name() != ref.segment {
		if r.file != nil {
			_ = r.file.Close()
		}
		if r.file, err = os.Open(ref.segment); err != nil {
			r.file = nil
			return err
		}
	}
	if int64(cap(r.from)) < ref.stored {
		r.from = make([]byte, ref.stored+ref.stored/4)
	}
	r.from = r.from[:ref.stored]
	if _, err := r.file.ReadAt(r.from, ref.offset); err != nil {
		return err
	}
	if crc32.Checksum(r.from[blockHead:], castagnoli) != ref.crc {
		return errBlock
	}
	if int64(cap(r.raw)) < ref.raw {
		r.raw = make([]byte, 0, ref.raw+ref.raw/4)
	}
	if r.raw, err = r.zstd.DecodeAll(r.from[blockHead:], r.raw[:0]); err != nil {
		return fmt.Errorf("%w: %w", errBlock, err)
	}
	return decode(r.raw, ref.first, b)
}

// decode takes a decompressed block apart.
func decode(raw []byte, first int64, b *Block) error {
	c := cursor{data: raw}
	count := c.uvarint()
	if count > uint64(len(raw)) {
		return errBlock
	}
	b.First, b.Events = first, b.Events[:0]
	var at int64
	end := 0
	for range count {
		at += c.varint()
		e := Entry{Time: at, Ingested: at + c.varint(), Start: end}
		size := c.uvarint()
		if size > MessageMax {
			return errBlock
		}
		end += int(size)
		e.End = end
		b.Events = append(b.Events, e)
	}
	if c.bad || end != len(c.data) {
		return errBlock
	}
	b.Text = c.data
	return nil
}

// listBlocks reads the heads of a segment. lost is how many bytes from good on are no blocks.
func listBlocks(path string) (refs []blockRef, good, lost int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, 0, err
	}
	head := make([]byte, blockHead)
	for good < info.Size() {
		n, err := file.ReadAt(head, good)
		if err != nil && err != io.EOF {
			return nil, 0, 0, err
		}
		ref, bad := readHead(head[:n])
		if bad != nil || good+ref.stored > info.Size() {
			break
		}
		ref.segment, ref.offset = path, good
		good = ref.end()
		refs = append(refs, ref)
	}
	return refs, good, info.Size() - good, nil
}
