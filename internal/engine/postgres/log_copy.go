package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
	"kurabe/internal/volume"
)

// copyBytes is how much of a segment is read, checked and written at a time.
const copyBytes = 1 << 20

// segmentReader copies from the segments of a running server.
type segmentReader struct {
	root     *volume.Root // the data folder; no link of the engine's account leads out of it
	segments wal.Segments
	pages    wal.PageCheck
	past     wal.Lineage // of the timeline that was asked for last
	// newest is the timeline that the server writes, as far as it has said. A bound within one
	// file does not tell it.
	newest uint32
	// empty is where an empty page was met: only such follow in its segment.
	empty wal.LSN
}

// Copy implements engine.Log. A page's header is checked before any of the page is
// written.
//
// An older timeline is read to the segment in which the next one began, which has all of it.
// A timeline that did not lead to the one that is written, or a copy that ended within such
// a segment, mean that the data folder was exchanged behind the log, so they are ErrLogGone.
func (l *walLog) Copy(ctx context.Context, from, to kurabe.LogPosition, w io.Writer) (kurabe.LogPosition, error) {
	next, err := l.reader.copy(ctx, from, to, w)
	if err != nil {
		return next, fmt.Errorf("copy log from %s: %w", from, err)
	}
	return next, nil
}

func (r *segmentReader) copy(ctx context.Context, from, to kurabe.LogPosition, w io.Writer) (kurabe.LogPosition, error) {
	timeline, begin, err := r.segments.Place(from)
	if err != nil {
		return from, err
	}
	if to.File == from.File {
		to.Offset = min(to.Offset, r.segments.Bytes) // a bound, not a place
	}
	other, end, err := r.segments.Place(to)
	if err != nil {
		return from, err
	}
	from = r.segments.Position(timeline, begin)
	past := wal.Lineage{{Timeline: timeline, End: wal.Endless}}
	if newest := max(other, r.newest); newest != timeline {
		if past, err = r.history(newest); err != nil {
			return from, err
		}
		if past.At(r.segments, begin) != timeline {
			return from, fmt.Errorf("%w: it goes on in timeline %d after %d", engine.ErrLogGone, newest, timeline)
		}
	}
	// Before the file is looked for: a segment may not exist before its first byte.
	if end <= begin {
		return from, nil
	}
	end = min(end, r.segments.Begin(begin)+wal.LSN(r.segments.Bytes))
	file, err := r.open(from.File)
	if err != nil {
		return from, err
	}
	defer file.Close()
	if err := r.copyPart(ctx, part{file, from.File, timeline, begin, end}, w); err != nil {
		return from, err
	}
	return r.segments.Position(past.At(r.segments, end), end), nil
}

// open refuses what is not a whole segment. The server makes them at full length
// before it gives them their name.
func (r *segmentReader) open(name string) (*os.File, error) {
	file, err := r.root.Open(filepath.Join(wal.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no segment %s", engine.ErrLogGone, name)
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() != r.segments.Bytes) {
		err = fmt.Errorf("%w: %s is no segment of %d bytes", engine.ErrLogGone, name, r.segments.Bytes)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// part is what is copied of one segment.
type part struct {
	file       *os.File
	name       string
	timeline   uint32
	begin, end wal.LSN
}

func (r *segmentReader) copyPart(ctx context.Context, p part, w io.Writer) error {
	segment := r.segments.Begin(p.begin)
	buffer := make([]byte, copyBytes)
	// Whole pages are read, so that also the one that begin is in is checked.
	for at := p.begin - p.begin%wal.PageBytes; at < p.end; at += copyBytes {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n := min(copyBytes, int64(segment)+r.segments.Bytes-int64(at))
		chunk := buffer[:n]
		if _, err := p.file.ReadAt(chunk, int64(at-segment)); err != nil {
			return err
		}
		if err := r.checkChunk(chunk, at, p); err != nil {
			return fmt.Errorf("%w: segment %s: %w", engine.ErrLogGone, p.name, err)
		}
		if err := r.same(p); err != nil {
			return err
		}
		if _, err := w.Write(chunk[max(p.begin, at)-at : min(p.end-at, wal.LSN(n))]); err != nil {
			return err
		}
	}
	return nil
}

// checkChunk looks at each page that the copy takes bytes of. Empty ones are right at
// a segment's end only: the replay sees the record that announces them.
func (r *segmentReader) checkChunk(chunk []byte, at wal.LSN, p part) error {
	for n := wal.LSN(0); n < wal.LSN(len(chunk)) && at+n < p.end; n += wal.PageBytes {
		page := chunk[n : n+wal.PageBytes]
		err := r.pages.Check(page, p.timeline, at+n)
		switch {
		case err == nil && r.empty < at+n && r.segments.Begin(r.empty) == r.segments.Begin(at):
			return fmt.Errorf("the page at %s follows an empty one", at+n)
		case errors.Is(err, wal.ErrZeroPage) && len(bytes.Trim(page, "\x00")) == 0 && (at+n)%wal.LSN(r.segments.Bytes) != 0:
			r.empty = at + n
		case err != nil:
			return fmt.Errorf("page at %s: %w", at+n, err)
		}
	}
	return nil
}

// same proves that what was just read is the segment's: the server takes the name
// from a file before it writes something else into it.
func (r *segmentReader) same(p part) error {
	info, err := p.file.Stat()
	if err != nil {
		return err
	}
	named, err := r.root.Lstat(filepath.Join(wal.Dir, p.name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, named) {
		return fmt.Errorf("%w: segment %s was removed meanwhile", engine.ErrLogGone, p.name)
	}
	return err
}
