package logevents

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync has the content of a file, and its size, on the disk.
func datasync(file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.Fdatasync(int(fd)) }); err != nil {
		return err
	}
	return failed
}
