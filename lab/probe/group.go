package probe

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The kernel counts operations on disks by control group and not by process, and it is
// control groups that hold an instance to the processors, memory and IOPS of its class. So
// both are read where the server's processes are: what was used, and what they may use.

const (
	// groupDepthMax bounds the way from a group up to the root, of which each may limit.
	groupDepthMax = 64
	// groupLinesMax bounds a file of a group: a line for each process or disk.
	groupLinesMax = 100_000
	// unlimited: version 1 writes no limit as the largest number of whole pages.
	unlimited = 1 << 62
)

// group is the server's place in the hierarchies of control groups. A version 1 machine
// has one hierarchy for each controller, version 2 has one for all.
type group struct {
	cpu, io, memory place
	disk            string // "major:minor" of the whole disk that the data is on
	owned           bool   // nobody but the server is in it, so that its operations are the server's
}

// place is a group in one hierarchy; the zero value is none.
type place struct {
	root, dir string
	version   int
}

// limits are what the server may use at the most; zero is no limit.
type limits struct{ cpus, memoryBytes, readOps, writeOps float64 }

// operations on the disk of the data since the group was made.
type operations struct{ read, write float64 }

// findGroup looks where a process is. What cannot be known is left out, and the error
// says so.
func findGroup(proc, sys string, pid int, own func(int) bool) (*group, error) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	names, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return nil, fmt.Errorf("find the control group of the server: %w", err)
	}
	mounts, err := os.ReadFile(filepath.Join(proc, "self", "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("find the control group of the server: %w", err)
	}
	all := places(string(names), string(mounts))
	g := &group{cpu: all["cpu"], memory: all["memory"], io: all["blkio"]}
	for _, p := range []*place{&g.cpu, &g.memory, &g.io} {
		if p.dir == "" {
			*p = all[""] // version 2
		}
	}
	g.owned = g.io.dir != "" && g.io.dir != g.io.root && alone(g.io.dir, own)
	var st unix.Stat_t
	// Both engines make the folder of their data their own.
	if err := unix.Stat(filepath.Join(dir, "cwd"), &st); err != nil {
		return g, fmt.Errorf("find the disk of the data: %w", err)
	}
	g.disk = wholeDisk(sys, fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)))
	return g, nil
}

// places reads "7:blkio:/name" of a process and finds where the hierarchy is mounted, by
// controller; "" is that of version 2.
func places(names, mountinfo string) map[string]place {
	all := map[string]place{}
	for line := range strings.Lines(names) {
		_, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		controllers, name, also := strings.Cut(rest, ":")
		if !ok || !also {
			continue
		}
		for controller := range strings.SplitSeq(controllers, ",") {
			if p, ok := mounted(mountinfo, controller, name); ok {
				all[controller] = p
			}
		}
	}
	return all
}

// mounted finds the folder of a group: 36 35 0:31 /root /mount options … - type source options.
func mounted(mountinfo, controller, name string) (place, bool) {
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		const rootField, mountField, typeField, optionsField = 3, 4, 0, 2
		if !ok || len(left) <= mountField || len(right) <= optionsField {
			continue
		}
		p := place{root: left[mountField], version: 2}
		switch {
		case controller == "" && right[typeField] == "cgroup2":
		case controller != "" && right[typeField] == "cgroup" && slices.Contains(strings.Split(right[optionsField], ","), controller):
			p.version = 1
		default:
			continue
		}
		inside, ok := strings.CutPrefix(name, strings.TrimSuffix(left[rootField], "/"))
		if !ok || inside != "" && inside[0] != '/' || strings.Contains(inside, "..") {
			continue // mounted is another part of the hierarchy
		}
		p.dir = filepath.Join(p.root, inside)
		return p, true
	}
	return place{}, false
}

// alone says whether a group has no process but one's own.
func alone(dir string, own func(int) bool) bool {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return false
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if n++; err != nil || n > groupLinesMax || !own(pid) {
			return false
		}
	}
	return n > 0
}

// wholeDisk goes from a partition to its disk, as it is disks that groups know. "" is a
// file system without one, as of a network or of several disks.
func wholeDisk(sys, device string) string {
	dir, err := filepath.EvalSymlinks(filepath.Join(sys, "dev", "block", device))
	if err != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir, "partition")); err != nil {
		return device
	}
	return strings.TrimSpace(readText(filepath.Join(filepath.Dir(dir), "dev")))
}

