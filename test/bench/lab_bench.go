package main

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
)

const (
	// agreeBar and agreeMicros are how far the two generators may differ: the larger of
	// the two counts, since 5 % of a fast answer is less than a clock's noise.
	agreeBar    = 0.05
	agreeMicros = 20.0
	agreeRate   = 500 // a second: both generators and the server have time to spare
	agreeWarm   = time.Second
	// agreeRuns are runs in place of one, each agreeLonger times as long. One run differs from
	// the next of the same generator by 8 %, by where the kernel happens to place nine
	// processes on two processors. Short ones differ in kind: pgbench's sessions are new, and
	// the first transactions of eight are half a percent of four seconds, which its p95 shows.
	agreeRuns   = 2
	agreeLonger = 1.5
)

// labProof measures the measurer: whether what the lab says is true.
func labProof(ctx context.Context, r *run) error {
	err := errors.Join(r.proveCoverage(ctx), r.proveCapacity(ctx))
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(err, r.proveOnServer(ctx))
}

// proveOnServer needs a PostgreSQL.
func (r *run) proveOnServer(ctx context.Context) (failure error) {
	l, err := r.service(ctx)
	if err != nil {
		return err
	}
	if l.engines[postgres] == "" {
		r.notInstalled("lab", "own generator against pgbench; planted costs")
		return nil
	}
	// Without TLS: it is done by another library in each of the generators.
	o := order{name: "lab-proof", engine: postgres, class: l.wholeClass(runtime.NumCPU())}
	if o.group, err = l.groupWithoutTLS(ctx, postgres); err != nil {
		return err
	}
	i, err := l.create(ctx, o)
	if err != nil {
		return err
	}
	defer l.removeAtEnd(ctx, &failure, i.name)
	if err := r.proveAgreement(ctx, l, i); err != nil {
		return fmt.Errorf("own generator against pgbench: %w", err)
	}
	if err := r.provePlanted(ctx, i); err != nil {
		return fmt.Errorf("planted costs: %w", err)
	}
	return nil
}

// agreeKits are what both generators can send, word for word.
var agreeKits = []string{"select-only", "tpcb-like"}

// proveAgreement has both generators load one server at one rate, in turns.
func (r *run) proveAgreement(ctx context.Context, l *lab, i *instance) error {
	const what = "own generator / pgbench at %d a second, %s, %s"
	if _, err := exec.LookPath("pgbench"); err != nil {
		r.out.row(row{Bench: "lab", What: fmt.Sprintf(what, agreeRate, "all kits", "p50 and p95"), Value: notMeasured, Note: "pgbench is not installed: scripts/install.sh bench"})
		return nil
	}
	// The disk is left out: its moods would be the larger part of every percentile.
	if err := i.exec(ctx, "ALTER DATABASE "+database+" SET synchronous_commit = off"); err != nil {
		return err
	}
	for _, kit := range agreeKits {
		arms, err := agreeArms(ctx, r, i, kit)
		if err != nil {
			return err
		}
		if err := r.agreeBlocks(ctx, l, i, arms); err != nil {
			return err
		}
		for n, quantile := range agreeQuantiles {
			r.agreed(fmt.Sprintf(what, agreeRate, kit, fmt.Sprintf("p%g", quantile)), arms, n)
		}
	}
	return nil
}

// agreeTime is how long a run is measured.
func (r *run) agreeTime() time.Duration {
	return max(time.Duration(agreeLonger*float64(r.Seconds)*float64(time.Second)), agreeWarm)
}

var agreeQuantiles = []float64{50, 95}

// agreeArm is one generator; micros are by quantile and block.
type agreeArm struct {
	name, kit string
	at        target // where it finds the server
	generator load.Generator
	micros    [][]float64
	skipped   int64
}

