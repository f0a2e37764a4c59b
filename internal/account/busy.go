package account

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"kurabe/internal/proc"
)

// sharedFolders are where any account may leave a file beside its own folders.
var sharedFolders = []string{"/dev/shm", "/dev/mqueue", "/tmp", "/var/tmp", "/run/lock"}

// Busy says whether anything of an id is on this machine outside of the folders that
// were its own: a process, shared memory, a file where everybody may make one.
func Busy(id int) (bool, error) {
	pids, err := proc.Owned(id)
	if err != nil || len(pids) > 0 {
		return true, err
	}
	for _, kind := range []string{"shm", "sem", "msg"} {
		found, err := ownsIPC(filepath.Join("/proc/sysvipc", kind), id)
		if err != nil || found {
			return true, err
		}
	}
	for _, dir := range sharedFolders {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true, err
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				continue // gone meanwhile
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok && (int(st.Uid) == id || int(st.Gid) == id) {
				return true, nil
			}
		}
	}
	return false, nil
}

// ownsIPC reads one of the kernel's lists of System V objects, by the names of its columns.
func ownsIPC(path string, id int) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // a kernel without them
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	var columns []string
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if columns == nil {
			columns = fields
			continue
		}
		for n, name := range columns {
			owner := name == "uid" || name == "cuid"
			if owner && n < len(fields) && fields[n] == strconv.Itoa(id) {
				return true, nil
			}
		}
	}
	return false, lines.Err()
}
