package proc

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// boundEnv carries the path that ReexecBound made to the process that it becomes.
const boundEnv = "KURABE_BOUND"

// Bound returns the short path under which this process sees the folder that
// ReexecBound was given, "" when it was not used.
func Bound() string { return os.Getenv(boundEnv) }

// ReexecBound makes this process one that sees dir at the path at as well, in a
// mount namespace of its own that everything it starts shares, and starts the
// program again from main. It is for a data folder below a parent that the
// engines' users may not enter, such as /root. It needs root and returns only
// when it fails. Nothing of the mount is left once the last process has ended.
func ReexecBound(dir, at string) error {
	runtime.LockOSThread() // the namespace belongs to the thread that execs
	defer runtime.UnlockOSThread()
	if err := os.MkdirAll(at, 0o711); err != nil {
		return fmt.Errorf("make mount point: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	// Slave, not private: an unmount on the host must not be held up by us.
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("separate the mount namespace: %w", err)
	}
	if err := unix.Mount(dir, at, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s at %s: %w", dir, at, err)
	}
	if err := os.Setenv(boundEnv, at); err != nil {
		return err
	}
	return fmt.Errorf("start again: %w", syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}

// Become replaces this process by a program, as a shell's exec does. It returns
// only when it fails.
func Become(program string, argv, env []string) error { return syscall.Exec(program, argv, env) }
