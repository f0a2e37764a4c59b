package load

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// chunk is the load of some periods of equal length, one after the other.
type chunk struct {
	start int64 // Unix time of the first period, seconds
	step  int64 // length of a period, seconds
	// values are all that keys hold, keys the numbers of their values.
	values []string
	keys   [][dimensions]uint32
	slots  []slot
}

// key returns a key with its values.
func (c *chunk) key(n int) (k Key) {
	for d, v := range c.keys[n] {
		k[d] = c.values[v]
	}
	return k
}

// number gives keys the numbers of their values.
func (c *chunk) number(keys []Key) {
	number := map[string]uint32{"": 0}
	c.values, c.keys = []string{""}, make([][dimensions]uint32, len(keys))
	for n, k := range keys {
		for d, v := range k {
			at, known := number[v]
			if !known {
				at = uint32(len(c.values))
				number[v] = at
				c.values = append(c.values, v)
			}
			c.keys[n][d] = at
		}
	}
}

// slot is one period: how many seconds of it were sampled, and how many sessions were counted
// in them for each key.
type slot struct {
	sampled uint64
	rows    []row
}

type row struct {
	key   int // in chunk.keys
	count uint64
}

// Bounds of what is taken from a file.
const (
	chunkMax = 16 << 20 // bytes, unpacked; an hour of full minutes is 1 MB
	slotsMax = 3600
	keysMax  = 1 << 16
	textsMax = 1 << 16
)

var errChunk = errors.New("not a chunk of load")

const version = 1

// frameHead is the length of what follows and its CRC-32C.
const frameHead = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame packs bytes for a file of frames.
func frame(body []byte) []byte {
	var packed bytes.Buffer
	packed.Write(make([]byte, frameHead))
	w, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // a buffer takes everything
	}
	out := packed.Bytes()
	binary.LittleEndian.PutUint32(out, uint32(len(out)-frameHead))
	binary.LittleEndian.PutUint32(out[4:], crc32.Checksum(out[frameHead:], castagnoli))
	return out
}

// unframe returns the first frame of a file's bytes, unpacked, and what follows it. A frame
// that is cut off or damaged is io.ErrUnexpectedEOF.
func unframe(raw []byte) (body, rest []byte, err error) {
	if len(raw) < frameHead {
		return nil, nil, io.ErrUnexpectedEOF
	}
	length := int64(binary.LittleEndian.Uint32(raw))
	if length > int64(len(raw)-frameHead) {
		return nil, nil, io.ErrUnexpectedEOF
	}
	packed := raw[frameHead : frameHead+length]
	if crc32.Checksum(packed, castagnoli) != binary.LittleEndian.Uint32(raw[4:]) {
		return nil, nil, io.ErrUnexpectedEOF
	}
	body, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), chunkMax+1))
	if err != nil || len(body) > chunkMax {
		return nil, nil, fmt.Errorf("%w: it is too large or cannot be unpacked", errChunk)
	}
	return body, raw[frameHead+length:], nil
}

// encode writes the values once, the keys by the numbers of their values, the rows by the
// numbers of their keys.
func (c *chunk) encode() []byte {
	b := []byte{version}
	b = binary.AppendVarint(b, c.start)
	b = binary.AppendUvarint(b, uint64(c.step))
	b = binary.AppendUvarint(b, uint64(len(c.values)))
	for _, v := range c.values {
		b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
	}
	b = binary.AppendUvarint(b, uint64(dimensions))
	b = binary.AppendUvarint(b, uint64(len(c.keys)))
	for _, k := range c.keys {
		for _, v := range k {
			b = binary.AppendUvarint(b, uint64(v))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(c.slots)))
	for _, s := range c.slots {
		b = binary.AppendUvarint(b, s.sampled)
		b = binary.AppendUvarint(b, uint64(len(s.rows)))
		for _, r := range s.rows {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.key)), r.count)
		}
	}
	return b
}

// decoder reads numbers and texts, and remembers the first fault.
type decoder struct {
	raw []byte
	err error
}

func (d *decoder) number(limit uint64) uint64 {
	n, size := binary.Uvarint(d.raw)
	if size <= 0 || n > limit {
		d.err, d.raw = errChunk, nil
		return 0
	}
	d.raw = d.raw[size:]
	return n
}

func (d *decoder) signed() int64 {
	n, size := binary.Varint(d.raw)
	if size <= 0 {
		d.err, d.raw = errChunk, nil
		return 0
	}
	d.raw = d.raw[size:]
	return n
}

func (d *decoder) text() string {
	n := d.number(uint64(len(d.raw)))
	if n > uint64(len(d.raw)) {
		d.err, d.raw = errChunk, nil
		return ""
	}
	s := string(d.raw[:n])
	d.raw = d.raw[n:]
	return s
}

// decodeChunk reads a chunk. Dimensions that a later version added are skipped, those of which
// an earlier one knew nothing are empty.
func decodeChunk(raw []byte) (*chunk, error) {
	if len(raw) == 0 || raw[0] != version {
		return nil, errChunk
	}
	d := &decoder{raw: raw[1:]}
	c := &chunk{start: d.signed(), step: int64(d.number(3600))}
	c.values = make([]string, d.number(textsMax))
	for n := range c.values {
		c.values[n] = d.text()
	}
	width := d.number(64)
	c.keys = make([][dimensions]uint32, d.number(keysMax))
	for n := range c.keys {
		for k := range width {
			v := d.number(textsMax)
			if v >= uint64(len(c.values)) {
				return nil, errChunk
			}
			if k < uint64(dimensions) {
				c.keys[n][k] = uint32(v)
			}
		}
	}
	c.slots = make([]slot, d.number(slotsMax))
	for n := range c.slots {
		c.slots[n].sampled = d.number(1 << 32)
		rows := d.number(uint64(len(d.raw))) // each takes two bytes at least
		c.slots[n].rows = make([]row, rows)
		for i := range c.slots[n].rows {
			key, count := d.number(keysMax), d.number(1<<32)
			if key >= uint64(len(c.keys)) && d.err == nil {
				return nil, errChunk
			}
			c.slots[n].rows[i] = row{int(key), count}
		}
	}
	if c.step == 0 || d.err != nil {
		return nil, errChunk
	}
	return c, nil
}
