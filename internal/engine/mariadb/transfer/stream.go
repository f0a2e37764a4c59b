package transfer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"path/filepath"
)

// The stream of mariadb-backup --stream=xbstream (extra/mariabackup/xbstream.h): chunks of
// files, of several files at a time. Each is a magic, flags, a type and a path; a
// payload has length, offset and CRC-32 before its bytes. Numbers are little-endian.
const (
	streamMagic   = "XBSTCK01"
	streamPayload = 'P'
	streamEnd     = 'E' // of a file
	streamHead    = len(streamMagic) + 1 + 1 + 4
	streamPathMax = 4096
	// streamBytesMax is far beyond the tool's buffers of 10 MiB.
	streamBytesMax = 1 << 30
	streamBuffer   = 256 << 10
)

// errStream is a stream that is none, or ended early.
var errStream = errors.New("the tool's stream is damaged")

// streamSink takes what a stream holds. Names are local paths with slashes.
type streamSink interface {
	write(name string, at int64, part []byte) error
	end(name string) error
}

// readStream reads a stream to its end. A file whose end is not in it is an error.
func readStream(r io.Reader, to streamSink) error {
	open := map[string]bool{}
	head, buffer := make([]byte, streamHead), make([]byte, streamBuffer)
	for {
		_, err := io.ReadFull(r, head)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return cutStream(err)
		}
		kind, name, err := readStreamHead(r, head)
		if err != nil {
			return err
		}
		switch kind {
		case streamEnd:
			delete(open, name)
			if err := to.end(name); err != nil {
				return err
			}
		case streamPayload:
			if open[name] = true; len(open) > streamOpenMax {
				return fmt.Errorf("%w: %d files at a time", errStream, len(open))
			}
			if err := readPayload(r, name, buffer, to); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: a chunk of type %q of %s", errStream, kind, name)
		}
	}
	for name := range open {
		return fmt.Errorf("%w: it ends in the middle of %s", errStream, name)
	}
	return nil
}

// streamOpenMax bounds the files that a stream sends at a time: the tool has a thread for each.
const streamOpenMax = 1 << 16

// cutStream tells an end in the middle from an error of the reading.
func cutStream(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it ends in the middle of a chunk", errStream)
	}
	return fmt.Errorf("read the tool's stream: %w", err)
}

func readStreamHead(r io.Reader, head []byte) (kind byte, name string, err error) {
	if string(head[:len(streamMagic)]) != streamMagic {
		return 0, "", fmt.Errorf("%w: a chunk begins with %q", errStream, head[:len(streamMagic)])
	}
	kind = head[len(streamMagic)+1]
	length := binary.LittleEndian.Uint32(head[len(streamMagic)+2:])
	if length == 0 || length > streamPathMax {
		return 0, "", fmt.Errorf("%w: a path of %d bytes", errStream, length)
	}
	raw := make([]byte, length)
	if _, err := io.ReadFull(r, raw); err != nil {
		return 0, "", cutStream(err)
	}
	// As ./name, of what lies in the data folder itself.
	name = path.Clean(string(raw))
	if !filepath.IsLocal(name) || name == "." {
		return 0, "", fmt.Errorf("%w: the path %q", errStream, raw)
	}
	return kind, name, nil
}

// readPayload hands on a chunk's bytes as they come; the sum is known behind them.
func readPayload(r io.Reader, name string, buffer []byte, to streamSink) error {
	var head [8 + 8 + 4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return cutStream(err)
	}
	length, at := binary.LittleEndian.Uint64(head[:]), binary.LittleEndian.Uint64(head[8:])
	if length > streamBytesMax || at > 1<<62 {
		return fmt.Errorf("%w: %d bytes at %d of %s", errStream, length, at, name)
	}
	want, sum := binary.LittleEndian.Uint32(head[16:]), uint32(0)
	for left := length; left > 0; {
		part := buffer[:min(left, uint64(len(buffer)))]
		if _, err := io.ReadFull(r, part); err != nil {
			return cutStream(err)
		}
		sum = crc32.Update(sum, crc32.IEEETable, part)
		if err := to.write(name, int64(at), part); err != nil {
			return err
		}
		at, left = at+uint64(len(part)), left-uint64(len(part))
	}
	if sum != want {
		return fmt.Errorf("%w: the sum of a part of %s is %08x, not %08x", errStream, name, sum, want)
	}
	return nil
}
