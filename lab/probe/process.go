package probe

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// procRoot is where the kernel shows processes; tests have a folder of their own.
	procRoot = "/proc"
	sysRoot  = "/sys"
	// ticksPerSecond of the times in /proc/PID/stat: USER_HZ, the same on every machine
	// that runs Linux for Go.
	ticksPerSecond = 100
	// processesMax bounds a tree: a server has one process or thread for each session.
	processesMax = 20000
	// readTries: a process that ends while the tree is read would be counted neither in
	// itself nor in its parent; then the tree is read again.
	readTries = 3
)

// usage is what a tree of processes has used since its beginning.
type usage struct {
	processes  int
	cpuSeconds float64
	switches   float64
	bytes      bool // the next two are known
	readBytes  float64
	writeBytes float64
}

// processes reads trees of processes.
//
// Processor time and bytes of a process that has ended are in its parent, which waited
// for it (cutime, cstime; the kernel adds the bytes likewise), so the sum over the tree
// never loses any; each process is rounded down to 0.01 s. Context switches are not handed
// on: what was last seen of an ended thread is kept, and what it did after that is lost.
type processes struct {
	root  string
	roots []int
	seen  map[thread]float64 // switches of each living thread
	ended float64            // switches of those that have ended, as last seen
}

type thread struct{ pid, tid int }

func newProcesses(root string, pids []int) *processes {
	return &processes{root: root, roots: pids, seen: map[thread]float64{}}
}

// read adds up the trees as they are now.
func (p *processes) read() usage {
	var u usage
	for range readTries {
		before := p.reaped()
		u = p.sum()
		if p.reaped() == before {
			break
		}
	}
	u.switches = p.countSwitches()
	return u
}

// reaped is what the roots have inherited of ended children, in ticks.
func (p *processes) reaped() uint64 {
	var ticks uint64
	for _, pid := range p.roots {
		if s, err := readStat(p.root, pid); err == nil {
			ticks += s.reaped
		}
	}
	return ticks
}

func (p *processes) sum() usage {
	u := usage{bytes: true}
	var ticks uint64
	for _, pid := range p.tree() {
		s, err := readStat(p.root, pid)
		if err != nil {
			continue // it has ended
		}
		u.processes++
		ticks += s.own + s.reaped
		read, written, err := readIO(p.root, pid)
		switch {
		case errors.Is(err, os.ErrPermission):
			u.bytes = false
		case err == nil:
			u.readBytes += float64(read)
			u.writeBytes += float64(written)
		}
	}
	u.cpuSeconds = float64(ticks) / ticksPerSecond
	return u
}

// tree lists the roots and all below them.
func (p *processes) tree() []int {
	known := map[int]bool{}
	all := append([]int{}, p.roots...)
	for _, pid := range all {
		known[pid] = true
	}
	for n := 0; n < len(all) && n < processesMax; n++ {
		for _, child := range children(p.root, all[n]) {
			if !known[child] {
				known[child] = true
				all = append(all, child)
			}
		}
	}
	return all
}

// family are the trees and all above them.
func (p *processes) family() map[int]bool {
	all := map[int]bool{}
	for _, pid := range p.tree() {
		all[pid] = true
	}
	for _, pid := range p.roots {
		for n := 0; n < processesMax; n++ {
			s, err := readStat(p.root, pid)
			if err != nil || all[s.parent] {
				break
			}
			pid = s.parent
			all[pid] = true
		}
	}
	return all
}

// children of all threads of a process; none of one that has ended.
func children(root string, pid int) []int {
	var list []int
	for _, tid := range threads(root, pid) {
		data, err := os.ReadFile(filepath.Join(root, strconv.Itoa(pid), "task", strconv.Itoa(tid), "children"))
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

func threads(root string, pid int) []int {
	entries, err := os.ReadDir(filepath.Join(root, strconv.Itoa(pid), "task"))
	if err != nil {
		return nil
	}
	var list []int
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			list = append(list, tid)
		}
	}
	return list
}

// countSwitches brings what is known of every thread up to date.
func (p *processes) countSwitches() float64 {
	now := map[thread]float64{}
	for _, pid := range p.tree() {
		for _, tid := range threads(p.root, pid) {
			if n, err := readSwitches(p.root, pid, tid); err == nil {
				now[thread{pid, tid}] = float64(n)
			}
		}
	}
	total := 0.0
	for t, n := range now {
		if n < p.seen[t] { // another one under the same number
			p.ended += p.seen[t]
		}
		total += n
	}
	for t, n := range p.seen {
		if _, lives := now[t]; !lives {
			p.ended += n
		}
	}
	p.seen = now
	return total + p.ended
}

// stat is what is read of /proc/PID/stat; times in ticks.
type stat struct {
	parent      int
	own, reaped uint64
}

func readStat(root string, pid int) (stat, error) {
	data, err := os.ReadFile(filepath.Join(root, strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(data)
}

// parseStat begins after the name, which is in brackets and may hold anything.
func parseStat(data []byte) (stat, error) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return stat{}, errors.New("stat without a name")
	}
	fields := strings.Fields(string(data[end+1:]))
	const parent, utime, cstime = 1, 11, 14
	if len(fields) <= cstime {
		return stat{}, fmt.Errorf("stat of %d fields", len(fields))
	}
	var s stat
	var err error
	if s.parent, err = strconv.Atoi(fields[parent]); err != nil {
		return stat{}, fmt.Errorf("stat: %w", err)
	}
	var ticks [4]uint64 // utime, stime, cutime, cstime
	for n := range ticks {
		if ticks[n], err = strconv.ParseUint(fields[utime+n], 10, 64); err != nil {
			return stat{}, fmt.Errorf("stat: %w", err)
		}
	}
	s.own, s.reaped = ticks[0]+ticks[1], ticks[2]+ticks[3]
	return s, nil
}

// readIO gives the bytes that reached a disk, not those that a cache answered.
func readIO(root string, pid int) (read, written uint64, err error) {
	data, err := os.ReadFile(filepath.Join(root, strconv.Itoa(pid), "io"))
	if err != nil {
		return 0, 0, err
	}
	if read, err = numberAfter(data, "read_bytes:"); err != nil {
		return 0, 0, err
	}
	written, err = numberAfter(data, "write_bytes:")
	return read, written, err
}

func readSwitches(root string, pid, tid int) (uint64, error) {
	data, err := os.ReadFile(filepath.Join(root, strconv.Itoa(pid), "task", strconv.Itoa(tid), "status"))
	if err != nil {
		return 0, err
	}
	own, err := numberAfter(data, "voluntary_ctxt_switches:")
	if err != nil {
		return 0, err
	}
	forced, err := numberAfter(data, "nonvoluntary_ctxt_switches:")
	return own + forced, err
}

// numberAfter reads the number of the line that begins with a word.
func numberAfter(data []byte, word string) (uint64, error) {
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		rest, ok := bytes.CutPrefix(line, []byte(word))
		if !ok {
			continue
		}
		fields := strings.Fields(string(rest))
		if len(fields) == 0 {
			break
		}
		n, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s %w", word, err)
		}
		return n, nil
	}
	return 0, fmt.Errorf("no line %q", word)
}
