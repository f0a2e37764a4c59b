package labproof

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"runtime"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/load"
	labresult "kurabe/lab/result"
	"kurabe/lab/stat"
	"kurabe/lab/study"
	"kurabe/test/bench/bed"
)

const (
	// agreeBar and agreeMicros are how far the two generators may differ: the larger of
	// the two counts, since 5 % of a fast answer is less than a clock's noise.
	agreeBar    = 0.05
	agreeMicros = 20.0
	AgreeRate   = 500 // a second: both generators and the server have time to spare
	AgreeWarm   = time.Second
	// AgreeRuns are runs in place of one, each agreeLonger times as long. One run differs from
	// the next of the same generator by 8 %, by where the kernel happens to place nine
	// processes on two processors. Short ones differ in kind: pgbench's sessions are new, and
	// the first transactions of eight are half a percent of four seconds, which its p95 shows.
	AgreeRuns   = 2
	agreeLonger = 1.5
)

// Proof measures the measurer: whether what the lab says is true.
func Proof(ctx context.Context, r *bed.Run) error {
	err := errors.Join(proveCoverage(ctx, r), proveCapacity(ctx, r))
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(err, proveOnServer(ctx, r))
}

// proveOnServer needs a PostgreSQL.
func proveOnServer(ctx context.Context, r *bed.Run) (failure error) {
	l, err := r.Service(ctx)
	if err != nil {
		return err
	}
	if l.Engines[bed.Postgres] == "" {
		r.NotInstalled("lab", "own generator against pgbench; planted costs")
		return nil
	}
	// Without TLS: it is done by another library in each of the generators.
	o := bed.Order{Name: "lab-proof", Engine: bed.Postgres, Class: l.WholeClass(runtime.NumCPU())}
	if o.Group, err = l.GroupWithoutTLS(ctx, bed.Postgres); err != nil {
		return err
	}
	i, err := l.Create(ctx, o)
	if err != nil {
		return err
	}
	defer l.RemoveAtEnd(ctx, &failure, i.Name)
	if err := proveAgreement(ctx, r, l, i); err != nil {
		return fmt.Errorf("own generator against pgbench: %w", err)
	}
	if err := provePlanted(ctx, r, i); err != nil {
		return fmt.Errorf("planted costs: %w", err)
	}
	return nil
}

// agreeKits are what both generators can send, word for word.
var agreeKits = []string{"select-only", "tpcb-like"}

// proveAgreement has both generators load one server at one rate, in turns.
func proveAgreement(ctx context.Context, r *bed.Run, l *bed.Lab, i *bed.Instance) error {
	const what = "own generator / pgbench at %d a second, %s, %s"
	if _, err := exec.LookPath("pgbench"); err != nil {
		r.Out.Row(bed.Row{Bench: "lab", What: fmt.Sprintf(what, AgreeRate, "all kits", "p50 and p95"), Value: bed.NotMeasured, Note: "pgbench is not installed: scripts/install.sh bench"})
		return nil
	}
	// The disk is left out: its moods would be the larger part of every percentile.
	if err := i.Exec(ctx, "ALTER DATABASE "+bed.Database+" SET synchronous_commit = off"); err != nil {
		return err
	}
	for _, kit := range agreeKits {
		arms, err := agreeArms(ctx, r, i, kit)
		if err != nil {
			return err
		}
		if err := AgreeBlocks(ctx, r, l, i, arms); err != nil {
			return err
		}
		for n, quantile := range AgreeQuantiles {
			agreed(r, fmt.Sprintf(what, AgreeRate, kit, fmt.Sprintf("p%g", quantile)), arms, n)
		}
	}
	return nil
}

// AgreeTime is how long a run is measured.
func AgreeTime(r *bed.Run) time.Duration {
	return max(time.Duration(agreeLonger*float64(r.Seconds)*float64(time.Second)), AgreeWarm)
}

var AgreeQuantiles = []float64{50, 95}

// AgreeArm is one generator; micros are by quantile and block.
type AgreeArm struct {
	Name, Kit string
	At        bed.Target // where it finds the server
	Generator load.Generator
	Micros    [][]float64
	skipped   int64
}

