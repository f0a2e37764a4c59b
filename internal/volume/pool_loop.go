package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	loopControl = "/dev/loop-control"
	loopMajor   = "7:"
	// Somebody else may take the free device that we were told of.
	loopTriesMax = 16
)

// findLoop opens the device that serves the image, nil when none does. The inode
// decides: names of files differ between mount namespaces. A second device on the
// same image would be a second cache of the same blocks, and the end of both.
func findLoop(image *os.File) (*os.File, error) {
	var want unix.Stat_t
	if err := unix.Fstat(int(image.Fd()), &want); err != nil {
		return nil, fmt.Errorf("look at the image of the pool: %w", err)
	}
	names, err := filepath.Glob("/dev/loop[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, err := strconv.Atoi(filepath.Base(name)[len("loop"):]); err != nil {
			continue // a partition
		}
		device, err := os.OpenFile(name, os.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // read-only or gone: not one of ours
		}
		if info, err := unix.IoctlLoopGetStatus64(int(device.Fd())); err == nil && serves(info, &want) {
			return device, nil
		}
		_ = device.Close()
	}
	return nil, nil
}

func serves(info *unix.LoopInfo64, image *unix.Stat_t) bool {
	return info.Device == uint64(image.Dev) && info.Inode == image.Ino && info.Offset == 0 && info.Sizelimit == 0
}

// attachLoop gives the image a device, with direct I/O: otherwise each block would
// be cached twice, and a flush of one database would wait for the pages of all. The
// kernel detaches it when the last user, a mount too, has gone, so that our own
// death leaves nothing.
func attachLoop(image *os.File) (*os.File, error) {
	control, err := os.OpenFile(loopControl, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("attach a loop device: %w", err)
	}
	defer control.Close()
	for range loopTriesMax {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		device, err := os.OpenFile("/dev/loop"+strconv.Itoa(n), os.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("open a free loop device: %w", err)
		}
		config := unix.LoopConfig{Fd: uint32(image.Fd()), Size: poolBlock}
		config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO
		copy(config.Info.File_name[:len(config.Info.File_name)-1], image.Name())
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		if err == nil {
			return device, nil
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("attach a loop device: %w", err)
		}
	}
	return nil, fmt.Errorf("attach a loop device: other processes took each of %d free ones", loopTriesMax)
}

// openLoop finds the device of the image, or attaches one.
func openLoop(image *os.File) (*os.File, error) {
	device, err := findLoop(image)
	if err != nil {
		return nil, err
	}
	if device == nil {
		return attachLoop(image)
	}
	// Whoever attached it may have left this out. Where the disk cannot, it works
	// without.
	_ = unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_DIRECT_IO, 1)
	return device, nil
}

// detachLoop ends a device that was attached to stay; the others are gone already.
func detachLoop(image *os.File) error {
	device, err := findLoop(image)
	if err != nil || device == nil {
		return err
	}
	defer device.Close()
	err = unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0)
	if err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("detach %s: %w", device.Name(), err)
	}
	return nil
}

// mountedAt is the device, "7:3", of what is mounted at a folder. It asks the mount
// table: a file system that was shut down answers no question about itself.
func mountedAt(dir string) (device string, found bool, err error) {
	above, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("look at the mounts: %w", err)
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", false, fmt.Errorf("look at the mounts: %w", err)
	}
	device, found = mountIn(string(table), filepath.Join(above, filepath.Base(dir)))
	return device, found, nil
}

// mountEscapes are how the kernel writes what would break its lines.
var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mountIn reads the table; the last of several mounts hides the others.
func mountIn(table, dir string) (device string, found bool) {
	for line := range strings.SplitSeq(table, "\n") {
		// "36 35 7:3 / /mnt opts tags - type source options", see proc(5).
		if words := strings.Fields(line); len(words) > 4 && mountEscapes.Replace(words[4]) == dir {
			device, found = words[2], true
		}
	}
	return device, found
}

// openLoopNumber opens a loop device by its number, "7:3".
func openLoopNumber(number string) (*os.File, error) {
	minor, found := strings.CutPrefix(number, loopMajor)
	if !found {
		return nil, fmt.Errorf("device %s: %w", number, errNoLoop)
	}
	return os.OpenFile("/dev/loop"+minor, os.O_RDWR|unix.O_CLOEXEC, 0)
}

var errNoLoop = errors.New("no loop device")
