package volume

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// clonePage is the unit of what is cloned anew. The kernel lets no write to a file
	// pass while it clones a part of it, so what an engine writes in one piece within
	// such a unit, as the largest page of any, is there whole or not at all.
	clonePage = 64 << 10
	// cloneChunk bounds one call: whoever writes to the file waits for its end, which
	// takes as long as the part has extents.
	cloneChunk = 8 << 20
)

// More of linux/fiemap.h: the flags of an extent whose place is a place on the disk.
const (
	fiemapSync      = 0x1 // of the question: write out first
	fiemapUnwritten = 0x800
	fiemapMerged    = 0x1000
	fiemapPlain     = fiemapLast | fiemapUnwritten | fiemapMerged | fiemapShared
)

// mapped is a part of a file and where it lies on the disk.
type mapped struct {
	start, end, physical uint64
}

// span is a part of a file.
type span struct{ start, end uint64 }

// catchUp clones what differs. What the two files share the source cannot change in
// place: a write to it goes elsewhere. So where both lie at the same place on the disk
// the content is the same.
func (f *cloneFile) catchUp(ctx context.Context, ask *fiemap) (cloned int64, err error) {
	info, err := f.in.Stat()
	if err != nil {
		return 0, err
	}
	f.size = info.Size()
	had, err := f.out.Stat()
	if err != nil {
		return 0, err
	}
	if had.Size() > f.size {
		f.known = false
		if err := f.out.Truncate(f.size); err != nil {
			return 0, err
		}
	}
	spans, err := f.differing(ask)
	if err != nil {
		return 0, &fs.PathError{Op: "map", Path: f.in.Name(), Err: err}
	}
	f.known = f.known && len(spans) == 0
	for _, s := range spans {
		for at := s.start; at < s.end; at += cloneChunk {
			if ctx.Err() != nil {
				return cloned, context.Cause(ctx)
			}
			end := min(at+cloneChunk, s.end)
			if err := f.clone(at, end); err != nil {
				return cloned, f.unlessChanged(err)
			}
			cloned += int64(min(end, uint64(f.size)) - at)
		}
	}
	return cloned, f.settle()
}

// differing lists the parts of the source that the clone does not share.
func (f *cloneFile) differing(ask *fiemap) ([]span, error) {
	all := []span{{0, uint64(f.size)}}
	if f.size == 0 {
		return nil, nil
	}
	source, plain, err := mapOf(f.in, ask)
	if err != nil || !plain {
		return all, err
	}
	if !f.known {
		if err := f.learn(ask); err != nil {
			return all, err
		}
	}
	if !f.plain {
		return all, nil
	}
	return widen(difference(source, f.lies), uint64(f.size)), nil
}

// learn asks where the clone lies. As nobody else writes to it that stays true until it
// is changed here, so it need not be asked for while somebody stands still.
func (f *cloneFile) learn(ask *fiemap) (err error) {
	f.lies, f.plain, err = mapOf(f.out, ask)
	f.known = err == nil
	return err
}

// clone makes a part shared; one that reaches the end goes to the end that the source
// has then.
func (f *cloneFile) clone(start, end uint64) error {
	length := end - start
	if end >= uint64(f.size) {
		length = 0
	}
	err := unix.IoctlFileCloneRange(int(f.out.Fd()), &unix.FileCloneRange{
		Src_fd: int64(f.in.Fd()), Src_offset: start, Src_length: length, Dest_offset: start,
	})
	if err != nil {
		return &fs.PathError{Op: "clone", Path: f.in.Name(), Err: err}
	}
	return nil
}

// unlessChanged forgives what a cut of the source makes impossible: the next round sees
// it.
func (f *cloneFile) unlessChanged(failure error) error {
	info, err := f.in.Stat()
	if err == nil && info.Size() < f.size && errors.Is(failure, unix.EINVAL) {
		return nil
	}
	return failure
}

// settle gives the clone the length of the source, where that ends in a hole.
func (f *cloneFile) settle() error {
	info, err := f.out.Stat()
	if err != nil {
		return err
	}
	if info.Size() < f.size {
		return f.out.Truncate(f.size)
	}
	f.size = info.Size()
	return nil
}

// mapOf asks where a file lies. What is allocated and was never written is left out,
// as it reads like a hole and is cloned as one. plain is false where a place says
// nothing, as of content that is compressed or lies with the inode.
func mapOf(file *os.File, ask *fiemap) (all []mapped, plain bool, err error) {
	for start := uint64(0); ; {
		*ask = fiemap{start: start, length: math.MaxUint64 - start, count: fiemapExtentsMax}
		if start == 0 {
			ask.flags = fiemapSync
		}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, file.Fd(), fiemapIoctl, uintptr(unsafe.Pointer(ask))); errno != 0 {
			return nil, false, errno
		}
		for _, e := range ask.extents[:ask.mapped] {
			if e.flags&^fiemapPlain != 0 {
				return nil, false, nil
			}
			start = e.logical + e.length
			if e.flags&fiemapUnwritten == 0 {
				all = append(all, mapped{e.logical, start, e.physical})
			}
		}
		if ask.mapped == 0 || ask.extents[ask.mapped-1].flags&fiemapLast != 0 {
			return all, true, nil
		}
	}
}

// hole is a place that no extent has.
const hole = math.MaxUint64

// difference lists where two files lie at different places.
func difference(a, b []mapped) []span {
	var spans []span
	for at := uint64(0); ; {
		var x, y, xEnd, yEnd uint64
		a, x, xEnd = place(a, at)
		b, y, yEnd = place(b, at)
		end := min(xEnd, yEnd)
		if x != y {
			spans = append(spans, span{at, end})
		}
		if end == math.MaxUint64 {
			return spans
		}
		at = end
	}
}

// place says where a position lies, and to which position on that holds. It drops the
// extents before.
func place(list []mapped, at uint64) (rest []mapped, physical, end uint64) {
	for len(list) > 0 && list[0].end <= at {
		list = list[1:]
	}
	switch {
	case len(list) == 0:
		return list, hole, math.MaxUint64
	case at < list[0].start:
		return list, hole, list[0].start
	}
	return list, list[0].physical + at - list[0].start, list[0].end
}

// widen makes whole units of spans, within the length of a file.
func widen(spans []span, size uint64) []span {
	var wide []span
	for _, s := range spans {
		if s.start >= size {
			break
		}
		s.start -= s.start % clonePage
		if over := s.end % clonePage; over != 0 {
			s.end += clonePage - over
		}
		s.end = min(s.end, size)
		if n := len(wide); n > 0 && s.start <= wide[n-1].end {
			wide[n-1].end = max(s.end, wide[n-1].end)
			continue
		}
		wide = append(wide, s)
	}
	return wide
}
