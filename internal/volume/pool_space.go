package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// PoolSpace is how full a pool and its disk are, in bytes.
type PoolSpace struct {
	SizeBytes     int64 // of the image
	ImageBytes    int64 // of it, what the disk has given
	HostFreeBytes int64 // of the disk, for an unprivileged user
	HostSizeBytes int64

	UsedBytes int64 // in the pool, without what is held
	FreeBytes int64 // in the pool
	HeldBytes int64 // in the pool, by Balance
}

// Bounds of the margin of the disk that the pool never counts on: room for what
// others write between two looks of Balance, and for the file system's own needs.
const (
	marginShare    = 50 // a fiftieth of the disk
	marginBytesMin = 64 << 20
	marginBytesMax = 2 << 30
)

func (s PoolSpace) margin() int64 {
	return min(max(s.HostSizeBytes/marginShare, marginBytesMin), marginBytesMax)
}

// backed says if the disk has given everything already.
func (s PoolSpace) backed() bool { return s.ImageBytes >= s.SizeBytes }

// Headroom is what the disk can still give, before databases are told that the pool
// is full; at most 0 when it cannot.
func (s PoolSpace) Headroom() int64 { return s.HostFreeBytes - s.margin() }

// holdBytes is how much of the pool has to be held so that what is left free in it
// can really be written.
func (s PoolSpace) holdBytes() int64 {
	if s.backed() || s.SizeBytes-s.ImageBytes <= s.Headroom() {
		return 0 // the disk has room for the whole of it
	}
	// What XFS has promised and not written yet comes first: dirty pages, and files
	// that were preallocated.
	owed := max(s.UsedBytes-s.ImageBytes, 0)
	return max(s.FreeBytes+s.HeldBytes-max(s.Headroom()-owed, 0), 0)
}

// imageSpace looks at the image and its disk alone.
func imageSpace(image *os.File) (PoolSpace, error) {
	info, err := image.Stat()
	if err != nil {
		return PoolSpace{}, fmt.Errorf("look at the image of the pool: %w", err)
	}
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(image.Fd()), &disk); err != nil {
		return PoolSpace{}, fmt.Errorf("look at the disk of the pool: %w", err)
	}
	s := PoolSpace{SizeBytes: info.Size(), HostFreeBytes: int64(disk.Bavail) * disk.Frsize, HostSizeBytes: int64(disk.Blocks) * disk.Frsize}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.ImageBytes = st.Blocks * blockBytes
	}
	return s, nil
}

// Space looks at a mounted pool.
func (p Pool) Space() (PoolSpace, error) {
	image, err := openImage(p.Image)
	if err != nil {
		return PoolSpace{}, err
	}
	defer image.Close()
	s, err := imageSpace(image)
	if err != nil {
		return s, err
	}
	var pool unix.Statfs_t
	if err := unix.Statfs(p.Dir, &pool); err != nil {
		return s, fmt.Errorf("look at the pool: %w", err)
	}
	var held unix.Stat_t
	if err := unix.Lstat(p.balloon(), &held); err != nil && !errors.Is(err, unix.ENOENT) {
		return s, fmt.Errorf("look at the pool: %w", err)
	}
	s.HeldBytes = held.Blocks * blockBytes
	s.FreeBytes = int64(pool.Bavail) * pool.Frsize
	s.UsedBytes = int64(pool.Blocks-pool.Bfree)*pool.Frsize - s.HeldBytes
	return s, nil
}

// balloon is the file that holds space: blocks that are allocated in the pool and
// never written, so that they cost the disk nothing.
func (p Pool) balloon() string { return filepath.Join(p.Dir, ".held") }

// balloonStep is the least change worth a transaction.
const balloonStep = 4 << 20

// Balance makes the free space of the pool no more than its disk can give, and
// finishes a growth. A sparse image promises more than it has: a write that the disk
// has no block for is an I/O error inside the pool, after which an engine stops and
// may lose what it was told is safe. Held back beforehand, the same shortage is an
// ordinary full disk. It holds as long as others do not take the margin between two
// calls.
func (p Pool) Balance() (PoolSpace, error) {
	if err := p.finishGrowth(); err != nil {
		return PoolSpace{}, err
	}
	s, err := p.Space()
	if err != nil {
		return s, err
	}
	want := s.holdBytes()
	if d := want - s.HeldBytes; d == 0 || want != 0 && d < balloonStep && d > -balloonStep {
		return s, nil
	}
	file, err := os.OpenFile(p.balloon(), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return s, fmt.Errorf("hold space in the pool: %w", err)
	}
	err = inflate(file, s.HeldBytes, want)
	if err = errors.Join(err, file.Close()); err != nil {
		return s, fmt.Errorf("hold space in the pool: %w", err)
	}
	return p.Space()
}

// inflate makes the file as large as is wanted, or as the pool has room for.
func inflate(file *os.File, now, want int64) error {
	if want < now {
		return file.Truncate(want)
	}
	for step := want - now; step >= poolUnit; {
		err := unix.Fallocate(int(file.Fd()), 0, now, min(step, want-now))
		switch {
		case err == nil:
			if now += min(step, want-now); now == want {
				return nil
			}
		case errors.Is(err, unix.ENOSPC):
			step /= 2
		default:
			return err
		}
	}
	return nil
}
