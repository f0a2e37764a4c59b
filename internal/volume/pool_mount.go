package volume

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poolFlags: no dates of reading, and neither devices nor rights out of the image.
const poolFlags = unix.MS_NOATIME | unix.MS_NODEV | unix.MS_NOSUID

// The log's buffers are as large as they get: a commit of many sessions is one
// write. With discard, what is freed in the pool is free on the disk as well.
const (
	poolMountOptions = "logbsize=256k"
	poolDiscard      = ",discard"
)

// super is what the first block of an XFS says.
type super struct {
	uuid       [16]byte
	blockBytes uint32
	blocks     uint64
	imaxpct    uint32 // only from a mounted one
}

// readSuper reads it from an image, big-endian as on disk.
func readSuper(path string) (super, error) {
	file, err := os.Open(path)
	if err != nil {
		return super{}, fmt.Errorf("open the image of the pool: %w", err)
	}
	defer file.Close()
	var raw [48]byte
	if _, err := file.ReadAt(raw[:], 0); err != nil || string(raw[:4]) != "XFSB" {
		return super{}, poolErrorf("%s is not an XFS image (%v); it was left unchanged: move it away if it is not needed", path, err)
	}
	return super{uuid: [16]byte(raw[32:48]), blockBytes: binary.BigEndian.Uint32(raw[4:]), blocks: binary.BigEndian.Uint64(raw[8:])}, nil
}

// The kernel's XFS_IOC_FSGEOMETRY_V4 and XFS_IOC_FSGROWFSDATA, which x/sys does not
// have: _IOR('X', 124, 112 bytes) and _IOW('X', 110, 16 bytes).
const (
	xfsGeometryBytes = 112
	xfsGeometry      = 2<<30 | xfsGeometryBytes<<16 | 'X'<<8 | 124
	xfsGrow          = 1<<30 | 16<<16 | 'X'<<8 | 110
)

// geometry asks a mounted XFS.
func geometry(dir *os.File) (super, error) {
	var raw [xfsGeometryBytes]byte
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), xfsGeometry, uintptr(unsafe.Pointer(&raw))); errno != 0 {
		return super{}, &os.PathError{Op: "XFS geometry", Path: dir.Name(), Err: errno}
	}
	at := binary.NativeEndian
	return super{blockBytes: at.Uint32(raw[0:]), imaxpct: at.Uint32(raw[28:]), blocks: at.Uint64(raw[32:]), uuid: [16]byte(raw[64:80])}, nil
}

// Mounted says if our file system is mounted at Dir: the device below it serves our
// image, and the kernel names the image's id. Anything else there is an error.
func (p Pool) Mounted() (bool, error) {
	number, found, err := mountedAt(p.Dir)
	if err != nil || !found {
		return false, err
	}
	device, err := openLoopNumber(number)
	if err != nil {
		return false, poolErrorf("another file system is mounted at %s (%v): unmount it", p.Dir, err)
	}
	defer device.Close()
	var image unix.Stat_t
	if err := unix.Stat(p.Image, &image); err != nil {
		return false, poolErrorf("a loop device is mounted at %s, but %s is missing: %v", p.Dir, p.Image, err)
	}
	info, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
	if err != nil || !serves(info, &image) {
		return false, poolErrorf("not %s but another file system is mounted at %s, from %s: unmount it", p.Image, p.Dir, device.Name())
	}
	want, err := readSuper(p.Image)
	if err != nil {
		return false, err
	}
	dir, err := os.Open(p.Dir)
	if errors.Is(err, unix.EIO) {
		return true, nil // ours, by its device, and shut down after a disk error
	}
	if err != nil {
		return false, fmt.Errorf("look at the pool: %w", err)
	}
	defer dir.Close()
	if got, err := geometry(dir); err != nil || got.uuid != want.uuid {
		return false, poolErrorf("the file system mounted at %s is not that of %s (%v)", p.Dir, p.Image, err)
	}
	return true, nil
}

// mount adopts what is mounted or mounts it, which replays XFS's log after a crash.
func (p Pool) mount(preallocated bool) error {
	mounted, err := p.Mounted()
	if err != nil {
		return err
	}
	if mounted {
		err := p.alive()
		if err == nil {
			return p.remount(preallocated)
		}
		// After a write error XFS takes nothing until it is mounted anew.
		if failure := p.Unmount(); failure != nil {
			return fmt.Errorf("mount the pool anew, which a disk error has shut down (%w): %w", err, failure)
		}
	}
	return p.mountFresh(preallocated)
}

