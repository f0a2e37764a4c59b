package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

const speedBar = 0.98

func workloads(r *bed.Run) []bed.Workload {
	x := bed.Trial{Clients: bed.SpeedClients, Seconds: r.Seconds}
	with := func(x bed.Trial, change func(*bed.Trial)) bed.Trial { change(&x); return x }
	rows := func(x *bed.Trial) { x.Scale = bed.Pick(r, bed.SysbenchRows, bed.SysbenchRows/10) }
	all := []bed.Workload{
		{Bench: "tpcb", Engine: bed.Postgres, What: "pgbench TPC-B-like, 8 clients, TLS", Trial: with(x, func(x *bed.Trial) { x.Tls = true }), Load: bed.Target.Pgbench, Note: ""},
		{Bench: "tpcb", Engine: bed.Postgres, What: "pgbench TPC-B-like, 8 clients, no TLS", Trial: x, Load: bed.Target.Pgbench, Note: ""},
		{Bench: "select", Engine: bed.Postgres, What: "pgbench select-only, 8 clients, TLS", Trial: with(x, func(x *bed.Trial) { x.ReadOnly, x.Tls = true, true }), Load: bed.Target.Pgbench, Note: ""},
		{Bench: "select", Engine: bed.Postgres, What: "pgbench select-only, 8 clients, no TLS", Trial: with(x, func(x *bed.Trial) { x.ReadOnly = true }), Load: bed.Target.Pgbench, Note: ""},
		{Bench: "sysbench", Engine: bed.Postgres, What: "sysbench oltp_read_write on PostgreSQL, 8 threads, TLS", Trial: with(x, func(x *bed.Trial) { rows(x); x.Tls = true }), Load: bed.Target.SysbenchRun, Note: ""},
		{Bench: "sysbench", Engine: bed.MariaDB, What: "sysbench oltp_read_write on MariaDB, 8 threads, no TLS", Trial: with(x, rows), Load: bed.Target.SysbenchRun, Note: "sysbench 1.0 cannot use TLS with MariaDB without a client certificate"},
	}
	var asked []bed.Workload
	for _, w := range all {
		if r.Asked(w.Bench) {
			asked = append(asked, w)
		}
	}
	return asked
}

// speed compares instances with the same servers started by hand.
func speed(ctx context.Context, r *bed.Run) error {
	l, err := r.Service(ctx)
	if err != nil {
		return err
	}
	for _, engine := range []string{bed.Postgres, bed.MariaDB} {
		var chosen []bed.Workload
		for _, w := range workloads(r) {
			_, err := exec.LookPath("sysbench")
			switch {
			case w.Engine != engine:
			case w.Bench == "sysbench" && err != nil:
				r.Out.Row(bed.Row{Bench: w.Bench, What: w.What, Value: bed.NotMeasured, Note: "sysbench is not installed: scripts/install.sh bench"})
			case l.Engines[engine] == "":
				r.NotInstalled(w.Bench, w.What)
			default:
				chosen = append(chosen, w)
			}
		}
		if len(chosen) > 0 {
			if err := compare(ctx, r, l, engine, chosen); err != nil {
				return err
			}
		}
	}
	return nil
}

// pair is an instance and its twin.
type pair struct {
	lab      *bed.Lab
	instance *bed.Instance
	twin     *bed.Twin
	class    string
}

// compare sets up a pair, measures every workload on it and removes it.
func compare(ctx context.Context, r *bed.Run, l *bed.Lab, engine string, chosen []bed.Workload) (failure error) {
	p := pair{lab: l, class: r.Class}
	if p.class == "" {
		p.class = l.WholeClass(runtime.NumCPU())
	}
	o := bed.Order{Name: "speed-" + engine, Engine: engine, Class: p.class}
	var err error
	if engine == bed.Postgres {
		if o.Group, err = l.GroupWithoutTLS(ctx, engine); err != nil {
			return err
		}
	}
	if p.instance, err = l.Create(ctx, o); err != nil {
		return err
	}
	defer l.RemoveAtEnd(ctx, &failure, p.instance.Name)
	r.Out.Say("  filling %s %s (%s)", engine, l.Engines[engine], p.class)
	if err := fill(ctx, r, p.instance.Target, chosen); err != nil {
		return err
	}
	if p.twin, err = l.NewTwin(ctx, p.instance); err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, p.twin.Close(context.WithoutCancel(ctx))) }()
	for _, w := range chosen {
		if err := blocks(ctx, r, p, w); err != nil {
			return fmt.Errorf("%s: %w", w.What, err)
		}
	}
	return nil
}

