package volume

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockName is the file in the service's data folder that the service holds.
const lockName = "kurabe.lock"

// Lock is held until Close, or the end of the process, however it ends.
type Lock struct{ file *os.File }

// Close gives the folder free.
func (l *Lock) Close() error { return l.file.Close() }

// InUseError names the process that holds the folder.
type InUseError struct {
	Path string
	PID  int // 0 if unknown
}

func (e *InUseError) Error() string {
	who := "another kurabe server"
	if e.PID != 0 {
		who = fmt.Sprintf("%s (pid %d)", who, e.PID)
	}
	return fmt.Sprintf("%s uses this data folder: %s", who, e.Path)
}

// Retryable: the other may end.
func (e *InUseError) Retryable() bool { return true }

// DirLock keeps a folder for one service. The kernel's lock decides; the pid in the
// file is for the message only. Close-on-exec matters: a database that inherited
// the lock would keep our successor out.
func DirLock(dir string) (*Lock, error) {
	path := filepath.Join(dir, lockName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	if err = lockFile(file); errors.Is(err, unix.EWOULDBLOCK) {
		defer file.Close()
		return nil, &InUseError{dir, holder(file)}
	}
	if err == nil {
		// Overwrite in place, longest first: a reader must not find it empty.
		_, err = file.WriteAt([]byte(fmt.Sprintf("%-12d\n", os.Getpid())), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock data folder %s: %w", dir, err), file.Close())
	}
	return &Lock{file}, nil
}

// Bounds of the wait for what a dead service has left.
const (
	orphanTime = 5 * time.Second
	orphanPoll = 10 * time.Millisecond
)

// lockFile takes the lock, or says at once that it is taken. A service that was killed while
// it started a program has left a child that is not that program yet: the lock ends with the
// child's exec, so where the holder is dead it is waited for.
func lockFile(file *os.File) error {
	for until := time.Now().Add(orphanTime); ; time.Sleep(orphanPoll) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(until) {
			return err
		}
		if pid := holder(file); pid == 0 || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return err
		}
	}
}

// holder is the pid in the file, 0 where none can be read.
func holder(file *os.File) int {
	raw, err := io.ReadAll(io.NewSectionReader(file, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
