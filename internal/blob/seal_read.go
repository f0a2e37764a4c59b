package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
)

// opener reads a sealed form and gives its content. It says io.EOF only when the
// end, the digest and the end of the input have been seen; every other end is an
// error of kind ErrDamaged, or the input's own.
type opener struct {
	r       io.Reader
	record  []byte
	packed  []byte
	buf     []byte
	content []byte // what is left of buf
	hash    hash.Hash
	number  uint32
	total   uint64
	digest  []byte // of the end, once seen
	err     error
}

// errTorn is the end of the input where more must come.
var errTorn = errors.New("it ends too early")

func newOpener(r io.Reader, name string) (*opener, error) {
	o := &opener{r: r, hash: sha256.New()}
	if err := o.nextRecord(headFixed + nameBytesMax); err != nil {
		return nil, err
	}
	there, err := parseHead(o.record)
	if err != nil {
		return nil, err
	}
	if there != name {
		return nil, fmt.Errorf("it was stored as %.*q", nameBytesMax, there)
	}
	return o, nil
}

func (o *opener) Read(p []byte) (int, error) {
	for len(o.content) == 0 {
		if o.err == nil {
			o.err = o.next()
		}
		if o.err != nil {
			return 0, o.err
		}
	}
	n := copy(p, o.content)
	o.content = o.content[n:]
	return n, nil
}

// fill reads exactly so much.
func (o *opener) fill(p []byte) error {
	_, err := io.ReadFull(o.r, p)
	if ended(err) {
		return errTorn
	}
	return err
}

// nextRecord reads a record of at most so many bytes into o.record.
func (o *opener) nextRecord(most int) error {
	var head [recordHeadSize]byte
	if err := o.fill(head[:]); err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(head[4:])
	if binary.LittleEndian.Uint32(head[:]) != skippable || size < 5 || size > uint32(most) {
		return errors.New("a record is missing")
	}
	o.record = resize(o.record, int(size))
	return o.fill(o.record)
}

func (o *opener) next() error {
	if err := o.nextRecord(max(chunkFixed, endFixed)); err != nil {
		return err
	}
	switch o.record[0] {
	case 'C':
		return o.chunk()
	case 'E':
		return o.end()
	}
	return errors.New("unknown kind of record")
}

func (o *opener) chunk() error {
	c, err := parseChunk(o.record, o.number)
	if err != nil {
		return err
	}
	o.packed = resize(o.packed, c.packedLen)
	if err := o.fill(o.packed); err != nil {
		return err
	}
	// Before the bytes meet the decompressor.
	if checksum(c.payload, o.packed) != c.sum {
		return fmt.Errorf("chunk %d has a wrong checksum", o.number)
	}
	o.buf = resize(o.buf, c.contentLen)
	content, err := unpacker().DecodeAll(o.packed, o.buf[:0:c.contentLen])
	if err != nil || len(content) != c.contentLen {
		return errors.Join(fmt.Errorf("chunk %d does not unpack to its size", o.number), err)
	}
	o.hash.Write(content)
	o.content = content
	o.number++
	o.total += uint64(len(content))
	return nil
}

func (o *opener) end() error {
	e, err := parseEnd(o.record)
	switch {
	case err != nil:
		return err
	case e.chunks != o.number || e.contentBytes != o.total:
		return fmt.Errorf("it holds %d bytes in %d chunks instead of %d in %d", o.total, o.number, e.contentBytes, e.chunks)
	case !bytes.Equal(e.digest, o.hash.Sum(nil)):
		return errors.New("its content has a wrong digest")
	}
	// This also makes the decryption check that nothing was cut off.
	var more [1]byte
	if _, err := io.ReadFull(o.r, more[:]); err == nil {
		return errors.New("it has data after its end")
	} else if err != io.EOF {
		return err
	}
	o.digest = bytes.Clone(e.digest)
	return io.EOF
}

// resize gives a slice of so many bytes; those who call it have checked the bound.
func resize(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