func (p Pool) mountFresh(preallocated bool) error {
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return fmt.Errorf("make the mount point: %w", err)
	}
	if entries, err := os.ReadDir(p.Dir); err != nil || len(entries) != 0 {
		return poolErrorf("%s is not empty: the pool would hide what is in it (%v); move it away", p.Dir, err)
	}
	if _, err := readSuper(p.Image); err != nil {
		return err
	}
	image, err := openImage(p.Image)
	if err != nil {
		return err
	}
	defer image.Close()
	device, err := openLoop(image)
	if err != nil {
		return err
	}
	defer device.Close() // the mount holds it from then on
	space, err := imageSpace(image)
	if err != nil {
		return err
	}
	options := poolMountOptions
	if !preallocated && !space.backed() {
		options += poolDiscard
	}
	err = unix.Mount(device.Name(), p.Dir, "xfs", poolFlags, options)
	switch {
	case errors.Is(err, unix.ENODEV):
		return poolErrorf("a pool needs XFS, which this kernel does not have")
	case errors.Is(err, unix.EUCLEAN):
		return poolErrorf("the file system in %s is damaged: look at the kernel's log, then run xfs_repair on it", p.Image)
	case err != nil:
		return fmt.Errorf("mount %s at %s: %w", device.Name(), p.Dir, err)
	}
	if !Reflink(p.Dir) {
		// Full, or an image of another making.
		if free, err := FreeBytes(p.Dir); err == nil && free > poolUnit {
			return poolErrorf("the file system in %s cannot clone files: it was made without reflink=1", p.Image)
		}
	}
	return nil
}

// remount ends discarding, which would give the disk back what was preallocated.
func (p Pool) remount(preallocated bool) error {
	if !preallocated {
		return nil
	}
	if err := unix.Mount("", p.Dir, "", unix.MS_REMOUNT|poolFlags, "nodiscard"); err != nil {
		return fmt.Errorf("mount the pool without discard: %w", err)
	}
	return nil
}

// alive tries to make a file. A full pool is alive.
func (p Pool) alive() error {
	file, err := os.CreateTemp(p.Dir, ".alive.*"+tempSuffix)
	if errors.Is(err, unix.ENOSPC) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// finishGrowth makes the mounted file system as large as the image, after Extend or
// in place of one that was cut off. Without a mount it does nothing.
func (p Pool) finishGrowth() error {
	mounted, err := p.Mounted()
	if err != nil || !mounted {
		return err
	}
	dir, err := os.Open(p.Dir)
	if err != nil {
		return fmt.Errorf("grow the pool: %w", err)
	}
	defer dir.Close()
	now, err := geometry(dir)
	if err != nil {
		return fmt.Errorf("grow the pool: %w", err)
	}
	info, err := os.Stat(p.Image)
	if err != nil {
		return fmt.Errorf("grow the pool: %w", err)
	}
	blocks := uint64(info.Size()) / uint64(now.blockBytes)
	const groupBlocksMin = 64 // XFS leaves a smaller rest unused
	if blocks < now.blocks+groupBlocksMin {
		return nil
	}
	number, _, err := mountedAt(p.Dir)
	if err != nil {
		return fmt.Errorf("grow the pool: %w", err)
	}
	device, err := openLoopNumber(number)
	if err != nil {
		return fmt.Errorf("grow the pool: %w", err)
	}
	defer device.Close()
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("grow the device of the pool: %w", err)
	}
	var order [16]byte
	binary.NativeEndian.PutUint64(order[0:], blocks)
	binary.NativeEndian.PutUint32(order[8:], now.imaxpct)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), xfsGrow, uintptr(unsafe.Pointer(&order)))
	if errno != 0 && errno != unix.EWOULDBLOCK { // the latter: somebody else is growing it
		return fmt.Errorf("grow the pool: %w", errno)
	}
	return nil
}

// Unmount takes the pool down: ErrPoolBusy while a process works in it. It may be
// repeated.
func (p Pool) Unmount() error {
	mounted, err := p.Mounted()
	if err != nil {
		return err
	}
	if mounted {
		err := unix.Unmount(p.Dir, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("unmount %s: %w", p.Dir, ErrPoolBusy)
		}
		if err != nil {
			return fmt.Errorf("unmount %s: %w", p.Dir, err)
		}
	}
	image, err := openImage(p.Image)
	if err != nil {
		return err
	}
	defer image.Close()
	return detachLoop(image)
}
