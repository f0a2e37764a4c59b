package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/lab/stat"
)

const (
	speedBar     = 0.98
	speedClients = 8
	speedLevel   = 0.95
	// pgbenchScale is 750 MB, which the shared buffers of a class of 8 GiB hold.
	pgbenchScale = 50
	// speedMemory is the least memory of a compared instance, so that the data
	// fits and the disk does not decide.
	speedMemory = 8 * kurabe.GiB
	warmSeconds = 5
)

// workload is one comparison.
type workload struct {
	bench, engine, what string
	trial               trial
	load                func(target, context.Context, trial) (result, error)
	note                string
}

func (r *run) workloads() []workload {
	x := trial{clients: speedClients, seconds: r.Seconds}
	with := func(x trial, change func(*trial)) trial { change(&x); return x }
	rows := func(x *trial) { x.scale = pick(r, sysbenchRows, sysbenchRows/10) }
	all := []workload{
		{"tpcb", postgres, "pgbench TPC-B-like, 8 clients, TLS", with(x, func(x *trial) { x.tls = true }), target.pgbench, ""},
		{"tpcb", postgres, "pgbench TPC-B-like, 8 clients, no TLS", x, target.pgbench, ""},
		{"select", postgres, "pgbench select-only, 8 clients, TLS", with(x, func(x *trial) { x.readOnly, x.tls = true, true }), target.pgbench, ""},
		{"select", postgres, "pgbench select-only, 8 clients, no TLS", with(x, func(x *trial) { x.readOnly = true }), target.pgbench, ""},
		{"sysbench", postgres, "sysbench oltp_read_write on PostgreSQL, 8 threads, TLS", with(x, func(x *trial) { rows(x); x.tls = true }), target.sysbenchRun, ""},
		{"sysbench", mariadb, "sysbench oltp_read_write on MariaDB, 8 threads, no TLS", with(x, rows), target.sysbenchRun, "sysbench 1.0 cannot use TLS with MariaDB without a client certificate"},
	}
	var asked []workload
	for _, w := range all {
		if r.asked(w.bench) {
			asked = append(asked, w)
		}
	}
	return asked
}

// speed compares instances with the same servers started by hand.
func speed(ctx context.Context, r *run) error {
	l, err := r.service(ctx)
	if err != nil {
		return err
	}
	for _, engine := range []string{postgres, mariadb} {
		var chosen []workload
		for _, w := range r.workloads() {
			_, err := exec.LookPath("sysbench")
			switch {
			case w.engine != engine:
			case w.bench == "sysbench" && err != nil:
				r.out.row(row{Bench: w.bench, What: w.what, Value: notMeasured, Note: "sysbench is not installed: scripts/install.sh bench"})
			case l.engines[engine] == "":
				r.notInstalled(w.bench, w.what)
			default:
				chosen = append(chosen, w)
			}
		}
		if len(chosen) > 0 {
			if err := r.compare(ctx, l, engine, chosen); err != nil {
				return err
			}
		}
	}
	return nil
}

// pair is an instance and its twin.
type pair struct {
	lab      *lab
	instance *instance
	twin     *twin
	class    string
}

// compare sets up a pair, measures every workload on it and removes it.
func (r *run) compare(ctx context.Context, l *lab, engine string, chosen []workload) (failure error) {
	p := pair{lab: l, class: r.Class}
	if p.class == "" {
		p.class = l.wholeClass(runtime.NumCPU())
	}
	o := order{name: "speed-" + engine, engine: engine, class: p.class}
	var err error
	if engine == postgres {
		if o.group, err = l.groupWithoutTLS(ctx, engine); err != nil {
			return err
		}
	}
	if p.instance, err = l.create(ctx, o); err != nil {
		return err
	}
	defer l.removeAtEnd(ctx, &failure, p.instance.name)
	r.out.say("  filling %s %s (%s)", engine, l.engines[engine], p.class)
	if err := r.fill(ctx, p.instance.target, chosen); err != nil {
		return err
	}
	if p.twin, err = l.newTwin(ctx, p.instance); err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, p.twin.close(context.WithoutCancel(ctx))) }()
	for _, w := range chosen {
		if err := r.blocks(ctx, p, w); err != nil {
			return fmt.Errorf("%s: %w", w.what, err)
		}
	}
	return nil
}

// wholeClass is a class that holds all processors of the machine back from
// nobody: the quota of one with fewer would be measured instead of the service.
func (l *lab) wholeClass(cpus int) string {
	levers := l.levers()
	for _, family := range []string{"t3", "m5"} {
		for _, c := range kurabe.Classes() {
			if strings.HasPrefix(c.Name, "db."+family+".") && c.CPUs == cpus && c.MemoryBytes >= speedMemory &&
				levers.CPU.Enforceable && levers.Memory.Enforceable {
				return c.Name
			}
		}
	}
	return "db.local.large"
}

