package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"

	"kurabe/test/bench/stat"
)

// logBar is what following the log may leave of the transactions of a server whose
// log nobody follows.
const logBar = 0.98

// logPrice compares two instances that differ in their backup retention alone.
func logPrice(ctx context.Context, r *run) error {
	l, err := r.service(ctx)
	if err != nil {
		return err
	}
	for _, engine := range []string{postgres, mariadb} {
		x := trial{clients: speedClients, seconds: r.Seconds, tls: true}
		w := workload{bench: "log", engine: engine, what: "continuous log, pgbench TPC-B-like, 8 clients, TLS", trial: x, load: target.pgbench}
		if engine == mariadb {
			w.what, w.load = "continuous log with its binary log, sysbench oltp_read_write, 8 threads", target.sysbenchRun
			w.trial.tls, w.trial.scale = false, pick(r, sysbenchRows, sysbenchRows/10)
			w.note = "without backups MariaDB writes no binary log: most of the price is the engine's own"
			if _, err := exec.LookPath("sysbench"); err != nil {
				r.out.row(row{Bench: w.bench, What: w.what, Value: "not measured", Note: "sysbench is not installed: scripts/install.sh bench"})
				continue
			}
		}
		if l.engines[engine] == "" {
			r.notInstalled(w.bench, w.what)
			continue
		}
		if err := r.comparePrice(ctx, l, w); err != nil {
			return fmt.Errorf("%s: %w", w.what, err)
		}
	}
	return nil
}

// comparePrice measures one engine with and without, in blocks of random order.
func (r *run) comparePrice(ctx context.Context, l *lab, w workload) (failure error) {
	class := r.Class
	if class == "" {
		class = l.wholeClass(runtime.NumCPU())
	}
	arms := []arm{{name: "followed"}, {name: "not followed"}}
	homes := make([]string, len(arms))
	for n, days := range []int{1, 0} {
		o := order{name: fmt.Sprintf("log-%s-%d", w.engine, days), engine: w.engine, class: class, retention: days}
		var err error
		if w.engine == postgres {
			if o.group, err = l.groupWithoutTLS(ctx, w.engine); err != nil {
				return err
			}
		}
		i, err := l.create(ctx, o)
		if err != nil {
			return err
		}
		defer func() {
			if ctx.Err() == nil {
				failure = errors.Join(failure, l.remove(ctx, i.name))
			}
		}()
		arms[n].target, homes[n] = i.target, l.home(i)
		r.out.say("  filling %s", i.name)
		if w.engine == mariadb {
			err = i.target.sysbenchPrepare(ctx, w.trial.scale)
		} else {
			err = i.target.pgbenchInit(ctx, true, pick(r, pgbenchScale, 10))
		}
		if err == nil {
			err = pair{}.warm(ctx, w, i.target, pick(r, warmSeconds, 1))
		}
		if err != nil {
			return err
		}
	}
	rates := make([][]float64, len(arms))
	for block := range r.Blocks {
		x := w.trial
		x.seed = r.rng.Uint64()
		for position, n := range r.rng.Perm(len(arms)) {
			for k := range arms {
				if err := settle(ctx, arms[k].target, homes[k]); err != nil {
					return fmt.Errorf("checkpoint: %w", err)
				}
			}
			got, err := w.load(arms[n].target, ctx, x)
			if err != nil {
				return err
			}
			rates[n] = append(rates[n], got.PerSecond)
			r.out.sample("trial", map[string]any{"what": w.what, "block": block, "position": position, "arm": arms[n].name, "seed": x.seed, "seconds": x.seconds, "result": got})
		}
	}
	r.pricedLog(w, class, rates)
	return nil
}

func (r *run) pricedLog(w workload, class string, rates [][]float64) {
	ratio := stat.PairedRatio(rates[0], rates[1], speedLevel)
	line := row{Bench: w.bench, What: w.what + ": followed / not followed", Value: formatRatio(ratio)}
	line.Note = fmt.Sprintf("median %.0f against %.0f transactions/s; %s, %d blocks of %d s", stat.Median(rates[0]), stat.Median(rates[1]), class, r.Blocks, r.Seconds)
	if w.note != "" {
		line.Note += "; " + w.note
	}
	if w.engine == postgres {
		line.Bar, line.Verdict = fmt.Sprintf("≥ %.2f", logBar), speedVerdict(ratio)
	}
	r.out.row(line)
}
