package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLockHeld is what a LockHeldError is.
var ErrLockHeld = errors.New("lock file is held")

// LockHeldError says which process keeps a lock file.
type LockHeldError struct {
	File string
	PID  int // 0 if it cannot be seen from here
}

func (e *LockHeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("lock %s held by a process outside this pid namespace", e.File)
	}
	return fmt.Sprintf("lock %s held by pid %d", e.File, e.PID)
}

// Is makes errors.Is(err, ErrLockHeld) work.
func (e *LockHeldError) Is(target error) bool { return target == ErrLockHeld }

// Retryable: the holder may end.
func (e *LockHeldError) Retryable() bool { return true }

// LockHeld looks if any process of an engine's tree is alive. It takes a shared
// lock for an instant, which takeLock allows for.
func LockHeld(lockFile string) (bool, error) {
	file, err := openFile(lockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	held := false
	err = onFD(file, func(fd int) error {
		err := unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			held = true
			return nil
		}
		if err != nil {
			return err
		}
		// Explicitly: a process forked by another goroutine just now may hold a
		// copy of the descriptor until its exec.
		return unix.Flock(fd, unix.LOCK_UN)
	})
	return held, err
}

// A probe by LockHeld, or a dropRecord, holds the lock for microseconds. Refusing
// a start for that would be wrong, so the shim looks 10 times in 100 ms.
const (
	lockTries = 10
	lockPause = 10 * time.Millisecond
)

// takeLock opens and locks the file and returns the descriptor, close-on-exec.
func takeLock(path string) (int, error) {
	fd, err := openNoLink(path, unix.O_RDWR|unix.O_CREAT, 0o600)
	if err != nil {
		return -1, err
	}
	for range lockTries {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(lockPause)
	}
	if err == nil {
		return fd, nil
	}
	defer unix.Close(fd)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return -1, &LockHeldError{File: path, PID: lockHolder(fd)}
	}
	return -1, &fs.PathError{Op: "flock", Path: path, Err: err}
}

// tryLock holds the lock file until unlock is called.
func tryLock(path string) (unlock func(), err error) {
	fd, err := takeLock(path)
	if err != nil {
		return nil, err
	}
	return func() {
		_ = unix.Flock(fd, unix.LOCK_UN)
		_ = unix.Close(fd)
	}, nil
}

// lockHolder gives the oldest pid that holds a lock on the file open as fd. The
// lock may be kept by a child while /proc/locks still names the dead parent, so
// we look at descriptors instead; it is slow, but only on the way to an error.
func lockHolder(fd int) int {
	var want unix.Stat_t
	all, err := pids()
	if err != nil || unix.Fstat(fd, &want) != nil {
		return 0
	}
	slices.Sort(all)
	for _, pid := range all {
		if pid != os.Getpid() && holdsLock(pid, want.Dev, want.Ino) {
			return pid
		}
	}
	return 0
}

// holdsLock looks for a locked descriptor of that file in one process.
func holdsLock(pid int, dev, ino uint64) bool {
	_, held := lockedFD(pid, dev, ino)
	return held
}

// lockedFD gives what the kernel says of that descriptor.
func lockedFD(pid int, dev, ino uint64) (info string, held bool) {
	base := "/proc/" + strconv.Itoa(pid)
	entries, err := os.ReadDir(base + "/fd")
	if err != nil {
		return "", false // gone, or not ours to see
	}
	for _, entry := range entries {
		var st unix.Stat_t
		if unix.Stat(base+"/fd/"+entry.Name(), &st) != nil || st.Dev != dev || st.Ino != ino {
			continue
		}
		info, err := os.ReadFile(base + "/fdinfo/" + entry.Name())
		if err == nil && strings.Contains(string(info), "FLOCK") {
			return string(info), true
		}
	}
	return "", false
}

// onFD runs fn with the descriptor of file and keeps it in non-blocking mode.
func onFD(file *os.File, fn func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = fn(int(fd)) }); err != nil {
		return err
	}
	return inner
}
