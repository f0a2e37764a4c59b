package blob

import (
	"crypto/sha256"
	"hash"
	"io"

	"kurabe/internal/must"
)

// sealer is a reader of the sealed form of what it reads. It is pulled by the
// store that keeps the object, so it needs no goroutine and holds one chunk.
type sealer struct {
	src     *source
	content []byte // one chunk
	packed  []byte
	out     []byte // the form of it, of which pos bytes are given out
	pos     int
	hash    hash.Hash
	number  uint32
	total   uint64
	ended   bool // the end is in out
}

func newSealer(name string, src *source) *sealer {
	must.True(len(name) <= nameBytesMax, "a sealed name has been checked")
	return &sealer{src: src, out: appendHead(nil, name), hash: sha256.New()}
}

func (s *sealer) Read(p []byte) (int, error) {
	for s.pos == len(s.out) {
		if s.ended {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.out[s.pos:])
	s.pos += n
	return n, nil
}

func (s *sealer) next() error {
	s.out, s.pos = s.out[:0], 0
	if s.content == nil {
		s.content = make([]byte, chunkBytes)
	}
	n, err := io.ReadFull(s.src, s.content)
	// Not by err alone: a source that breaks off says io.ErrUnexpectedEOF as well.
	if s.src.failed() != nil {
		return s.src.err
	}
	if n > 0 {
		if s.number == chunksMax {
			return ErrTooLarge
		}
		s.hash.Write(s.content[:n])
		s.packed = packer().EncodeAll(s.content[:n], s.packed[:0])
		must.True(len(s.packed) <= packedBytesMax, "a packed chunk is within its bound")
		s.out = appendChunk(s.out, s.number, n, s.packed)
		s.number++
		s.total += uint64(n)
	}
	if err != nil {
		s.out = appendEnd(s.out, s.number, s.total, s.hash.Sum(nil))
		s.ended = true
	}
	return nil
}

// drain reads what the store did not want, and gives the digest of all of it.
func (s *sealer) drain() ([]byte, error) {
	if _, err := io.Copy(io.Discard, s); err != nil {
		return nil, err
	}
	return s.hash.Sum(nil), nil
}
