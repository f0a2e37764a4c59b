package netcut

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// top is where control groups of version 2 are mounted: alone, or beside those of version 1.
func top() (string, error) {
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
			return dir, nil
		}
	}
	return "", errors.New("no control groups of version 2 are mounted at /sys/fs/cgroup")
}

// within refuses a process that the programs would not see: one of another network, of other
// process numbers, or of a control group above the top that is mounted here.
func within(pid int) error {
	for _, space := range []string{"pid", "net"} {
		var own, its unix.Stat_t
		err := errors.Join(unix.Stat("/proc/thread-self/ns/"+space, &own), unix.Stat("/proc/"+strconv.Itoa(pid)+"/ns/"+space, &its))
		if err != nil {
			return fmt.Errorf("process %d: %w", pid, err)
		}
		if own.Ino != its.Ino {
			return fmt.Errorf("process %d is in another %s namespace than this one", pid, space)
		}
	}
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return err
	}
	for _, line := range strings.Split(string(raw), "\n") {
		if group, v2 := strings.CutPrefix(line, "0::"); v2 {
			if strings.HasPrefix(group, "/..") {
				return fmt.Errorf("process %d is in a control group that this machine cannot see (%s)", pid, group)
			}
			return nil
		}
	}
	return fmt.Errorf("process %d is in no control group of version 2", pid)
}