// up calls with the folder of a group and of those above it, whose limits hold for it too.
func (p place) up(see func(dir string)) {
	dir := p.dir
	for range groupDepthMax {
		if dir == "" {
			return
		}
		see(dir)
		if dir == p.root || !strings.HasPrefix(dir, p.root) {
			return
		}
		dir = filepath.Dir(dir)
	}
}

// limits are the tightest of all groups that the server is in.
func (g *group) limits() limits {
	l := limits{cpus: float64(runtime.NumCPU())}
	g.cpu.up(func(dir string) { l.cpus = tighter(l.cpus, quota(dir, g.cpu.version)) })
	g.memory.up(func(dir string) {
		file := map[int]string{1: "memory.limit_in_bytes", 2: "memory.max"}[g.memory.version]
		l.memoryBytes = tighter(l.memoryBytes, figure(readText(filepath.Join(dir, file))))
	})
	if g.disk == "" {
		return l
	}
	g.io.up(func(dir string) {
		read, write := g.throttle(dir)
		l.readOps, l.writeOps = tighter(l.readOps, read), tighter(l.writeOps, write)
	})
	return l
}

// tighter of two limits, of which zero is none.
func tighter(a, b float64) float64 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return math.Min(a, b)
}

// figure is a number of a file, 0 for "max", -1 and whatever is none.
func figure(text string) float64 {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(x) || x < 0 || x >= unlimited {
		return 0
	}
	return x
}

// quota is how many processors a group may use.
func quota(dir string, version int) float64 {
	used, period := "", ""
	if version == 1 {
		used, period = readText(filepath.Join(dir, "cpu.cfs_quota_us")), readText(filepath.Join(dir, "cpu.cfs_period_us"))
	} else {
		used, period, _ = strings.Cut(readText(filepath.Join(dir, "cpu.max")), " ")
	}
	if figure(period) < 1 {
		return 0
	}
	return figure(used) / figure(period)
}

// throttle is how many operations a second a group may have on the disk.
func (g *group) throttle(dir string) (read, write float64) {
	if g.io.version == 1 {
		one := func(file string) float64 {
			lines := diskLines(dir, file, g.disk)
			if len(lines) == 0 {
				return 0
			}
			return figure(lines[0][0])
		}
		return one("blkio.throttle.read_iops_device"), one("blkio.throttle.write_iops_device")
	}
	for _, words := range diskLines(dir, "io.max", g.disk) {
		read, write = tighter(read, pair(words, "riops")), tighter(write, pair(words, "wiops"))
	}
	return read, write
}

// pair is the number of "name=number" among words.
func pair(words []string, name string) float64 {
	for _, word := range words {
		if text, ok := strings.CutPrefix(word, name+"="); ok {
			return figure(text)
		}
	}
	return 0
}

// diskLines are the words after "major:minor" in the lines of a disk.
func diskLines(dir, file, disk string) [][]string {
	var lines [][]string
	n := 0
	for line := range strings.Lines(readText(filepath.Join(dir, file))) {
		if n++; n > groupLinesMax {
			break
		}
		if words := strings.Fields(line); len(words) > 1 && words[0] == disk {
			lines = append(lines, words[1:])
		}
	}
	return lines
}

// Why operations are not counted.
var (
	errShared = errors.New("the server has no control group of its own, and the kernel counts operations on disks by group; no read_ops and write_ops")
	errNoDisk = errors.New("the data is on no single disk of this machine, or its folder may not be looked at; no read_ops and write_ops")
)

// operations are those on the disk of the data. A disk without a line had none yet.
func (g *group) operations() (operations, error) {
	switch {
	case !g.owned:
		return operations{}, errShared
	case g.disk == "":
		return operations{}, errNoDisk
	}
	file := map[int]string{1: "blkio.throttle.io_serviced", 2: "io.stat"}[g.io.version]
	if _, err := os.Stat(filepath.Join(g.io.dir, file)); err != nil {
		return operations{}, fmt.Errorf("the kernel does not count operations on disks by control group (%w); no read_ops and write_ops", err)
	}
	var o operations
	for _, words := range diskLines(g.io.dir, file, g.disk) {
		switch {
		case g.io.version == 2:
			o.read, o.write = o.read+pair(words, "rios"), o.write+pair(words, "wios")
		case len(words) > 1 && words[0] == "Read":
			o.read += figure(words[1])
		case len(words) > 1 && words[0] == "Write":
			o.write += figure(words[1])
		}
	}
	return o, nil
}
