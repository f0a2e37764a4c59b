package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/volume"
)

// Receive makes dir, which is absent, a prepared copy of the data of the source on another host,
// and returns its place in the source's history. Whoever runs the source there brings the copy,
// because a server's files are its host's alone (Send). caFile is the authority's certificate.
func Receive(ctx context.Context, i engine.Instance, caFile, dir string) (position string, err error) {
	conn, err := awaitSource(ctx, i, caFile)
	if err != nil {
		return "", err
	}
	ctx, p := openFeed(ctx, conn)
	defer p.close()
	t := &taking{ctx: ctx, peer: p, dir: dir, buffer: make([]byte, feedDataMax), sum: sha256.New()}
	position, err = t.take()
	if err == nil {
		err = p.send(feedTaken, nil)
	}
	if err == nil {
		return position, nil
	}
	var said *feedRefusal
	if !errors.As(err, &said) {
		p.refuse(err)
	}
	return "", fmt.Errorf("take a copy of %s over the network: %w", i.Role.Source.ID, errors.Join(context.Cause(ctx), err))
}

// taking is a copy that comes in.
type taking struct {
	ctx    context.Context
	peer   *feedPeer
	dir    string
	buffer []byte // of a frame, of which data is left
	left   []byte
	sum    hash.Hash
	end    feedSum
}

func (t *taking) take() (position string, failure error) {
	size, err := t.expect(feedHello)
	if err != nil {
		return "", err
	}
	// Nobody makes a copy for which there is no room.
	if err := engine.NeedRoom(filepath.Dir(t.dir), size.Bytes); err != nil {
		return "", err
	}
	if err := t.peer.send(feedGo, nil); err != nil {
		return "", err
	}
	if size, err = t.expect(feedCopy); err != nil {
		return "", err
	}
	if err := engine.NeedRoom(filepath.Dir(t.dir), size.Bytes); err != nil {
		return "", err
	}
	if list, err := binlog.ParseGTIDs(size.Position); err != nil || len(list) == 0 {
		return "", errors.Join(fmt.Errorf("%w: its position is %q", errFeed, size.Position), err)
	}
	if err := volume.Mkdir(t.dir, 0o700); err != nil {
		return "", err
	}
	files, err := NewStreamFiles(t.ctx, t.dir, engine.CopyRequest{}, size.Bytes)
	if err != nil {
		return "", err
	}
	sink := &boundedFiles{to: files, bytes: size.Bytes, left: size}
	if err := errors.Join(readStream(t, sink), files.Close()); err != nil {
		return "", err
	}
	switch {
	case sink.left.Bytes != 0 || sink.left.Files != 0:
		return "", fmt.Errorf("%w: %d bytes and %d files of the copy are missing", errFeed, sink.left.Bytes, sink.left.Files)
	case !bytes.Equal(t.end.Sum, t.sum.Sum(nil)):
		return "", fmt.Errorf("%w: the sum of what came is another one", errFeed)
	}
	return size.Position, nil
}

// expect takes a frame of this kind, and no other.
func (t *taking) expect(want byte) (feedSize, error) {
	kind, text, err := t.peer.receive(t.buffer)
	if err == nil && kind != want {
		err = fmt.Errorf("%w: it says %q for %q", errFeed, kind, want)
	}
	var size feedSize
	if err == nil {
		err = parseFeed(text, &size)
	}
	if err == nil && (size.Bytes < 0 || size.Files < 0) {
		err = fmt.Errorf("%w: %d bytes in %d files", errFeed, size.Bytes, size.Files)
	}
	return size, err
}

// Read implements io.Reader of the stream: its end is that of the copy, which is said, and
// never that of the connection.
func (t *taking) Read(part []byte) (int, error) {
	for len(t.left) == 0 {
		if t.end.Sum != nil {
			return 0, io.EOF
		}
		kind, text, err := t.peer.receive(t.buffer)
		switch {
		case err != nil:
			return 0, err
		case kind == feedData:
			t.sum.Write(text) // never fails
			t.left = text
		case kind == feedEnd:
			if err := parseFeed(text, &t.end); err != nil {
				return 0, err
			}
			if len(t.end.Sum) != sha256.Size {
				return 0, fmt.Errorf("%w: a sum of %d bytes", errFeed, len(t.end.Sum))
			}
		default:
			return 0, fmt.Errorf("%w: %q in the midst of the data", errFeed, kind)
		}
	}
	n := copy(part, t.left)
	t.left = t.left[n:]
	return n, nil
}

// boundedFiles takes no more than was announced.
type boundedFiles struct {
	to    *streamFiles
	bytes int64
	left  feedSize
}

// write implements streamSink.
func (b *boundedFiles) write(name string, at int64, part []byte) error {
	if b.left.Bytes -= int64(len(part)); b.left.Bytes < 0 || at > b.bytes {
		return fmt.Errorf("%w: more bytes than the copy has", errFeed)
	}
	return b.to.write(name, at, part)
}

// end implements streamSink.
func (b *boundedFiles) end(name string) error {
	if b.left.Files--; b.left.Files < 0 {
		return fmt.Errorf("%w: more files than the copy has", errFeed)
	}
	return b.to.end(name)
}
