package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kurabe/lab/stat"
)

const (
	restartBar  = 2.0 // seconds
	residentBar = 150 << 20
	idleCPUBar  = 0.01 // of one processor
	// clockTick is the unit of /proc/PID/stat, USER_HZ on every Linux that Go
	// runs on.
	clockTick = 10 * time.Millisecond
)

// idle measures the service itself while databases run: how soon it is back, and
// what it costs when nobody asks anything.
func idle(ctx context.Context, r *run) (failure error) {
	l, err := r.service(ctx)
	if err != nil {
		return err
	}
	fleet, err := l.createAll(ctx, postgres, manyCount)
	if err != nil {
		return err
	}
	names := make([]string, len(fleet))
	for n, i := range fleet {
		names[n] = i.name
	}
	defer l.removeAtEnd(ctx, &failure, names...)
	if err := r.restarts(ctx, l, fleet); err != nil {
		return err
	}
	return r.idleCost(ctx, l, len(fleet))
}

// restarts ends and starts the service; the databases must not notice.
func (r *run) restarts(ctx context.Context, l *lab, fleet []*instance) error {
	before, err := l.pids(fleet)
	if err != nil {
		return err
	}
	var seconds, ends []float64
	for range pick(r, 10, 3) {
		began := time.Now()
		if err := l.stop(); err != nil {
			return err
		}
		ends = append(ends, time.Since(began).Seconds())
		took, err := l.start(ctx)
		if err != nil {
			return err
		}
		seconds = append(seconds, took.Seconds())
		r.out.sample("restart", map[string]any{"instances": len(fleet), "end": ends[len(ends)-1], "ready": took.Seconds()})
	}
	after, err := l.pids(fleet)
	if err != nil {
		return err
	}
	line := row{Bench: "service", What: fmt.Sprintf("restart with %d databases running: exec → ready, the slowest of %d", len(fleet), len(seconds)),
		Value: fmt.Sprintf("%.2f s (median %.2f)", slices.Max(seconds), stat.Median(seconds)), Bar: fmt.Sprintf("≤ %.0f s", restartBar),
		Verdict: verdict(slices.Max(seconds) <= restartBar && slices.Equal(before, after)),
		Note:    fmt.Sprintf("SIGTERM → ended: median %.2f s; all %d database processes are the same ones", stat.Median(ends), len(fleet))}
	if !slices.Equal(before, after) {
		line.Note = "databases were restarted"
	}
	r.out.row(line)
	return nil
}

func (l *lab) pids(fleet []*instance) ([]int, error) {
	pids := make([]int, len(fleet))
	for n, i := range fleet {
		var err error
		if pids[n], err = l.pid(i); err != nil {
			return nil, err
		}
	}
	return pids, nil
}

// idleCost measures memory and processor time while nobody asks anything. The
// first moments after a start are left out.
func (r *run) idleCost(ctx context.Context, l *lab, count int) error {
	pid := l.cmd.Process.Pid
	if err := wait(ctx, pick(r, 10*time.Second, 2*time.Second)); err != nil {
		return err
	}
	over := pick(r, time.Minute, 10*time.Second)
	before, err := readUsage(pid)
	if err != nil {
		return err
	}
	if err := wait(ctx, over); err != nil {
		return err
	}
	after, err := readUsage(pid)
	if err != nil {
		return err
	}
	share := (after.cpu - before.cpu).Seconds() / over.Seconds()
	switches := float64(after.switches-before.switches) / over.Seconds()
	r.out.sample("idle", map[string]any{"instances": count, "seconds": over.Seconds(), "residentBytes": after.resident, "peakBytes": after.peak,
		"cpuShare": share, "switchesPerSecond": switches, "threads": after.threads})
	r.out.row(row{Bench: "service", What: fmt.Sprintf("memory of the service, idle, %d instances", count), Value: fmt.Sprintf("%d MiB resident", after.resident>>20),
		Bar: fmt.Sprintf("≤ %d MB", residentBar>>20), Verdict: verdict(after.resident <= residentBar), Note: fmt.Sprintf("highest since its start: %d MiB", after.peak>>20)})
	r.out.row(row{Bench: "service", What: fmt.Sprintf("processor use of the service, idle, %d instances", count), Value: fmt.Sprintf("%.2f %% of a core", 100*share),
		Bar: "≤ 1 %", Verdict: verdict(share <= idleCPUBar), Note: fmt.Sprintf("over %.0f s; %.0f context switches/s in %d threads", over.Seconds(), switches, after.threads)})
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// usage of one process, all its threads.
type usage struct {
	cpu            time.Duration
	resident, peak int64
	switches       int64
	threads        int
}

func readUsage(pid int) (usage, error) {
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
		u.cpu += time.Duration(ticks) * clockTick
	}
	for _, line := range readLines(filepath.Join(dir, "status")) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			u.resident = n << 10
		case "VmHWM":
			u.peak = n << 10
		}
	}
	tasks, _ := filepath.Glob(filepath.Join(dir, "task", "*", "status"))
	for _, task := range tasks {
		u.threads++
		for _, line := range readLines(task) {
			if name, value, _ := strings.Cut(line, ":"); strings.HasSuffix(name, "voluntary_ctxt_switches") {
				n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
				u.switches += n
			}
		}
	}
	return u, nil
}
