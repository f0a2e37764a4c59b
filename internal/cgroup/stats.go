package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Stats are counters since the group was made, and gauges. What no lever covers
// stays zero.
type Stats struct {
	CPUUsage         time.Duration
	CPUThrottled     time.Duration // time that threads stood still for the quota
	PeriodsThrottled int64         // periods in which the quota was used up

	MemoryBytes              int64 // with page cache
	MemoryUnreclaimableBytes int64 // what the engine holds: without page cache
	MemoryLimitBytes         int64 // 0 is none
	SwapBytes                int64
	OOMKills                 int64

	IO map[Device]IOStats
}

// IOStats are counters of one device. A logical device and the disk under it may
// both be listed.
type IOStats struct{ ReadOps, WriteOps, ReadBytes, WriteBytes int64 }

// Stats reads the counters; for a group that is gone the error is fs.ErrNotExist.
func (g Group) Stats() (Stats, error) {
	var s Stats
	read := func(l Lever, v1, v2 func(string, *Stats) error) error {
		switch {
		case !l.Enforceable:
			return nil
		case l.Version == 2:
			return v2(g.dir(l), &s)
		default:
			return v1(g.dir(l), &s)
		}
	}
	err := errors.Join(
		read(g.levers.CPU, g.cpuStatsV1, cpuStatsV2),
		read(g.levers.Memory, memoryStatsV1, memoryStatsV2),
		read(g.levers.IO, ioStatsV1, ioStatsV2))
	if err != nil {
		return Stats{}, fmt.Errorf("read cgroup %s: %w", g.Name, err)
	}
	return s, nil
}

// OOMKills counts the processes that the kernel killed for the memory limit of the
// group. It reads one file, for those who ask often.
func (g Group) OOMKills() (int64, error) {
	l := g.levers.Memory
	file := "memory.oom_control"
	switch {
	case !l.Enforceable:
		return 0, nil
	case l.Version == 2:
		file = "memory.events"
	}
	events, err := flat(g.dir(l), file)
	if err != nil {
		return 0, fmt.Errorf("read cgroup %s: %w", g.Name, err)
	}
	return events["oom_kill"], nil
}

func (g Group) cpuStatsV1(dir string, s *Stats) error {
	stat, err := flat(dir, "cpu.stat")
	if err != nil {
		return err
	}
	s.CPUThrottled = time.Duration(stat["throttled_time"]) // nanoseconds
	s.PeriodsThrottled = stat["nr_throttled"]
	if g.levers.accounting != "" {
		dir = filepath.Join(g.levers.accounting, g.levers.parent, g.Name)
	}
	usage, err := number(dir, "cpuacct.usage")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s.CPUUsage = time.Duration(usage)
	return err
}

func cpuStatsV2(dir string, s *Stats) error {
	stat, err := flat(dir, "cpu.stat")
	s.CPUUsage = time.Duration(stat["usage_usec"]) * time.Microsecond
	s.CPUThrottled = time.Duration(stat["throttled_usec"]) * time.Microsecond
	s.PeriodsThrottled = stat["nr_throttled"]
	return err
}

func memoryStatsV1(dir string, s *Stats) (err error) {
	if s.MemoryBytes, err = number(dir, "memory.usage_in_bytes"); err != nil {
		return err
	}
	if s.MemoryLimitBytes, err = number(dir, "memory.limit_in_bytes"); err != nil {
		return err
	}
	// No limit reads as the largest signed number, rounded down to a page.
	if s.MemoryLimitBytes > 1<<62 {
		s.MemoryLimitBytes = 0
	}
	oom, err := flat(dir, "memory.oom_control")
	if err != nil {
		return err
	}
	s.OOMKills = oom["oom_kill"]
	stat, err := flat(dir, "memory.stat")
	s.MemoryUnreclaimableBytes, s.SwapBytes = unreclaimable(1, stat), stat["swap"]
	return err
}

func memoryStatsV2(dir string, s *Stats) (err error) {
	if s.MemoryBytes, err = number(dir, "memory.current"); err != nil {
		return err
	}
	if s.MemoryLimitBytes, err = number(dir, "memory.max"); err != nil {
		return err
	}
	events, err := flat(dir, "memory.events")
	if err != nil {
		return err
	}
	s.OOMKills = events["oom_kill"]
	stat, err := flat(dir, "memory.stat")
	if err != nil {
		return err
	}
	s.MemoryUnreclaimableBytes = unreclaimable(2, stat)
	// Absent where the kernel has no swap.
	if s.SwapBytes, err = number(dir, "memory.swap.current"); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// unreclaimable is what the kernel cannot drop to make room, as there is no swap:
// the engine's own memory and, for PostgreSQL, the shared buffers.
func unreclaimable(version int, stat map[string]int64) int64 {
	if version == 2 {
		return stat["anon"] + stat["shmem"]
	}
	return stat["rss"] + stat["shmem"]
}

func ioStatsV1(dir string, s *Stats) error {
	bytes, err := deviceLines(dir, "blkio.throttle.io_service_bytes")
	if err != nil {
		return err
	}
	ops, err := deviceLines(dir, "blkio.throttle.io_serviced")
	if err != nil {
		return err
	}
	s.IO = map[Device]IOStats{}
	for _, each := range []struct {
		lines [][]string
		field map[string]func(*IOStats) *int64
	}{
		{bytes, map[string]func(*IOStats) *int64{
			"Read":  func(i *IOStats) *int64 { return &i.ReadBytes },
			"Write": func(i *IOStats) *int64 { return &i.WriteBytes },
		}},
		{ops, map[string]func(*IOStats) *int64{
			"Read":  func(i *IOStats) *int64 { return &i.ReadOps },
			"Write": func(i *IOStats) *int64 { return &i.WriteOps },
		}},
	} {
		for _, line := range each.lines {
			device, ok := parseDevice(line[0])
			if len(line) != 3 || !ok || each.field[line[1]] == nil {
				continue
			}
			io := s.IO[device]
			*each.field[line[1]](&io), _ = strconv.ParseInt(line[2], 10, 64)
			s.IO[device] = io
		}
	}
	return nil
}

func ioStatsV2(dir string, s *Stats) error {
	lines, err := deviceLines(dir, "io.stat")
	if err != nil {
		return err
	}
	s.IO = map[Device]IOStats{}
	for _, line := range lines {
		device, ok := parseDevice(line[0])
		if !ok {
			continue
		}
		io := s.IO[device]
		for _, pair := range line[1:] {
			key, value, _ := strings.Cut(pair, "=")
			n, _ := strconv.ParseInt(value, 10, 64)
			switch key {
			case "rbytes":
				io.ReadBytes = n
			case "wbytes":
				io.WriteBytes = n
			case "rios":
				io.ReadOps = n
			case "wios":
				io.WriteOps = n
			}
		}
		s.IO[device] = io
	}
	return nil
}

// deviceLines splits a file of "major:minor words…" lines.
func deviceLines(dir, file string) ([][]string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	var lines [][]string
	for _, line := range strings.Split(string(raw), "\n") {
		if words := strings.Fields(line); len(words) > 1 {
			lines = append(lines, words)
		}
	}
	return lines, nil
}
