package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Pool is an XFS file system in one image file, for folders that are to be cloned
// on a disk whose own file system cannot. It needs root. The mount and its loop
// device belong to the kernel: they outlive us, and are found again by the inode of
// the image, whoever made them.
//
// One caller at a time makes, mounts and unmounts; Extend, Balance and Space may
// run beside it.
type Pool struct {
	Image string // its parent exists
	Dir   string // where it is mounted
	// Make runs mkfs.xfs on a file with these options.
	Make func(ctx context.Context, image string, options []string) error
}

// PoolOptions say what a pool is to be.
type PoolOptions struct {
	// SizeBytes is the size of the file system, 0 leaves it as it is; a new one gets
	// poolShare of the free disk then.
	SizeBytes int64
	// Preallocate takes the whole size from the disk at once.
	Preallocate bool
}

const (
	poolBytesMin = 1 << 30 // below, XFS has no room for a log of a useful size
	poolShare    = 0.8     // of the free disk
	// poolBlock is the sector of the device and the unit of sizes: direct I/O on the
	// image works in units of the disk's sectors, of which the largest are that.
	poolBlock = 4096
	poolUnit  = 1 << 20
)

// PoolError is what stands in the way of a pool, in words for whoever asked for it.
type PoolError struct{ Message string }

func (e *PoolError) Error() string { return e.Message }

// Retryable: somebody has to act.
func (e *PoolError) Retryable() bool { return false }

func poolErrorf(format string, args ...any) error {
	return &PoolError{fmt.Sprintf(format, args...)}
}

// ErrPoolBusy says that processes work in the pool.
var ErrPoolBusy = errors.New("the pool is in use")

// Exists says if there is an image: a pool that was made at some time.
func (p Pool) Exists() bool {
	_, err := os.Lstat(p.Image)
	return err == nil
}

// Ensure makes the pool what o says and mounts it. It may be cut off at any
// instruction and repeated.
func (p Pool) Ensure(ctx context.Context, o PoolOptions) error {
	if err := p.possible(); err != nil {
		return err
	}
	if err := p.sweep(); err != nil {
		return fmt.Errorf("clean up after a pool that was not finished: %w", err)
	}
	if !p.Exists() {
		if err := p.create(ctx, o); err != nil {
			return err
		}
	} else if o.SizeBytes != 0 || o.Preallocate {
		if err := p.Extend(o); err != nil {
			return err
		}
	}
	if err := p.mount(o.Preallocate); err != nil {
		return err
	}
	if err := p.finishGrowth(); err != nil {
		return err
	}
	return os.Chmod(p.Dir, 0o711) // engines' users pass through to their own folders
}

// possible finds what is missing on this machine.
func (p Pool) possible() error {
	if os.Geteuid() != 0 {
		return poolErrorf("a pool needs root, which alone may mount file systems")
	}
	if _, err := os.Stat(loopControl); err != nil {
		return poolErrorf("a pool needs loop devices, and this machine has no %s (%v): load the kernel's module loop, or give the container its devices", loopControl, err)
	}
	return nil
}

// sweep removes images that were never finished.
func (p Pool) sweep() error {
	left, err := filepath.Glob(escapeGlob(p.Image) + ".*" + tempSuffix)
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// create makes the image under a temporary name: what has its name is complete.
func (p Pool) create(ctx context.Context, o PoolOptions) error {
	parent := filepath.Dir(p.Image)
	if Reflink(parent) {
		return poolErrorf("the file system of %s already clones files: a pool is not needed and would only cost time", parent)
	}
	size, err := newPoolSize(parent, o.SizeBytes)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(parent, filepath.Base(p.Image)+".*"+tempSuffix)
	if err != nil {
		return fmt.Errorf("make the image of the pool: %w", err)
	}
	temp := file.Name()
	defer os.Remove(temp) // renamed by then, unless something failed
	err = file.Truncate(size)
	if err == nil && o.Preallocate {
		err = preallocate(file, size)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("make the image of the pool: %w", err)
	}
	options := []string{"-q", "-K", "-m", "reflink=1,crc=1", "-s", fmt.Sprintf("size=%d", poolBlock)}
	if err := p.Make(ctx, temp, options); err != nil {
		return fmt.Errorf("make the file system of the pool: %w", err)
	}
	if _, err := readSuper(temp); err != nil {
		return err
	}
	if err := syncFile(temp); err != nil {
		return fmt.Errorf("make the image of the pool: %w", err)
	}
	if err := os.Rename(temp, p.Image); err != nil {
		return fmt.Errorf("make the image of the pool: %w", err)
	}
	return SyncDir(parent)
}

// newPoolSize checks the size that was asked for, or chooses one.
func newPoolSize(parent string, asked int64) (int64, error) {
	free, err := FreeBytes(parent)
	if err != nil {
		return 0, fmt.Errorf("look at the disk of the pool: %w", err)
	}
	size := asked
	if size == 0 {
		size = int64(float64(free) * poolShare)
		if size > 8*poolBytesMin {
			size -= size % (1 << 30) // a figure that one can read
		}
	}
	size -= size % poolUnit
	switch {
	case asked != 0 && size < poolBytesMin:
		return 0, poolErrorf("a pool of %s is too small: XFS wants %s at least", showBytes(asked), showBytes(poolBytesMin))
	case size < poolBytesMin:
		return 0, poolErrorf("the disk of %s has %s free, and a pool needs %s at least", parent, showBytes(free), showBytes(poolBytesMin))
	case size > free:
		return 0, poolErrorf("a pool of %s does not fit: the disk of %s has %s free", showBytes(size), parent, showBytes(free))
	}
	return size, nil
}

// Extend makes the image larger, never smaller. The file system follows at once if
// it is mounted where we see it, else in finishGrowth of whoever does.
func (p Pool) Extend(o PoolOptions) error {
	file, err := openImage(p.Image)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock the image of the pool: %w", err)
	}
	space, err := imageSpace(file)
	if err != nil {
		return err
	}
	size := max(o.SizeBytes-o.SizeBytes%poolUnit, 0)
	switch {
	case size == 0:
		size = space.SizeBytes
	case size < space.SizeBytes:
		return poolErrorf("the pool has %s and cannot shrink to %s: XFS only grows", showBytes(space.SizeBytes), showBytes(size))
	case size > space.SizeBytes && size-space.ImageBytes > space.HostFreeBytes:
		return poolErrorf("a pool of %s does not fit: the disk has %s free beside the %s that the pool occupies", showBytes(size), showBytes(space.HostFreeBytes), showBytes(space.ImageBytes))
	}
	if size > space.SizeBytes {
		if err := errors.Join(file.Truncate(size), file.Sync()); err != nil {
			return fmt.Errorf("grow the image of the pool: %w", err)
		}
	}
	if o.Preallocate {
		if err := preallocate(file, size); err != nil {
			return fmt.Errorf("grow the image of the pool: %w", err)
		}
	}
	return p.finishGrowth()
}

// preallocate makes the disk give every block of the image now.
func preallocate(file *os.File, size int64) error {
	err := unix.Fallocate(int(file.Fd()), 0, 0, size)
	if errors.Is(err, unix.ENOSPC) {
		return poolErrorf("the disk cannot hold all %s of the pool: %v", showBytes(size), err)
	}
	return err
}

func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// openImage opens the image for a loop device, which writes through this handle.
func openImage(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, poolErrorf("there is no pool: %s does not exist", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open the image of the pool: %w", err)
	}
	return file, nil
}

// showBytes is "1.5 GiB".
func showBytes(n int64) string {
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}} {
		if n >= u.bytes {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(u.bytes)), ".0") + " " + u.name
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
