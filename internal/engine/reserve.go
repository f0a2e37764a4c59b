package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"kurabe"
	"kurabe/internal/volume"
)

// Bounds of the reserve: a hundredth of the disk, but what a few engines need to
// write a checkpoint at least, and no more than any of them needs. On a disk so
// small that this would be a large part of it, an eighth.
const (
	reserveBytesMin = 256 << 20
	reserveBytesMax = 4 * kurabe.GiB
	reserveShare    = 100
	reserveSmall    = 8
)

// Reserve is space that Kurabe keeps on the disk of the homes. It is given up when
// the disk is full, so that engines can shut down and start cleanly, and made again
// when there is room.
type Reserve interface {
	// Bytes is how large the reserve is when it is held.
	Bytes() int64
	// Held says whether the space is taken.
	Held() bool
	// Make takes the space. It may be repeated, also after it was cut off; when it
	// fails nothing is taken. The caller sees to it that the disk has room.
	Make() error
	// Free gives the space back. It may be repeated.
	Free() error
}

// fileReserve is a preallocated file beside the homes.
type fileReserve struct {
	path  string
	bytes int64
}

// Reserve describes the reserve of the disk that the homes are on; it makes none.
func (l *Lifecycle) Reserve() (Reserve, error) {
	dir := filepath.Dir(l.c.Homes)
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return nil, fmt.Errorf("size the reserve: %w", &fs.PathError{Op: "statfs", Path: dir, Err: err})
	}
	return &fileReserve{path: filepath.Join(dir, "reserve"), bytes: reserveBytes(int64(st.Blocks) * st.Frsize)}, nil
}

// reserveBytes is the size of the reserve of a disk.
func reserveBytes(disk int64) int64 {
	return min(max(disk/reserveShare, reserveBytesMin), reserveBytesMax, disk/reserveSmall)
}

// Bytes implements Reserve.
func (r *fileReserve) Bytes() int64 { return r.bytes }

// Held implements Reserve.
func (r *fileReserve) Held() bool {
	info, err := volume.Lstat(r.path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Blocks*512 >= r.bytes // the unit of st_blocks on every file system
}

// Make implements Reserve.
func (r *fileReserve) Make() error {
	f, err := volume.OpenFile(r.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make the reserve: %w", err)
	}
	err = errors.Join(f.Truncate(r.bytes), syscall.Fallocate(int(f.Fd()), 0, 0, r.bytes), f.Sync())
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("make the reserve of %s: %w", kurabe.FormatBytes(r.bytes), err), r.Free())
	}
	return volume.SyncDir(filepath.Dir(r.path))
}

// Free implements Reserve.
func (r *fileReserve) Free() error {
	if err := volume.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("free the reserve: %w", err)
	}
	return nil
}

// spareBytes stay free beside a copy: databases on the same disk write on.
const spareBytes = 512 << 20

// NeedRoom refuses a copy of so many bytes into a folder whose disk would be full
// with it, before any of it is written.
func NeedRoom(dir string, bytes int64) error {
	free, err := volume.FreeBytes(dir)
	if err != nil {
		return err
	}
	if free < bytes+spareBytes {
		return fmt.Errorf("a copy of %s needs more than the %s that are free on the disk of %s",
			kurabe.FormatBytes(bytes), kurabe.FormatBytes(free), dir)
	}
	return nil
}

// roomToCopy is NeedRoom where nothing can be cloned to dst.
func roomToCopy(src, dst string) error {
	if volume.Reflink(filepath.Dir(dst)) {
		return nil
	}
	bytes, err := volume.UsedBytes(src)
	if err != nil {
		return err
	}
	return NeedRoom(filepath.Dir(dst), bytes)
}
