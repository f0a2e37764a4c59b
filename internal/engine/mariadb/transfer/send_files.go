package transfer

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"path/filepath"

	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// sendFiles sends a copy as the tool's stream, which the other end can read anyway, and
// returns the sum of all of it.
func sendFiles(ctx context.Context, r engine.FeedRequest, files []volume.File, p *feedPeer) ([]byte, error) {
	root, err := volume.OpenRoot(r.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	data := &feedWriter{peer: p, sum: sha256.New()}
	s := &fileSender{ctx: ctx, root: root, to: bufio.NewWriterSize(data, feedDataMax), pace: volume.NewPace(r.BytesPerSecondMax), part: make([]byte, streamBuffer)}
	for _, f := range files {
		if err := s.send(f); err != nil {
			return nil, fmt.Errorf("send %s: %w", f.Path, err)
		}
	}
	if err := s.to.Flush(); err != nil {
		return nil, err
	}
	return data.sum.Sum(nil), nil
}

// feedWriter sends what is written as data.
type feedWriter struct {
	peer *feedPeer
	sum  hash.Hash
}

func (w *feedWriter) Write(text []byte) (int, error) {
	for done := 0; done < len(text); {
		part := text[done:min(len(text), done+feedDataMax)]
		w.sum.Write(part) // never fails
		if err := w.peer.send(feedData, part); err != nil {
			return done, err
		}
		done += len(part)
	}
	return len(text), nil
}

// fileSender writes files as chunks of a stream.
type fileSender struct {
	ctx  context.Context
	root *volume.Root
	to   *bufio.Writer
	pace *volume.Pace
	part []byte
}

func (s *fileSender) send(f volume.File) error {
	file, err := s.root.Open(f.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	name, at := filepath.ToSlash(f.Path), int64(0)
	for {
		n, err := io.ReadFull(file, s.part)
		if n > 0 {
			if err := s.pace.Wait(s.ctx, int64(n)); err != nil {
				return err
			}
			if err := writePayload(s.to, name, at, s.part[:n]); err != nil {
				return err
			}
			at += int64(n)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if at != f.Size {
		return fmt.Errorf("it has %d bytes, and not the %d of the copy", at, f.Size)
	}
	return writeStreamHead(s.to, streamEnd, name)
}

// writePayload writes a chunk with a part of a file, as readStream reads it.
func writePayload(w io.Writer, name string, at int64, part []byte) error {
	if err := writeStreamHead(w, streamPayload, name); err != nil {
		return err
	}
	var head [8 + 8 + 4]byte
	binary.LittleEndian.PutUint64(head[:], uint64(len(part)))
	binary.LittleEndian.PutUint64(head[8:], uint64(at))
	binary.LittleEndian.PutUint32(head[16:], crc32.ChecksumIEEE(part))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(part)
	return err
}

func writeStreamHead(w io.Writer, kind byte, name string) error {
	if len(name) > streamPathMax {
		return fmt.Errorf("a path of %d bytes", len(name))
	}
	head := append([]byte(streamMagic), 0, kind)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(name)))
	_, err := w.Write(append(head, name...))
	return err
}
