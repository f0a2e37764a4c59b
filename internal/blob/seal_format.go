package blob

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// The format of a sealed object; DESIGN.md describes it for people. Everything is
// little-endian, as in zstd, of which a sealed object is a valid stream: our records
// are skippable frames.
const (
	sealMagic   = "KURABE"
	sealVersion = 1

	skippable      = 0x184D2A5B // one of the 16 numbers that zstd leaves to users
	recordHeadSize = 8          // that number and the length of what follows

	// chunkBytes is compressed at a time: larger gains nothing (see the figures in
	// DESIGN.md), and a reader and a writer hold one of them each.
	chunkBytes = 1 << 20

	// packedBytesMax: a chunk that does not compress is kept in raw blocks of
	// 128 KiB with 3 bytes each, below a frame header of at most 18.
	packedBytesMax = chunkBytes + 3*(chunkBytes>>17+1) + 64

	headFixed  = len(sealMagic) + 1 + 1 + 2 + 4 // magic, 'H', version, length of name, checksum
	chunkFixed = 1 + 4 + 4 + 4 + 4              // 'C', number, content length, packed length, checksum
	endFixed   = 1 + 4 + 8 + 32 + 4             // 'E', chunks, content length, SHA-256, checksum

	chunksMax = 1<<32 - 1 // 4 PiB of content
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendRecord puts the record around a payload and a checksum after it. Of a
// chunk the checksum goes on over the packed bytes, which follow the record.
func appendRecord(out, payload, packed []byte) []byte {
	out = binary.LittleEndian.AppendUint32(out, skippable)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(payload)+4))
	out = append(out, payload...)
	return binary.LittleEndian.AppendUint32(out, checksum(payload, packed))
}

func checksum(payload, packed []byte) uint32 {
	return crc32.Update(crc32.Checksum(payload, castagnoli), castagnoli, packed)
}

func appendHead(out []byte, name string) []byte {
	payload := append([]byte(sealMagic), 'H', sealVersion)
	payload = binary.LittleEndian.AppendUint16(payload, uint16(len(name)))
	return appendRecord(out, append(payload, name...), nil)
}

func appendChunk(out []byte, number uint32, contentBytes int, packed []byte) []byte {
	payload := []byte{'C'}
	payload = binary.LittleEndian.AppendUint32(payload, number)
	payload = binary.LittleEndian.AppendUint32(payload, uint32(contentBytes))
	payload = binary.LittleEndian.AppendUint32(payload, uint32(len(packed)))
	return append(appendRecord(out, payload, packed), packed...)
}

func appendEnd(out []byte, chunks uint32, contentBytes uint64, digest []byte) []byte {
	payload := []byte{'E'}
	payload = binary.LittleEndian.AppendUint32(payload, chunks)
	payload = binary.LittleEndian.AppendUint64(payload, contentBytes)
	return appendRecord(out, append(payload, digest...), nil)
}

// splitRecord checks a record that has no packed bytes and gives its payload.
func splitRecord(record []byte) ([]byte, error) {
	payload, sum := record[:len(record)-4], binary.LittleEndian.Uint32(record[len(record)-4:])
	if checksum(payload, nil) != sum {
		return nil, errors.New("a record has a wrong checksum")
	}
	return payload, nil
}

// errNewer is a version that we do not know.
var errNewer = errors.New("a newer Kurabe has written it")

func parseHead(record []byte) (name string, err error) {
	if len(record) < headFixed || string(record[:len(sealMagic)]) != sealMagic || record[len(sealMagic)] != 'H' {
		return "", errors.New("it is not a sealed object")
	}
	payload, err := splitRecord(record)
	if err != nil {
		return "", err
	}
	if version := payload[len(sealMagic)+1]; version != sealVersion {
		return "", fmt.Errorf("version %d: %w", version, errNewer)
	}
	rest := payload[len(sealMagic)+2:]
	name = string(rest[2:])
	if int(binary.LittleEndian.Uint16(rest)) != len(name) {
		return "", errors.New("its header has a wrong length")
	}
	return name, nil
}

// chunkRecord is a parsed 'C', whose lengths are within their bounds.
type chunkRecord struct {
	payload               []byte
	sum                   uint32
	contentLen, packedLen int
}

func parseChunk(record []byte, number uint32) (chunkRecord, error) {
	if len(record) != chunkFixed {
		return chunkRecord{}, errors.New("a chunk has a wrong length")
	}
	payload := record[:chunkFixed-4]
	content, packed := binary.LittleEndian.Uint32(payload[5:]), binary.LittleEndian.Uint32(payload[9:])
	switch {
	case binary.LittleEndian.Uint32(payload[1:]) != number:
		return chunkRecord{}, fmt.Errorf("chunk %d has a wrong offset", number)
	case content == 0 || content > chunkBytes || packed == 0 || packed > packedBytesMax:
		return chunkRecord{}, fmt.Errorf("chunk %d declares impossible sizes (%d, %d)", number, content, packed)
	}
	return chunkRecord{payload, binary.LittleEndian.Uint32(record[chunkFixed-4:]), int(content), int(packed)}, nil
}

type endRecord struct {
	chunks       uint32
	contentBytes uint64
	digest       []byte
}

func parseEnd(record []byte) (endRecord, error) {
	if len(record) != endFixed {
		return endRecord{}, errors.New("its trailer has a wrong length")
	}
	payload, err := splitRecord(record)
	if err != nil {
		return endRecord{}, err
	}
	return endRecord{binary.LittleEndian.Uint32(payload[1:]), binary.LittleEndian.Uint64(payload[5:]), payload[13:]}, nil
}

// sealLevel is zstd's level 1; DESIGN.md has what the others cost and bring.
const sealLevel = zstd.SpeedFastest

// One of each serves the whole process: they keep their tables between chunks.
var (
	packer = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(sealLevel), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)))
		if err != nil {
			panic(err) // only for options that do not exist
		}
		return e
	})
	// A chunk that says it is larger than declared is refused before it is unpacked:
	// the buffer's capacity is the limit.
	unpacker = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(chunkBytes))
		if err != nil {
			panic(err)
		}
		return d
	})
)
