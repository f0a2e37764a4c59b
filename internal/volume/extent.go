package volume

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From linux/fiemap.h.
const (
	fiemapIoctl      = 0xC020660B // _IOWR('f', 11, struct fiemap)
	fiemapLast       = 0x1
	fiemapUnknown    = 0x2
	fiemapShared     = 0x2000
	fiemapExtentsMax = 1024 // 56 KiB a call
)

type fiemapExtent struct {
	logical, physical, length uint64
	_                         [2]uint64
	flags                     uint32
	_                         [3]uint32
}

type fiemap struct {
	start, length           uint64
	flags, mapped, count, _ uint32
	extents                 [fiemapExtentsMax]fiemapExtent
}

// OwnBytes is what would be free if a tree were removed: blocks that it shares with
// no clone. Where the file system cannot say so, as one without clones, it is what
// is allocated. The price is a look at each extent, so it is not for every second.
func OwnBytes(path string) (int64, error) {
	return ownBytes(path, func() error { return nil })
}

// OwnBytesSlowly is OwnBytes beside other work: of the time that it takes it works
// one part in share and rests the others. It ends soon after ctx, with its error.
func OwnBytesSlowly(ctx context.Context, path string, share int) (int64, error) {
	b := newBreaks(ctx, share)
	sum, err := ownBytes(path, b.step)
	if err == nil {
		err = b.rest()
	}
	return sum, err
}

// ownBytes calls between often, and ends with its error.
func ownBytes(path string, between func() error) (int64, error) {
	var sum int64
	ask := &fiemap{}
	err := WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = between()
		}
		if err != nil {
			return ignoreMissing(err)
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreMissing(err)
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || st.Blocks == 0 {
			return nil
		}
		all := st.Blocks * blockBytes
		if !info.Mode().IsRegular() {
			sum += all
			return nil
		}
		shared, err := sharedBytes(name, ask, between)
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) {
			shared, err = 0, nil
		}
		sum += max(0, all-shared)
		return ignoreMissing(err)
	})
	return sum, err
}

func sharedBytes(path string, ask *fiemap, between func() error) (int64, error) {
	file, err := Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	var shared uint64
	for start := uint64(0); ; {
		*ask = fiemap{start: start, length: ^uint64(0) - start, count: fiemapExtentsMax}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, file.Fd(), fiemapIoctl, uintptr(unsafe.Pointer(ask))); errno != 0 {
			return 0, errno
		}
		for _, e := range ask.extents[:ask.mapped] {
			if e.flags&fiemapShared != 0 && e.flags&fiemapUnknown == 0 {
				shared += e.length
			}
			start = e.logical + e.length
		}
		if ask.mapped == 0 || ask.extents[ask.mapped-1].flags&fiemapLast != 0 {
			return int64(shared), nil
		}
		if err := between(); err != nil {
			return 0, err
		}
	}
}