func agreeArms(ctx context.Context, r *bed.Run, i *bed.Instance, kit string) ([]*AgreeArm, error) {
	names := []string{study.GeneratorOwn, study.GeneratorPgbench}
	if r.AA {
		names = append(names, study.GeneratorPgbench)
	}
	var arms []*AgreeArm
	for n, name := range names {
		g, err := load.New(study.Workload{Name: kit, Generator: name, Kit: kit, Mode: study.ModeOpen, Rate: AgreeRate,
			Clients: bed.SpeedClients, Scale: bed.Pick(r, 10, 1), Protocol: "prepared"})
		if err != nil {
			return nil, err
		}
		if err := g.Prepare(ctx, LabServer(i.Target)); err != nil {
			return nil, err
		}
		a := &AgreeArm{Name: name, Kit: kit, At: i.Target, Generator: g, Micros: make([][]float64, len(AgreeQuantiles))}
		if n == 2 {
			a.Name += " again"
		}
		arms = append(arms, a)
	}
	return arms, nil
}

// LabServer is how the lab enters an instance.
func LabServer(t bed.Target) dial.Server {
	return dial.Server{Engine: t.Engine, Host: t.Host, Port: t.Port, User: bed.MasterUser, Password: bed.MasterPassword, Database: bed.Database}
}

// AgreeBlocks runs the arms in blocks of random order.
func AgreeBlocks(ctx context.Context, r *bed.Run, l *bed.Lab, i *bed.Instance, arms []*AgreeArm) error {
	for block := range AgreeRuns * r.Blocks {
		seed := r.Rng.Uint64()
		for position, n := range r.Rng.Perm(len(arms)) {
			a := arms[n]
			if err := bed.Settle(ctx, i.Target, l.Home(i)); err != nil {
				return fmt.Errorf("checkpoint: %w", err)
			}
			out, err := a.Generator.Run(ctx, LabServer(a.At), load.Options{Warm: AgreeWarm, Measure: AgreeTime(r), Seed: seed})
			if err != nil {
				return fmt.Errorf("%s, %s: %w", a.Kit, a.Name, err)
			}
			measured := out.Phases[len(out.Phases)-1].Load
			h, err := labresult.DecodeHistogram(measured.Response)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", a.Kit, a.Name, err)
			}
			sample := map[string]any{"kit": a.Kit, "block": block, "position": position, "arm": a.Name, "seed": seed, "transactions": measured.Transactions,
				"skipped": measured.Skipped, "errors": measured.Errors, "generator": measured.Generator}
			for n, quantile := range AgreeQuantiles {
				micros := float64(h.ValueAtQuantile(quantile))
				a.Micros[n] = append(a.Micros[n], micros)
				sample[fmt.Sprintf("p%gMicros", quantile)] = micros
			}
			a.skipped += measured.Skipped
			r.Out.Sample("agree", sample)
		}
	}
	return nil
}

// agreed prints one quantile of all blocks.
func agreed(r *bed.Run, what string, arms []*AgreeArm, quantile int) {
	own, pgbench := arms[0].Micros[quantile], arms[1].Micros[quantile]
	ratio := stat.PairedRatio(own, pgbench, bed.SpeedLevel)
	line := bed.Row{Bench: "lab", What: what, Value: bed.FormatRatio(ratio), Bar: fmt.Sprintf("± %.0f %% or %.0f µs", 100*agreeBar, agreeMicros),
		Verdict: agreeVerdict(ratio, stat.Median(pgbench))}
	line.Note = fmt.Sprintf("median %.0f against %.0f µs; %d blocks of %s, %d clients", stat.Median(own), stat.Median(pgbench), len(own), AgreeTime(r), bed.SpeedClients)
	if skipped := arms[0].skipped + arms[1].skipped; skipped > 0 {
		line.Note += fmt.Sprintf("; %d arrivals skipped", skipped)
	}
	r.Out.Row(line)
	if r.AA {
		r.Out.Row(bed.Row{Bench: "lab", What: what + ": pgbench / pgbench", Value: bed.FormatRatio(stat.PairedRatio(arms[2].Micros[quantile], pgbench, bed.SpeedLevel)),
			Note: "the same program twice: what the machine alone differs by"})
	}
}

// agreeVerdict calls the generators equal, or not, only when the whole interval says so.
func agreeVerdict(x stat.Ratio, micros float64) string {
	bar := max(agreeBar, agreeMicros/micros)
	inside := func(ratio float64) bool { return math.Abs(ratio-1) <= bar }
	switch {
	case x.Interval.Level > 0 && inside(x.Interval.Low) && inside(x.Interval.High):
		return bed.Meets
	case x.Interval.Level > 0 && (x.Interval.Low > 1+bar || x.Interval.High < 1-bar):
		return bed.Misses
	}
	return bed.Undecided
}
