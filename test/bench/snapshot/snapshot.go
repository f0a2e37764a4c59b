package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

// The bars of snapshots.
const (
	cloneBar        = 3.0  // seconds, of a snapshot on a file system that clones, at any size
	cloneP99Bar     = 4.0  // times the 99th percentile before it
	pacedP99Bar     = 10.0 // the same of a paced copy
	unpacedRateBar  = 0.8  // of the rate of a parallel cp of the same files
	idleCloneBar    = 0.3  // seconds
	restoreBar      = 3.0  // seconds until available, from a clone
	cloneCommandBar = 3.0  // seconds of "kurabe clone"
)

const (
	snapshotRate    = 1000 // updates a second, by schedule
	DefaultSizes    = "1,5,10"
	snapshotPaceMiB = 100 // the service's default
	// settleAfter is how long the clients are watched from the beginning of a
	// snapshot on at the least: what it left them to wait for shows later.
	settleAfter = 2 * time.Second
)

// sizes are the sizes of the data in GB.
func sizes(r *bed.Run) ([]float64, error) {
	text := r.Sizes
	if text == "" {
		text = bed.Pick(r, DefaultSizes, "0.3")
	}
	var list []float64
	for _, field := range strings.Split(text, ",") {
		size, err := strconv.ParseFloat(field, 64)
		if err != nil || size <= 0 || size > 100 {
			return nil, fmt.Errorf("--sizes %s: %q is not a number of GB up to 100", text, field)
		}
		list = append(list, size)
	}
	return list, nil
}

// snapshotArm is one way of taking a copy beside clients.
type snapshotArm struct {
	name  string
	on    *snapshotLab
	pace  int                             // MiB/s of the service, -1: whatever it is
	copy  func(ctx context.Context) error // returns when the copy can be relied on
	clean func(ctx context.Context) error // removes it

	seconds, before, during []float64 // one of each block; the latter in ms
	bySecond                []float64 // the last trial's 99th percentiles from the request on, in ms
}

// slowdown is how much the 99th percentile rose, in the middle of the blocks.
func (a *snapshotArm) slowdown() float64 {
	var list []float64
	for n := range a.before {
		list = append(list, a.during[n]/a.before[n])
	}
	return stat.Median(list)
}

// Snapshots measures copies of running servers, what they do to clients, restores
// and clones.
func Snapshots(ctx context.Context, r *bed.Run) error {
	sizes, err := sizes(r)
	if err != nil {
		return err
	}
	for _, engine := range []string{bed.Postgres, bed.MariaDB} {
		if r.Engine != "" && r.Engine != engine {
			continue
		}
		for _, size := range sizes {
			if err := snapshotsOf(ctx, r, engine, size); err != nil {
				return fmt.Errorf("%s, %g GB: %w", engine, size, err)
			}
		}
	}
	return nil
}

// snapshotsOf measures one engine at one size, on a file system that clones and on
// an ordinary one.
func snapshotsOf(ctx context.Context, r *bed.Run, engine string, size float64) (failure error) {
	copies, err := openSnapshotLab(ctx, r, "", engine, size)
	defer func() { failure = errors.Join(failure, copies.close()) }()
	if err != nil {
		return err
	}
	if copies.i == nil {
		r.NotInstalled("snapshot", "snapshots of "+bed.EngineTitle[engine])
		return nil
	}
	var clones *snapshotLab
	if r.Arm == "" || strings.Contains(armClone+armHandClone, r.Arm) {
		clones, err = openSnapshotLab(ctx, r, xfs, engine, size)
	}
	defer func() { failure = errors.Join(failure, clones.close()) }()
	switch {
	case errors.Is(err, errNoXFS):
		r.Out.Row(bed.Row{Bench: "snapshot", What: "snapshots of " + bed.EngineTitle[engine] + " on a file system that clones", Value: bed.NotMeasured, Note: err.Error()})
		clones = nil
	case err != nil:
		return err
	}
	arms := slices.DeleteFunc(snapshotArms(r, engine, copies, clones), func(a *snapshotArm) bool { return !strings.Contains(a.name, r.Arm) })
	if err := snapshotBlocks(ctx, r, engine, size, arms); err != nil {
		return err
	}
	snapshotRows(r, engine, size, arms)
	if clones != nil {
		return cloneTimes(ctx, r, engine, size, clones)
	}
	return nil
}

// The names of the arms, by which their rows find them.
const (
	armClone     = "Kurabe, clone"
	armPaced     = "Kurabe, copy paced to 100 MiB/s"
	armUnpaced   = "Kurabe, copy unpaced"
	armHandClone = "by hand: backup mode and cp --reflink"
	armHandCopy  = "by hand: backup mode and parallel cp"
	armTool      = "pg_basebackup"
	armMariaDB   = "mariadb-backup and prepare, by hand"
)

func snapshotArms(r *bed.Run, engine string, copies, clones *snapshotLab) []*snapshotArm {
	kurabe := func(name string, on *snapshotLab, paceMiB int) *snapshotArm {
		return &snapshotArm{name: name, on: on, pace: paceMiB, copy: on.takeSnapshot, clean: on.removeSnapshot}
	}
	hand := func(name string, on *snapshotLab, copy func(context.Context) error) *snapshotArm {
		return &snapshotArm{name: name, on: on, pace: -1, copy: copy, clean: on.removeHand}
	}
	arms := []*snapshotArm{kurabe(armPaced, copies, snapshotPaceMiB), kurabe(armUnpaced, copies, 0)}
	if clones != nil {
		arms = append(arms, kurabe(armClone, clones, snapshotPaceMiB))
	}
	if engine == bed.MariaDB {
		if _, err := exec.LookPath("mariadb-backup"); err == nil {
			arms = append(arms, hand(armMariaDB, copies, copies.mariadbBackup))
		}
		return arms
	}
	arms = append(arms, hand(armHandCopy, copies, copies.backupMode(parallelCopy)), hand(armTool, copies, copies.baseBackup))
	if clones != nil {
		arms = append(arms, hand(armHandClone, clones, clones.backupMode(reflinkCopy)))
	}
	return arms
}

