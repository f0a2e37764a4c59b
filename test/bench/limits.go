package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"kurabe/internal/cgroup"
	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

const (
	limitsClients = 16
	limitsScale   = 30
	limitsGiB     = 120 // io1 allows 50 IOPS for each GiB
	limitsBand    = 0.10
	limitsClass   = "db.t3.medium"
	// sampleEvery is how often the counters are read under load.
	sampleEvery = 500 * time.Millisecond
)

// limitArm is one instance of the measurement of limits.
type limitArm struct {
	what  string
	iops  int32 // 0: not limited
	i     *bed.Instance
	group []float64 // write operations a second, by the group's counter
	disk  []float64 // by the disk's, merged ones counted
	tps   []float64
	// A checkpoint after the load: writes that the group was charged, and those of
	// the disk.
	checkpointGroup, checkpointDisk int64
	checkpointTook                  time.Duration
}

// limits measures whether provisioned IOPS are what an instance gets.
func limits(ctx context.Context, r *bed.Run) (failure error) {
	l, err := r.Service(ctx)
	if err != nil {
		return err
	}
	device, err := cgroup.DeviceOf(l.Data)
	if lever := l.Levers().IO; err != nil || !lever.Enforceable {
		r.Out.Row(bed.Row{Bench: "io", What: "io1, write IOPS", Value: bed.NotMeasured, Note: fmt.Sprint(lever.Reason, err)})
		return nil
	}
	arms := []*limitArm{{what: "local"}, {what: "io1, 1000 IOPS", iops: 1000}, {what: "io1, 6000 IOPS", iops: 6000}}
	defer func() {
		for _, a := range arms {
			if a.i != nil && ctx.Err() == nil {
				failure = errors.Join(failure, l.Remove(ctx, a.i.Name))
			}
		}
	}()
	for n, a := range arms {
		o := bed.Order{Name: fmt.Sprintf("limits-%d", n), Engine: bed.Postgres, Class: limitsClass, Gib: limitsGiB}
		if a.iops > 0 {
			o.Storage, o.Iops = "io1", a.iops
		}
		if a.i, err = l.Create(ctx, o); err != nil {
			return err
		}
		if err := a.i.PgbenchInit(ctx, true, bed.Pick(r, limitsScale, 16)); err != nil {
			return err
		}
	}
	for round := range bed.Pick(r, 3, 1) {
		for _, n := range r.Rng.Perm(len(arms)) {
			if err := underLimit(ctx, r, l, arms[n], device, round); err != nil {
				return fmt.Errorf("%s: %w", arms[n].what, err)
			}
		}
	}
	for _, a := range arms {
		limited(r, a, stat.Median(arms[0].group))
	}
	return nil
}

// writes are counters of write operations at one moment.
type writes struct {
	group, disk, merged int64
	at                  time.Time
}

func readWrites(g cgroup.Group, device cgroup.Device) (writes, error) {
	w := writes{at: time.Now()}
	s, err := g.Stats()
	if err != nil {
		return w, err
	}
	w.group = s.IO[device].WriteOps
	for _, line := range bed.ReadLines("/proc/diskstats") {
		f := strings.Fields(line)
		if len(f) > 10 && f[0]+":"+f[1] == device.String() {
			w.disk, _ = strconv.ParseInt(f[7], 10, 64)
			w.merged, _ = strconv.ParseInt(f[8], 10, 64)
		}
	}
	return w, nil
}

// underLimit runs one trial and counts between the first and last sample, so that
// neither the connecting nor the end is in it.
func underLimit(ctx context.Context, r *bed.Run, l *bed.Lab, a *limitArm, device cgroup.Device, round int) error {
	if err := bed.Settle(ctx, a.i.Target, l.Home(a.i)); err != nil {
		return err
	}
	g, ok := l.Levers().Find(a.i.Id)
	if !ok {
		return errors.New("the instance has no control group")
	}
	type ended struct {
		bed.Result
		err error
	}
	x := bed.Trial{Clients: limitsClients, Seconds: max(r.Seconds, 3), Tls: true, Seed: r.Rng.Uint64()}
	done := make(chan ended, 1)
	go func() {
		got, err := a.i.Pgbench(ctx, x)
		done <- ended{got, err}
	}()
	var samples []writes
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w, err := readWrites(g, device)
			if err != nil {
				return errors.Join(err, (<-done).err)
			}
			samples = append(samples, w)
		case end := <-done:
			if end.err != nil {
				return end.err
			}
			if err := countWrites(r, a, samples, end.Result, round); err != nil {
				return err
			}
			return a.countCheckpoint(ctx, l, g, device)
		}
	}
}

