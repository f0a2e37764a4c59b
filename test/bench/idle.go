package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

const (
	restartBar  = 2.0 // seconds
	residentBar = 150 << 20
	idleCPUBar  = 0.01 // of one processor, for each instance
)

// idle measures the service itself while databases run: how soon it is back, and
// what it costs when nobody asks anything.
func idle(ctx context.Context, r *bed.Run) (failure error) {
	l, err := r.Service(ctx)
	if err != nil {
		return err
	}
	fleet, err := createAll(ctx, l, bed.Postgres, manyCount)
	if err != nil {
		return err
	}
	names := make([]string, len(fleet))
	for n, i := range fleet {
		names[n] = i.Name
	}
	defer l.RemoveAtEnd(ctx, &failure, names...)
	if err := restarts(ctx, r, l, fleet); err != nil {
		return err
	}
	return idleCost(ctx, r, l, len(fleet))
}

// restarts ends and starts the service; the databases must not notice.
func restarts(ctx context.Context, r *bed.Run, l *bed.Lab, fleet []*bed.Instance) error {
	before, err := pids(l, fleet)
	if err != nil {
		return err
	}
	var seconds, ends []float64
	for range bed.Pick(r, 10, 3) {
		began := time.Now()
		if err := l.Stop(); err != nil {
			return err
		}
		ends = append(ends, time.Since(began).Seconds())
		took, err := l.Start(ctx)
		if err != nil {
			return err
		}
		seconds = append(seconds, took.Seconds())
		r.Out.Sample("restart", map[string]any{"instances": len(fleet), "end": ends[len(ends)-1], "ready": took.Seconds()})
	}
	after, err := pids(l, fleet)
	if err != nil {
		return err
	}
	line := bed.Row{Bench: "service", What: fmt.Sprintf("restart with %d databases running: exec → ready, the slowest of %d", len(fleet), len(seconds)),
		Value: fmt.Sprintf("%.2f s (median %.2f)", slices.Max(seconds), stat.Median(seconds)), Bar: fmt.Sprintf("≤ %.0f s", restartBar),
		Verdict: bed.Verdict(slices.Max(seconds) <= restartBar && slices.Equal(before, after)),
		Note:    fmt.Sprintf("SIGTERM → ended: median %.2f s; all %d database processes are the same ones", stat.Median(ends), len(fleet))}
	if !slices.Equal(before, after) {
		line.Note = "databases were restarted"
	}
	r.Out.Row(line)
	return nil
}

func pids(l *bed.Lab, fleet []*bed.Instance) ([]int, error) {
	pids := make([]int, len(fleet))
	for n, i := range fleet {
		var err error
		if pids[n], err = l.Pid(i); err != nil {
			return nil, err
		}
	}
	return pids, nil
}

// idleCost measures memory and processor time while nobody asks anything. The
// first moments after a start are left out.
func idleCost(ctx context.Context, r *bed.Run, l *bed.Lab, count int) error {
	pid := l.Cmd.Process.Pid
	if err := bed.Wait(ctx, bed.Pick(r, 10*time.Second, 2*time.Second)); err != nil {
		return err
	}
	over := bed.Pick(r, time.Minute, 10*time.Second)
	before, err := bed.ReadUsage(pid)
	if err != nil {
		return err
	}
	if err := bed.Wait(ctx, over); err != nil {
		return err
	}
	after, err := bed.ReadUsage(pid)
	if err != nil {
		return err
	}
	share := (after.Cpu - before.Cpu).Seconds() / over.Seconds()
	switches := float64(after.Switches-before.Switches) / over.Seconds()
	r.Out.Sample("idle", map[string]any{"instances": count, "seconds": over.Seconds(), "residentBytes": after.Resident, "peakBytes": after.Peak,
		"cpuShare": share, "switchesPerSecond": switches, "threads": after.Threads})
	r.Out.Row(bed.Row{Bench: "service", What: fmt.Sprintf("memory of the service, idle, %d instances", count), Value: fmt.Sprintf("%d MiB resident", after.Resident>>20),
		Bar: fmt.Sprintf("≤ %d MB", residentBar>>20), Verdict: bed.Verdict(after.Resident <= residentBar), Note: fmt.Sprintf("highest since its start: %d MiB", after.Peak>>20)})
	r.Out.Row(bed.Row{Bench: "service", What: fmt.Sprintf("processor use of the service for each of %d idle instances", count), Value: fmt.Sprintf("%.2f %% of a core", 100*share/float64(count)),
		Bar: "≤ 1 %", Verdict: bed.Verdict(share <= idleCPUBar*float64(count)), Note: fmt.Sprintf("%.2f %% in all, over %.0f s; %.0f context switches/s in %d threads", 100*share, over.Seconds(), switches, after.Threads)})
	return nil
}