func agreeArms(ctx context.Context, r *run, i *instance, kit string) ([]*agreeArm, error) {
	names := []string{study.GeneratorOwn, study.GeneratorPgbench}
	if r.AA {
		names = append(names, study.GeneratorPgbench)
	}
	var arms []*agreeArm
	for n, name := range names {
		g, err := load.New(study.Workload{Name: kit, Generator: name, Kit: kit, Mode: study.ModeOpen, Rate: agreeRate,
			Clients: speedClients, Scale: pick(r, 10, 1), Protocol: "prepared"})
		if err != nil {
			return nil, err
		}
		if err := g.Prepare(ctx, i.labServer()); err != nil {
			return nil, err
		}
		a := &agreeArm{name: name, kit: kit, at: i.target, generator: g, micros: make([][]float64, len(agreeQuantiles))}
		if n == 2 {
			a.name += " again"
		}
		arms = append(arms, a)
	}
	return arms, nil
}

// labServer is how the lab enters an instance.
func (t target) labServer() dial.Server {
	return dial.Server{Engine: t.engine, Host: t.host, Port: t.port, User: masterUser, Password: masterPassword, Database: database}
}

func (r *run) agreeBlocks(ctx context.Context, l *lab, i *instance, arms []*agreeArm) error {
	for block := range agreeRuns * r.Blocks {
		seed := r.rng.Uint64()
		for position, n := range r.rng.Perm(len(arms)) {
			a := arms[n]
			if err := settle(ctx, i.target, l.home(i)); err != nil {
				return fmt.Errorf("checkpoint: %w", err)
			}
			out, err := a.generator.Run(ctx, a.at.labServer(), load.Options{Warm: agreeWarm, Measure: r.agreeTime(), Seed: seed})
			if err != nil {
				return fmt.Errorf("%s, %s: %w", a.kit, a.name, err)
			}
			measured := out.Phases[len(out.Phases)-1].Load
			h, err := labresult.DecodeHistogram(measured.Response)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", a.kit, a.name, err)
			}
			sample := map[string]any{"kit": a.kit, "block": block, "position": position, "arm": a.name, "seed": seed, "transactions": measured.Transactions,
				"skipped": measured.Skipped, "errors": measured.Errors, "generator": measured.Generator}
			for n, quantile := range agreeQuantiles {
				micros := float64(h.ValueAtQuantile(quantile))
				a.micros[n] = append(a.micros[n], micros)
				sample[fmt.Sprintf("p%gMicros", quantile)] = micros
			}
			a.skipped += measured.Skipped
			r.out.sample("agree", sample)
		}
	}
	return nil
}

// agreed prints one quantile of all blocks.
func (r *run) agreed(what string, arms []*agreeArm, quantile int) {
	own, pgbench := arms[0].micros[quantile], arms[1].micros[quantile]
	ratio := stat.PairedRatio(own, pgbench, speedLevel)
	line := row{Bench: "lab", What: what, Value: formatRatio(ratio), Bar: fmt.Sprintf("± %.0f %% or %.0f µs", 100*agreeBar, agreeMicros),
		Verdict: agreeVerdict(ratio, stat.Median(pgbench))}
	line.Note = fmt.Sprintf("median %.0f against %.0f µs; %d blocks of %s, %d clients", stat.Median(own), stat.Median(pgbench), len(own), r.agreeTime(), speedClients)
	if skipped := arms[0].skipped + arms[1].skipped; skipped > 0 {
		line.Note += fmt.Sprintf("; %d arrivals skipped", skipped)
	}
	r.out.row(line)
	if r.AA {
		r.out.row(row{Bench: "lab", What: what + ": pgbench / pgbench", Value: formatRatio(stat.PairedRatio(arms[2].micros[quantile], pgbench, speedLevel)),
			Note: "the same program twice: what the machine alone differs by"})
	}
}

// agreeVerdict calls the generators equal, or not, only when the whole interval says so.
func agreeVerdict(x stat.Ratio, micros float64) string {
	bar := max(agreeBar, agreeMicros/micros)
	inside := func(ratio float64) bool { return math.Abs(ratio-1) <= bar }
	switch {
	case x.Interval.Level > 0 && inside(x.Interval.Low) && inside(x.Interval.High):
		return meets
	case x.Interval.Level > 0 && (x.Interval.Low > 1+bar || x.Interval.High < 1-bar):
		return misses
	}
	return undecided
}