// groupWithoutTLS makes a parameter group that admits clients with TLS and
// without; all else is the default.
func (l *lab) groupWithoutTLS(ctx context.Context, engine string) (string, error) {
	const name = "bench-plain"
	major, _, _ := strings.Cut(l.engines[engine], ".")
	_, err := l.api.CreateDBParameterGroup(ctx, &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: aws.String(name), DBParameterGroupFamily: aws.String(engine + major), Description: aws.String("TLS on or off"),
	})
	if err != nil {
		if code(err) == "DBParameterGroupAlreadyExists" {
			err = nil
		}
		return name, err
	}
	_, err = l.api.ModifyDBParameterGroup(ctx, &rds.ModifyDBParameterGroupInput{DBParameterGroupName: aws.String(name), Parameters: []types.Parameter{
		{ParameterName: aws.String("rds.force_ssl"), ParameterValue: aws.String("0"), ApplyMethod: types.ApplyMethodImmediate},
	}})
	return name, err
}

// fill loads the data of the workloads, before the twin is copied.
func (r *run) fill(ctx context.Context, t target, chosen []workload) error {
	for _, bench := range []string{"tpcb", "sysbench"} {
		for _, w := range chosen {
			if (w.bench == "sysbench") != (bench == "sysbench") {
				continue
			}
			var err error
			if bench == "sysbench" {
				err = t.sysbenchPrepare(ctx, w.trial.scale)
			} else {
				err = t.pgbenchInit(ctx, true, pick(r, pgbenchScale, 10))
			}
			if err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// warm brings the data into memory and does a first run that does not count.
func (p pair) warm(ctx context.Context, w workload, t target, seconds int) error {
	if t.engine == postgres {
		err := t.exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_prewarm",
			"SELECT pg_prewarm(oid::regclass) FROM pg_class WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace")
		if err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	x := w.trial
	x.seconds = seconds
	_, err := w.load(t, ctx, x)
	return err
}

// settle writes out what a server still has to write, so that it does not do so
// under the other's measurement. As the service it comes in by the socket.
func settle(ctx context.Context, t target, home string) error {
	if t.engine != postgres {
		return nil
	}
	dsn := fmt.Sprintf("host=%s port=%d user=rdsadmin dbname=postgres", filepath.Join(home, "run"), t.port)
	return postgresExec(ctx, dsn, "CHECKPOINT")
}

// arm is one of the servers of a comparison.
type arm struct {
	name   string
	target target
}

func (r *run) blocks(ctx context.Context, p pair, w workload) error {
	arms := []arm{{"instance", p.instance.target}, {"by hand", p.twin.target}}
	if r.AA {
		arms = append(arms, arm{"by hand again", p.twin.target})
	}
	for _, a := range arms[:2] {
		if err := p.warm(ctx, w, a.target, pick(r, warmSeconds, 1)); err != nil {
			return err
		}
	}
	rates := make([][]float64, len(arms))
	var failed int64
	for block := range r.Blocks {
		x := w.trial
		x.seed = r.rng.Uint64() // the same in a block: the pair does the same work
		for position, n := range r.rng.Perm(len(arms)) {
			for _, home := range []string{p.lab.home(p.instance), p.twin.dir} {
				if err := settle(ctx, p.instance.target, home); err != nil {
					return fmt.Errorf("checkpoint: %w", err)
				}
			}
			got, err := w.load(arms[n].target, ctx, x)
			if err != nil {
				return err
			}
			rates[n] = append(rates[n], got.PerSecond)
			failed += got.Failed
			r.out.sample("trial", map[string]any{"what": w.what, "block": block, "position": position, "arm": arms[n].name, "seed": x.seed, "seconds": x.seconds, "result": got})
		}
	}
	r.compared(p, w, rates, failed)
	return nil
}

func (r *run) compared(p pair, w workload, rates [][]float64, failed int64) {
	ratio := stat.PairedRatio(rates[0], rates[1], speedLevel)
	line := row{Bench: w.bench, What: w.what + ": instance / by hand", Value: formatRatio(ratio), Bar: fmt.Sprintf("≥ %.2f", speedBar), Verdict: atLeast(ratio.Interval, speedBar)}
	line.Note = fmt.Sprintf("median %.0f against %.0f transactions/s; %s, %d blocks of %d s", stat.Median(rates[0]), stat.Median(rates[1]), p.class, r.Blocks, r.Seconds)
	if w.note != "" {
		line.Note += "; " + w.note
	}
	if failed > 0 {
		line.Note += fmt.Sprintf("; %d transactions failed", failed)
	}
	r.out.row(line)
	if r.AA {
		r.out.row(row{Bench: w.bench, What: w.what + ": by hand / by hand", Value: formatRatio(stat.PairedRatio(rates[2], rates[1], speedLevel)), Note: "the same server twice: what the machine alone differs by"})
	}
}

func formatRatio(x stat.Ratio) string {
	if x.Interval.Level == 0 {
		return fmt.Sprintf("%.3f (no interval from %d blocks)", x.Estimate, x.Pairs)
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", x.Estimate, x.Interval.Low, x.Interval.High)
}
