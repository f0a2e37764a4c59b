package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Device is a block device by number.
type Device struct{ Major, Minor uint32 }

func (d Device) String() string { return fmt.Sprintf("%d:%d", d.Major, d.Minor) }

// IsZero means no device.
func (d Device) IsZero() bool { return d == Device{} }

func parseDevice(text string) (Device, bool) {
	major, minor, _ := strings.Cut(strings.TrimSpace(text), ":")
	ma, err1 := strconv.ParseUint(major, 10, 32)
	mi, err2 := strconv.ParseUint(minor, 10, 32)
	return Device{uint32(ma), uint32(mi)}, err1 == nil && err2 == nil
}

// NoDeviceError is a file system without a disk of its own that could be throttled.
type NoDeviceError struct{ Path, FileSystem string }

func (e *NoDeviceError) Error() string {
	return fmt.Sprintf("cannot limit I/O in %s: its file system (%s) is not on a disk of this host", e.Path, e.FileSystem)
}

// Retryable: the data has to be put elsewhere.
func (e *NoDeviceError) Retryable() bool { return false }

// DeviceOf is the whole disk under a path, for the kernel throttles disks and not
// partitions. Device mapper, RAID and loop devices are disks of their own here:
// I/O is counted where the file system hands it in.
func DeviceOf(path string) (Device, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Device{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	device := Device{unix.Major(st.Dev), unix.Minor(st.Dev)}
	if device.Major == 0 {
		// btrfs numbers its subvolumes itself; the mount table knows its disk.
		source, fsType := mountOf(path)
		if fsType != "btrfs" || unix.Stat(source, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
			return Device{}, &NoDeviceError{path, fsType}
		}
		device = Device{unix.Major(st.Rdev), unix.Minor(st.Rdev)}
	}
	return wholeDisk("/sys", device)
}

// wholeDisk goes from a partition to its disk, which is the folder above in sysfs.
func wholeDisk(sys string, device Device) (Device, error) {
	dir, err := filepath.EvalSymlinks(filepath.Join(sys, "dev/block", device.String()))
	if err != nil {
		return Device{}, fmt.Errorf("find disk of %v: %w", device, err)
	}
	if !exists(filepath.Join(dir, "partition")) {
		return device, nil
	}
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "dev"))
	if err != nil {
		return Device{}, fmt.Errorf("find disk of %v: %w", device, err)
	}
	disk, ok := parseDevice(string(raw))
	if !ok {
		return Device{}, fmt.Errorf("find disk of %v: %w", device, errors.New("sysfs has no device number"))
	}
	return disk, nil
}

// mountOf finds the mount of a path by its number, since mounts hide each other.
func mountOf(path string) (source, fsType string) {
	var stx unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &stx) != nil || stx.Mask&unix.STATX_MNT_ID == 0 {
		return "", "unknown"
	}
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "unknown"
	}
	for _, line := range strings.Split(string(raw), "\n") {
		// "36 35 0:31 / /mnt opts tags - type source options", see proc(5).
		left, right, found := strings.Cut(line, " - ")
		id, _, _ := strings.Cut(left, " ")
		words := strings.Fields(right)
		if found && id == strconv.FormatUint(stx.Mnt_id, 10) && len(words) > 1 {
			return words[1], words[0]
		}
	}
	return "", "unknown"
}
