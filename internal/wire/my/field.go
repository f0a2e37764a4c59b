package my

import (
	"bytes"
	"encoding/binary"
)

// Reader reads the fields of a packet. After the first that is missing it is Bad and gives
// zeros.
type Reader struct {
	Rest []byte
	Bad  bool
}

// Bytes gives the next n.
func (r *Reader) Bytes(n int) []byte {
	if n < 0 || n > len(r.Rest) {
		r.Bad, r.Rest = true, nil
		return nil
	}
	b := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return b
}

// Byte gives one.
func (r *Reader) Byte() byte {
	if b := r.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// Uint16 gives two, as a number.
func (r *Reader) Uint16() uint16 {
	if b := r.Bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// Uint32 gives four, as a number.
func (r *Reader) Uint32() uint32 {
	if b := r.Bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Lenenc gives a number of variable length. NULL and the mark of an error are Bad.
func (r *Reader) Lenenc() uint64 {
	first := r.Byte()
	size := 0
	switch first {
	case 0xfc:
		size = 2
	case 0xfd:
		size = 3
	case 0xfe:
		size = 8
	case 0xfb, 0xff:
		r.Bad, r.Rest = true, nil
		return 0
	default:
		return uint64(first)
	}
	var wide [8]byte
	copy(wide[:], r.Bytes(size))
	return binary.LittleEndian.Uint64(wide[:])
}

// Text gives a text that its length precedes.
func (r *Reader) Text() []byte {
	n := r.Lenenc()
	if n > uint64(len(r.Rest)) {
		r.Bad, r.Rest = true, nil
		return nil
	}
	return r.Bytes(int(n))
}

// ZeroText gives a text that a zero byte ends.
func (r *Reader) ZeroText() []byte {
	end := bytes.IndexByte(r.Rest, 0)
	if end < 0 {
		r.Bad, r.Rest = true, nil
		return nil
	}
	b := r.Rest[:end]
	r.Rest = r.Rest[end+1:]
	return b
}

// AppendLenenc appends a number of variable length.
func AppendLenenc(to []byte, n uint64) []byte {
	switch {
	case n < 0xfb:
		return append(to, byte(n))
	case n < 1<<16:
		return append(to, 0xfc, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(to, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(to, 0xfe), n)
}

// AppendText appends a text after its length.
func AppendText(to []byte, text []byte) []byte {
	return append(AppendLenenc(to, uint64(len(text))), text...)
}
