package osmetrics

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	ticksPerSecond = 100  // of /proc, on every Linux
	processesMost  = 50   // in a picture
	processesRead  = 2000 // of a group
)

// Process is what the kernel tells of one.
type Process struct {
	ID, Parent int
	Name       string
	State      byte
	CPU        time.Duration // used since it began
	Began      time.Duration // since the machine did
	Up         time.Duration // since it began
	VSS, RSS   int64         // bytes
}

// Processes reads those that are there.
func Processes(ids []int) (list []Process) {
	uptime, _ := os.ReadFile("/proc/uptime")
	first, _, _ := strings.Cut(string(uptime), " ")
	up, _ := strconv.ParseFloat(first, 64)
	for _, id := range ids[:min(len(ids), processesRead)] {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		if err != nil {
			continue // it has ended
		}
		if p, ok := parse(id, string(raw)); ok {
			p.Up = max(0, time.Duration(up*float64(time.Second))-p.Began)
			list = append(list, p)
		}
	}
	return list
}

// parse reads a line of /proc/PID/stat; the name may hold anything.
func parse(id int, line string) (p Process, ok bool) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return p, false
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 22 {
		return p, false
	}
	n := func(field int) int64 {
		v, _ := strconv.ParseInt(fields[field], 10, 64)
		return v
	}
	ticks := func(n int64) time.Duration { return time.Duration(n) * time.Second / ticksPerSecond }
	return Process{
		ID: id, Parent: int(n(1)), Name: line[open+1 : end], State: fields[0][0], CPU: ticks(n(11) + n(12)), Began: ticks(n(19)),
		VSS: n(20), RSS: n(21) * int64(os.Getpagesize()),
	}, true
}

// oldest is for how long the process that began first has been there.
func oldest(list []Process) (up time.Duration, known bool) {
	for _, p := range list {
		up = max(up, p.Up)
	}
	return up, len(list) > 0
}

func tasks(list []Process) map[string]int {
	n := map[string]int{"total": len(list), "running": 0, "sleeping": 0, "blocked": 0, "stopped": 0, "zombie": 0}
	for _, p := range list {
		switch p.State {
		case 'R':
			n["running"]++
		case 'D':
			n["blocked"]++
		case 'T', 't':
			n["stopped"]++
		case 'Z':
			n["zombie"]++
		default:
			n["sleeping"]++
		}
	}
	return n
}

// processList are the processes that used most CPU time, then most memory.
func processList(before *Reading, now Reading, seconds float64) []process {
	earlier := map[int]Process{}
	if before != nil {
		for _, p := range before.Processes {
			earlier[p.ID] = p
		}
	}
	list := make([]process, 0, len(now.Processes))
	for _, p := range now.Processes {
		one := process{Name: p.Name, ID: p.ID, ParentID: p.Parent, VSS: p.VSS >> 10, RSS: p.RSS >> 10}
		if was, known := earlier[p.ID]; known && was.Began == p.Began && seconds > 0 && p.CPU >= was.CPU {
			used := (p.CPU - was.CPU).Seconds() / seconds * 100
			one.CPUUsedPc = &used
		}
		if limit := now.Stats.MemoryLimitBytes; limit > 0 {
			share := float64(p.RSS) / float64(limit) * 100
			one.MemoryUsedPc = &share
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b process) int {
		return cmp.Or(cmp.Compare(value(b.CPUUsedPc), value(a.CPUUsedPc)), cmp.Compare(b.RSS, a.RSS), cmp.Compare(a.ID, b.ID))
	})
	return list[:min(len(list), processesMost)]
}

func value(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