// blocksOf is how many blocks a size gets: a large one takes minutes for each.
func blocksOf(r *bed.Run, size float64) int {
	if size > 1 {
		return min(r.Blocks, 2)
	}
	return min(r.Blocks, bed.Pick(r, 6, 1))
}

// snapshotBlocks does every arm once in each block, in random order.
func snapshotBlocks(ctx context.Context, r *bed.Run, engine string, size float64, arms []*snapshotArm) error {
	for block := range blocksOf(r, size) {
		for position, n := range r.Rng.Perm(len(arms)) {
			if err := snapshotTrial(ctx, r, arms[n]); err != nil {
				return fmt.Errorf("%s: %w", arms[n].name, err)
			}
			a := arms[n]
			last := len(a.seconds) - 1
			r.Out.Sample("snapshot", map[string]any{
				"engine": engine, "gb": size, "block": block, "position": position, "arm": a.name, "seconds": a.seconds[last],
				"p99BeforeMs": a.before[last], "p99DuringMs": a.during[last], "p99BySecondMs": a.bySecond,
			})
			r.Out.Say("    %s: %.2f s, p99 %.1f to %.1f ms", a.name, a.seconds[last], a.before[last], a.during[last])
		}
	}
	return nil
}

// snapshotTrial takes one copy beside clients.
func snapshotTrial(ctx context.Context, r *bed.Run, a *snapshotArm) error {
	if err := a.on.prepare(ctx, a); err != nil {
		return err
	}
	load, err := startOpenLoad(ctx, a.on.i.Target, a.on.rows, snapshotRate, r.Rng.Uint64())
	if err != nil {
		return err
	}
	defer load.stop()
	_ = bed.Wait(ctx, time.Duration(r.Seconds)*time.Second)
	began := time.Now()
	err = a.copy(ctx)
	took := time.Since(began)
	if err == nil {
		_ = bed.Wait(ctx, settleAfter-took)
	}
	until := time.Now()
	err = errors.Join(err, load.stop())
	if err == nil {
		a.seconds = append(a.seconds, took.Seconds())
		// The first second is the connections' and the cache's.
		a.before = append(a.before, load.p99(load.began.Add(time.Second), began))
		a.during = append(a.during, load.p99(began, until))
		a.bySecond = a.bySecond[:0]
		for at := began; !at.Add(time.Second).After(until); at = at.Add(time.Second) {
			a.bySecond = append(a.bySecond, load.p99(at, at.Add(time.Second)))
		}
	}
	return errors.Join(err, a.clean(context.WithoutCancel(ctx)))
}

// snapshotRows gives a row to each arm and one to the rate of a copy.
func snapshotRows(r *bed.Run, engine string, size float64, arms []*snapshotArm) {
	find := func(name string) *snapshotArm {
		if n := slices.IndexFunc(arms, func(a *snapshotArm) bool { return a.name == name }); n >= 0 {
			return arms[n]
		}
		return nil
	}
	for _, a := range arms {
		line := bed.Row{Bench: "snapshot", What: fmt.Sprintf("%s %g GB, %d updates/s: %s", bed.EngineTitle[engine], size, snapshotRate, a.name),
			Value: fmt.Sprintf("%s, p99 %s → %s ms", spread(a.seconds, "s"), middle(a.before), middle(a.during)),
			Note:  fmt.Sprintf("%d blocks; latency from the scheduled start; p99 × %.1f; during: from the request until %g s later at the least", len(a.seconds), a.slowdown(), settleAfter.Seconds())}
		switch a.name {
		case armClone:
			line.Bar = fmt.Sprintf("≤ %g s, p99 × ≤ %g", cloneBar, cloneP99Bar)
			line.Verdict = bed.Verdict(stat.Median(a.seconds) <= cloneBar && a.slowdown() <= cloneP99Bar)
		case armPaced:
			line.Bar, line.Verdict = fmt.Sprintf("p99 × ≤ %g", pacedP99Bar), bed.Verdict(a.slowdown() <= pacedP99Bar)
		}
		r.Out.Row(line)
	}
	if own, cp := find(armUnpaced), find(armHandCopy); cp != nil {
		ratio := stat.PairedRatio(cp.seconds, own.seconds, bed.SpeedLevel)
		said := bed.AtLeast(ratio.Interval, unpacedRateBar)
		if ratio.Interval.Level == 0 { // of three blocks; the table says that there is no interval
			said = bed.Verdict(ratio.Estimate >= unpacedRateBar)
		}
		r.Out.Row(bed.Row{Bench: "snapshot", What: fmt.Sprintf("%s %g GB: rate of Kurabe's unpaced copy / parallel cp", bed.EngineTitle[engine], size),
			Value: bed.FormatRatio(ratio), Bar: fmt.Sprintf("≥ %.2f", unpacedRateBar), Verdict: said,
			Note: "beside the same clients, with checksums here and without there"})
	}
}

func middle(values []float64) string { return fmt.Sprintf("%.1f", stat.Median(values)) }

// spread is the middle and the ends.
func spread(values []float64, unit string) string {
	if len(values) == 1 {
		return fmt.Sprintf("%.2f %s", values[0], unit)
	}
	return fmt.Sprintf("%.2f %s (%.2f to %.2f)", stat.Median(values), unit, slices.Min(values), slices.Max(values))
}
