package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// stat is the part of /proc/PID/stat that identifies a process.
type stat struct {
	pid       int
	state     byte
	startTime uint64 // clock ticks since boot
}

// zombie is true once the process runs no code, even if nobody reaped it yet.
func (s stat) zombie() bool { return s.state == 'Z' || s.state == 'X' }

// readStat reads the stat file of a pid, or of "self".
func readStat(pid string) (stat, error) {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(raw)
}

// parseStat splits after the last ')': the command name may hold anything.
func parseStat(raw []byte) (stat, error) {
	open, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if open < 1 || end < open {
		return stat{}, errors.New("parse stat: no command name")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw[:open])))
	if err != nil {
		return stat{}, fmt.Errorf("parse stat: %w", err)
	}
	// Fields 3 and 22 of proc(5); the first field after the name is number 3.
	fields := bytes.Fields(raw[end+1:])
	const startField = 22 - 3
	if len(fields) <= startField || len(fields[0]) != 1 {
		return stat{}, errors.New("parse stat: too few fields")
	}
	start, err := strconv.ParseUint(string(fields[startField]), 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("parse stat: %w", err)
	}
	return stat{pid: pid, state: fields[0][0], startTime: start}, nil
}

// bootID tells one boot of the machine from the next: start times begin anew.
var bootID = sync.OnceValues(func() (string, error) {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(raw)), err
})

// pids lists all processes that we can see.
func pids() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all, nil
}
