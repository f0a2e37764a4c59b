package bed

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of /proc/PID/stat, USER_HZ on every Linux that Go
// runs on.
const clockTick = 10 * time.Millisecond

// usage of one process, all its threads.
type usage struct {
	Cpu            time.Duration
	Resident, Peak int64
	Switches       int64
	Threads        int
}

// ReadUsage asks /proc for a process.
func ReadUsage(pid int) (usage, error) {
	var u usage
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	raw, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return u, err
	}
	// The name in parentheses may hold spaces; utime and stime are fields 14 and
	// 15 of proc(5), the 12th and 13th after it.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 13 {
		return u, fmt.Errorf("%s/stat has %d fields", dir, len(fields))
	}
	for _, f := range fields[11:13] {
		ticks, _ := strconv.ParseInt(f, 10, 64)
		u.Cpu += time.Duration(ticks) * clockTick
	}
	for _, line := range ReadLines(filepath.Join(dir, "status")) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			u.Resident = n << 10
		case "VmHWM":
			u.Peak = n << 10
		}
	}
	tasks, _ := filepath.Glob(filepath.Join(dir, "task", "*", "status"))
	for _, task := range tasks {
		u.Threads++
		for _, line := range ReadLines(task) {
			if name, value, _ := strings.Cut(line, ":"); strings.HasSuffix(name, "voluntary_ctxt_switches") {
				n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
				u.Switches += n
			}
		}
	}
	return u, nil
}
