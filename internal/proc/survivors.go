package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Survivors lists the processes that work in a data folder: PostgreSQL's and
// MariaDB's all chdir there, so this finds children that no record knows, also
// inside a bind. Zombies do not count, neither do we. Without root only our own
// user's processes can be seen.
func Survivors(dataDir string) ([]int, error) {
	dir, err := statDir(dataDir)
	if err != nil {
		return nil, err
	}
	all, err := pids()
	if err != nil {
		return nil, err
	}
	var found []int
	for _, pid := range all {
		if pid != os.Getpid() && worksIn(pid, dir.Dev, dir.Ino) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// worksIn compares inodes, not names: a bind, a link or a rename changes the name.
// A zombie has no working directory.
func worksIn(pid int, dev, ino uint64) bool {
	var cwd unix.Stat_t
	err := unix.Stat("/proc/"+strconv.Itoa(pid)+"/cwd", &cwd)
	return err == nil && cwd.Dev == dev && cwd.Ino == ino
}

// Bounds of KillSurvivors. A fork can outrun a list, so it takes several; a server
// that forks faster than 100 kills in a row is not one of ours.
const (
	killRoundsMax     = 100
	killSurvivorsTime = 30 * time.Second
)

// KillSurvivors kills whatever works in a data folder and returns when nothing
// does any more. It is for leftovers of a dead server, never for stopping one.
func KillSurvivors(ctx context.Context, dataDir string) error {
	ctx, cancel := context.WithTimeout(ctx, killSurvivorsTime)
	defer cancel()
	dir, err := statDir(dataDir)
	if err != nil {
		return err
	}
	for range killRoundsMax {
		found, err := Survivors(dataDir)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return nil
		}
		if err := killAll(ctx, found, dir.Dev, dir.Ino); err != nil {
			return fmt.Errorf("kill survivors in %s: %w", dataDir, err)
		}
	}
	return fmt.Errorf("kill survivors in %s: new processes keep starting", dataDir)
}

func killAll(ctx context.Context, found []int, dev, ino uint64) error {
	return killEach(ctx, found, func(pid int) bool { return worksIn(pid, dev, ino) })
}

// gone recognises the error of reading /proc/PID of a process that just ended.
func gone(err error) bool { return errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrNotExist) }