func countWrites(r *bed.Run, a *limitArm, samples []writes, got bed.Result, round int) error {
	if len(samples) < 3 {
		return errors.New("too few samples")
	}
	first, last := samples[1], samples[len(samples)-1]
	rate := func(from, to writes, count func(writes) int64) float64 {
		return float64(count(to)-count(from)) / to.at.Sub(from.at).Seconds()
	}
	group := func(w writes) int64 { return w.group }
	a.group = append(a.group, rate(first, last, group))
	a.disk = append(a.disk, rate(first, last, func(w writes) int64 { return w.disk + w.merged }))
	a.tps = append(a.tps, got.PerSecond)
	var steps []float64
	for n := 2; n < len(samples); n++ {
		steps = append(steps, math.Round(rate(samples[n-1], samples[n], group)))
	}
	r.Out.Sample("limit", map[string]any{
		"what": a.what, "round": round, "result": got, "groupWritesPerSecond": a.group[len(a.group)-1], "steps": steps, "stepSeconds": sampleEvery.Seconds(),
		"diskWritesPerSecond": rate(first, last, func(w writes) int64 { return w.disk }), "diskMergedPerSecond": rate(first, last, func(w writes) int64 { return w.merged }),
	})
	return nil
}

// countCheckpoint counts what writing the dirty pages out costs, and to whom it is
// counted: the kernel may write for a process later, outside its group.
func (a *limitArm) countCheckpoint(ctx context.Context, l *bed.Lab, g cgroup.Group, device cgroup.Device) error {
	before, err := readWrites(g, device)
	if err != nil {
		return err
	}
	if err := bed.Settle(ctx, a.i.Target, l.Home(a.i)); err != nil {
		return err
	}
	after, err := readWrites(g, device)
	a.checkpointGroup += after.group - before.group
	a.checkpointDisk += after.disk + after.merged - before.disk - before.merged
	a.checkpointTook += after.at.Sub(before.at)
	return err
}

// limited reports one arm; most is what the device does without a limit.
func limited(r *bed.Run, a *limitArm, most float64) {
	group, disk := stat.Median(a.group), stat.Median(a.disk)
	r.Out.Sample("checkpoint", map[string]any{"what": a.what, "groupWrites": a.checkpointGroup, "diskWrites": a.checkpointDisk, "seconds": a.checkpointTook.Seconds()})
	line := bed.Row{Bench: "io", What: "pgbench TPC-B, 16 clients, " + a.what + ": write IOPS", Value: fmt.Sprintf("%.0f", group)}
	line.Note = fmt.Sprintf("%.0f transactions/s; the whole disk did %.0f writes/s, so %.0f/s were counted to others (kernel writeback, journal, other processes)",
		stat.Median(a.tps), disk, max(0, disk-group))
	line.Note += fmt.Sprintf("; checkpoints after it: %d writes in %.1f s (%.0f/s), %d of the whole disk",
		a.checkpointGroup, a.checkpointTook.Seconds(), float64(a.checkpointGroup)/a.checkpointTook.Seconds(), a.checkpointDisk)
	if a.iops == 0 {
		line.What += ", not limited"
		r.Out.Row(line)
		return
	}
	least := (1 - limitsBand) * min(float64(a.iops), most)
	line.Bar = fmt.Sprintf("%d ± 10 %%", a.iops)
	if most < float64(a.iops) {
		line.Bar = fmt.Sprintf("≥ %.0f, 90 %% of what it writes without a limit", least)
	}
	line.Verdict = bed.Verdict(group >= least && group <= (1+limitsBand)*float64(a.iops))
	r.Out.Row(line)
}
