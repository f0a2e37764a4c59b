package logstream

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// A spool file is a row of frames: kind, three zeros, length and CRC-32C (little-endian,
// 12 bytes), then so many bytes. The sum covers kind, length, the frame's place in the
// file and the bytes. Zeros follow the last frame.
const (
	frameHeadBytes = 12
	frameBytesMax  = 256 << 10

	frameHead = 'H' // JSON of header, once, first
	frameData = 'D' // bytes of the engine's file
	frameMark = 'M' // one mark, as in the object of marks
	frameEnd  = 'E' // JSON of the position where the log goes on: the piece is complete
)

// errTorn is a frame that is not whole: what a death in the middle leaves at the end,
// and damage anywhere else.
var errTorn = errors.New("a frame of the spool file is incomplete")

func appendFrame(b []byte, kind byte, place int64, payload []byte) []byte {
	var h [frameHeadBytes]byte
	h[0] = kind
	binary.LittleEndian.PutUint32(h[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(h[8:], frameSum(h, place, payload))
	return append(append(b, h[:]...), payload...)
}

func frameSum(h [frameHeadBytes]byte, place int64, payload []byte) uint32 {
	var about [16]byte
	copy(about[:8], h[:8])
	binary.LittleEndian.PutUint64(about[8:], uint64(place))
	return crc32.Update(crc32.Checksum(about[:], castagnoli), castagnoli, payload)
}

type frameReader struct {
	r     *bufio.Reader
	place int64 // of the next frame
	buf   []byte
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 128<<10)}
}

// next gives a frame, whose payload holds until the following call. io.EOF says that
// the file ends here as it should; another error is errTorn or the disk's.
func (f *frameReader) next() (kind byte, payload []byte, err error) {
	var h [frameHeadBytes]byte
	if _, err := io.ReadFull(f.r, h[:]); err != nil {
		if err == io.ErrUnexpectedEOF {
			err = errTorn
		}
		return 0, nil, err
	}
	if h == [frameHeadBytes]byte{} {
		return 0, nil, io.EOF
	}
	length := binary.LittleEndian.Uint32(h[4:])
	if length > frameBytesMax || h[1] != 0 || h[2] != 0 || h[3] != 0 {
		return 0, nil, errTorn
	}
	if cap(f.buf) < int(length) {
		f.buf = make([]byte, length)
	}
	f.buf = f.buf[:length]
	if _, err := io.ReadFull(f.r, f.buf); err != nil {
		if err == io.ErrUnexpectedEOF || err == io.EOF {
			err = errTorn
		}
		return 0, nil, err
	}
	if frameSum(h, f.place, f.buf) != binary.LittleEndian.Uint32(h[8:]) {
		return 0, nil, errTorn
	}
	f.place += int64(frameHeadBytes) + int64(length)
	return h[0], f.buf, nil
}
