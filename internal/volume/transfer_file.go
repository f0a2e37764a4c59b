package volume

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// transferBytes is one read and write: large enough for the disk, small enough
	// that pacing and cancelling are prompt.
	transferBytes = 1 << 20
	// flushBytes is how much is written before the kernel is told to begin writing
	// it out; as much again may be on its way.
	flushBytes = 8 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// copier is what one worker keeps from file to file.
type copier struct {
	*transfer
	buf, zero []byte
}

func newCopier(t *transfer) *copier {
	return &copier{transfer: t, buf: make([]byte, transferBytes), zero: make([]byte, transferBytes)}
}

// file clones one file, or copies and sums it.
func (c *copier) file(ctx context.Context, rel string) (err error) {
	in, err := Open(filepath.Join(c.src, rel))
	if err != nil {
		return CopyOptions{Live: c.opts.Live}.vanished(err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := Create(filepath.Join(c.dst, rel))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	f := File{Path: rel}
	if info.Size() > 0 && cloneInParts(ctx, out, in, info.Size()) == nil {
		got, err := out.Stat()
		if err != nil {
			return err
		}
		f.Size, f.Cloned = got.Size(), true
		c.advance(f.Size)
	} else {
		if info.Size() > 0 {
			c.cloned.Store(false)
		}
		// Not here, not between these, or not for this file: any reason means copy.
		if f.Size, f.Sum, err = c.copy(ctx, in, out, info); err != nil {
			return &fs.PathError{Op: "copy", Path: in.Name(), Err: err}
		}
		f.Summed = true
	}
	c.add(f)
	// The owner first, as that clears bits of the mode.
	if c.opts.Owner != nil {
		if err := c.opts.Owner.Own(out); err != nil {
			return err
		}
	}
	return out.Chmod(info.Mode().Perm())
}

// cloneInParts has one file share all blocks of another, which may grow meanwhile. The
// kernel holds the file while it clones, also against readers as soon as somebody wants
// to write, and each extent takes time: a fragmented gigabyte in one call stopped
// clients for half a second.
func cloneInParts(ctx context.Context, to, from *os.File, size int64) error {
	for at := int64(0); at < size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r := unix.FileCloneRange{Src_fd: int64(from.Fd()), Src_offset: uint64(at), Src_length: cloneChunk, Dest_offset: uint64(at)}
		if at+cloneChunk >= size {
			r.Src_length = 0 // to the end, which is no whole block
		}
		if err := unix.IoctlFileCloneRange(int(to.Fd()), &r); err != nil {
			info, statErr := from.Stat()
			if statErr != nil || info.Size() >= size {
				return err
			}
			size = info.Size() // It was cut meanwhile.
			continue
		}
		at += cloneChunk
	}
	return nil
}

// copy copies what the file held when it was opened: what is appended meanwhile is
// the log's to bring.
func (c *copier) copy(ctx context.Context, in, out *os.File, info fs.FileInfo) (size int64, sum uint32, err error) {
	// A file that MariaDB compressed by punching holes would grow to its full size.
	st, ok := info.Sys().(*syscall.Stat_t)
	sparse := ok && st.Blocks*blockBytes < info.Size()
	flushed := int64(0)
	for size < info.Size() {
		if err := c.pace.Wait(ctx, min(transferBytes, info.Size()-size)); err != nil {
			return 0, 0, err
		}
		n, err := c.passing.ReadAt(in, c.buf[:min(transferBytes, info.Size()-size)], size)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		if n == 0 {
			break // It was cut meanwhile.
		}
		chunk := c.buf[:n]
		sum = crc32.Update(sum, castagnoli, chunk)
		if !sparse || !bytes.Equal(chunk, c.zero[:n]) {
			if err := c.write(out, chunk, size); err != nil {
				return 0, 0, err
			}
		}
		size += int64(n)
		c.advance(int64(n))
		if size-flushed >= flushBytes {
			c.flush(out, flushed, size)
			flushed = size
		}
	}
	c.flush(out, flushed, size)
	return size, sum, out.Truncate(size)
}

func (c *copier) write(out *os.File, chunk []byte, at int64) (err error) {
	if c.opts.Cached {
		_, err = out.WriteAt(chunk, at)
	} else {
		_, err = c.passing.WriteAt(out, chunk, at)
	}
	return err
}

func (c *copier) flush(out *os.File, from, to int64) { flushBehind(out, from, to, c.opts.Cached) }

// flushBehind has the kernel begin to write a part, and waits for the one before. It is
// about when, not about safety: an error will show when all is synced.
func flushBehind(out *os.File, from, to int64, cached bool) {
	fd := int(out.Fd())
	_ = unix.SyncFileRange(fd, from, to-from, unix.SYNC_FILE_RANGE_WRITE)
	if from == 0 {
		return
	}
	before := max(0, from-flushBytes)
	_ = unix.SyncFileRange(fd, before, from-before,
		unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
	if cached {
		return
	}
	// Nobody will read it soon, and the database has use for the memory.
	_ = unix.Fadvise(fd, before, from-before, unix.FADV_DONTNEED)
}

// Trickle is a file that is written from its begin to its end, of which the disk never
// has much to write at once: what others sync does not wait behind it.
type Trickle struct {
	*os.File
	passing       passing
	size, flushed int64
}

// WriteAt implements io.WriterAt, for parts in their order.
func (t *Trickle) WriteAt(p []byte, at int64) (int, error) {
	n, err := t.passing.WriteAt(t.File, p, at)
	t.size = max(t.size, at+int64(n))
	if t.size-t.flushed >= flushBytes {
		flushBehind(t.File, t.flushed, t.size, false)
		t.flushed = t.size
	}
	return n, err
}

// Close has the rest written too.
func (t *Trickle) Close() error {
	if t.size > t.flushed {
		flushBehind(t.File, t.flushed, t.size, false)
	}
	return t.File.Close()
}

// SumFile reads a file and returns the CRC-32C of its content and its size.
func SumFile(ctx context.Context, path string, pace *Pace) (sum uint32, size int64, err error) {
	in, err := Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer in.Close()
	buf := make([]byte, transferBytes)
	for {
		n, err := in.Read(buf)
		sum, size = crc32.Update(sum, castagnoli, buf[:n]), size+int64(n)
		// What was read is paid for, and no more: most files are a few pages.
		if err := pace.Wait(ctx, int64(n)); err != nil {
			return 0, 0, err
		}
		if errors.Is(err, io.EOF) {
			return sum, size, nil
		}
		if err != nil {
			return 0, 0, err
		}
	}
}

// SyncFS makes everything below path durable, in one call for its whole file
// system: a tree has too many files to sync one by one.
func SyncFS(path string) error { return syncFS(path) }

// Pace spreads bytes over time. The zero rate never waits.
type Pace struct {
	rate int64 // bytes a second

	mu   sync.Mutex // guards free
	free time.Time  // when what was asked for so far may have been moved
}

// NewPace returns a pace of that many bytes a second, 0 for no bound.
func NewPace(rate int64) *Pace { return &Pace{rate: rate} }

// Wait returns when n more bytes may be moved.
func (p *Pace) Wait(ctx context.Context, n int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.rate <= 0 {
		return nil
	}
	p.mu.Lock()
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	at := p.free
	p.free = at.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	p.mu.Unlock()
	if !at.After(now) {
		return nil
	}
	timer := time.NewTimer(at.Sub(now))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