// fill loads the data of the workloads, before the twin is copied.
func fill(ctx context.Context, r *bed.Run, t bed.Target, chosen []bed.Workload) error {
	for _, bench := range []string{"tpcb", "sysbench"} {
		for _, w := range chosen {
			if (w.Bench == "sysbench") != (bench == "sysbench") {
				continue
			}
			var err error
			if bench == "sysbench" {
				err = t.SysbenchPrepare(ctx, w.Trial.Scale)
			} else {
				err = t.PgbenchInit(ctx, true, bed.Pick(r, bed.PgbenchScale, 10))
			}
			if err != nil {
				return err
			}
			break
		}
	}
	return nil
}

func blocks(ctx context.Context, r *bed.Run, p pair, w bed.Workload) error {
	arms := []bed.Arm{{Name: "instance", Target: p.instance.Target}, {Name: "by hand", Target: p.twin.Target}}
	if r.AA {
		arms = append(arms, bed.Arm{Name: "by hand again", Target: p.twin.Target})
	}
	for _, a := range arms[:2] {
		if err := w.Warm(ctx, a.Target, bed.Pick(r, bed.WarmSeconds, 1)); err != nil {
			return err
		}
	}
	rates := make([][]float64, len(arms))
	var failed int64
	for block := range r.Blocks {
		x := w.Trial
		x.Seed = r.Rng.Uint64() // the same in a block: the pair does the same work
		for position, n := range r.Rng.Perm(len(arms)) {
			for _, home := range []string{p.lab.Home(p.instance), p.twin.Dir} {
				if err := bed.Settle(ctx, p.instance.Target, home); err != nil {
					return fmt.Errorf("checkpoint: %w", err)
				}
			}
			got, err := w.Load(arms[n].Target, ctx, x)
			if err != nil {
				return err
			}
			rates[n] = append(rates[n], got.PerSecond)
			failed += got.Failed
			r.Out.Sample("trial", map[string]any{"what": w.What, "block": block, "position": position, "arm": arms[n].Name, "seed": x.Seed, "seconds": x.Seconds, "result": got})
		}
	}
	compared(r, p, w, rates, failed)
	return nil
}

func compared(r *bed.Run, p pair, w bed.Workload, rates [][]float64, failed int64) {
	ratio := stat.PairedRatio(rates[0], rates[1], bed.SpeedLevel)
	line := bed.Row{Bench: w.Bench, What: w.What + ": instance / by hand", Value: bed.FormatRatio(ratio), Bar: fmt.Sprintf("≥ %.2f", speedBar), Verdict: bed.AtLeast(ratio.Interval, speedBar)}
	line.Note = fmt.Sprintf("median %.0f against %.0f transactions/s; %s, %d blocks of %d s", stat.Median(rates[0]), stat.Median(rates[1]), p.class, r.Blocks, r.Seconds)
	if w.Note != "" {
		line.Note += "; " + w.Note
	}
	if failed > 0 {
		line.Note += fmt.Sprintf("; %d transactions failed", failed)
	}
	r.Out.Row(line)
	if r.AA {
		r.Out.Row(bed.Row{Bench: w.Bench, What: w.What + ": by hand / by hand", Value: bed.FormatRatio(stat.PairedRatio(rates[2], rates[1], bed.SpeedLevel)), Note: "the same server twice: what the machine alone differs by"})
	}
}
