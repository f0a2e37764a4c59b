package proc

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// paceEvery is how often a paced tool is looked at: what it reads or writes in one go
// is what it can in that time.
const paceEvery = 5 * time.Millisecond

// pace keeps what a tool reads from disks, and what it writes to them, to a rate each,
// by stopping its group while it is ahead. It ends when done is closed, with the tool
// going on. pid is a child that nobody has waited for, so the number is its own. A tool
// of which the kernel tells us nothing is not paced.
//
// If we die while the tool is stopped it stays so until somebody Finds and ends it.
func pace(pid int, bytesPerSecondMax int64, done <-chan struct{}) {
	p := pacer{rate: float64(bytesPerSecondMax)}
	last, stopped := time.Now(), false
	defer func() {
		if stopped {
			_ = syscall.Kill(-pid, syscall.SIGCONT) // it ends by itself or by a kill
		}
	}()
	ticker := time.NewTicker(paceEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		moved, ok := diskBytes(pid)
		if !ok {
			return
		}
		now := time.Now()
		if want := p.ahead(moved, now.Sub(last)); want != stopped {
			signal := syscall.SIGCONT
			if want {
				signal = syscall.SIGSTOP
			}
			if syscall.Kill(-pid, signal) == nil {
				stopped = want
			}
		}
		last = now
	}
}

// pacer counts how many bytes somebody is ahead of a rate, for each direction.
type pacer struct {
	rate   float64 // bytes a second
	before [2]int64
	excess [2]float64
}

// ahead takes what was moved in all, and the time since it was asked last. Time in
// which less was moved is not saved up for a burst.
func (p *pacer) ahead(moved [2]int64, since time.Duration) bool {
	due := since.Seconds() * p.rate
	for n := range moved {
		p.excess[n] = max(0, p.excess[n]+float64(moved[n]-p.before[n])-due)
	}
	p.before = moved
	return p.excess[0] > 0 || p.excess[1] > 0
}

// diskBytes is what a process has had read from disks, and what it has had written to
// them, by all of its threads (proc(5), /proc/pid/io).
func diskBytes(pid int) (moved [2]int64, ok bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/io")
	if err != nil {
		return moved, false
	}
	found := 0
	for line := range bytes.Lines(raw) {
		key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		n := slices.Index([]string{"read_bytes", "write_bytes"}, string(key))
		if n < 0 {
			continue
		}
		if moved[n], err = strconv.ParseInt(string(value), 10, 64); err != nil {
			return moved, false
		}
		found++
	}
	return moved, found == len(moved)
}
