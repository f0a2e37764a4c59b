package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"kurabe/lab/stat"
)

// logBar is what following the log may leave of the transactions of a server whose
// log nobody follows.
const logBar = 0.98

// priceArm is one way of measuring an instance.
type priceArm struct {
	arm
	home     string
	instance string
	// standIn, if any, is a service that runs meanwhile in the place of the one the
	// instance is of: the server writes its log, nobody follows it, and the machine
	// bears what a service costs that has as many instances, which are idle.
	standIn *lab
}

const (
	armFollowed = "followed"
	armNoLog    = "without backups"
	armAway     = "log written, not followed"
)

// price is one comparison of the arms, in blocks of random order.
type price struct {
	workload
	// checkpoint before each measurement: the log is full of whole pages then.
	checkpoint bool
}

// logPrice compares instances that differ in their backup retention alone.
func logPrice(ctx context.Context, r *run) error {
	l, err := r.service(ctx)
	if err != nil {
		return err
	}
	for _, engine := range []string{postgres, mariadb} {
		if r.Engine != "" && r.Engine != engine {
			continue
		}
		list := r.prices(engine)
		_, err := exec.LookPath("sysbench")
		switch {
		case engine == mariadb && err != nil:
			r.out.row(row{Bench: "log", What: list[0].what, Value: notMeasured, Note: "sysbench is not installed: scripts/install.sh bench"})
		case l.engines[engine] == "":
			r.notInstalled("log", list[0].what)
		default:
			if err := r.pricesOf(ctx, l, list); err != nil {
				return fmt.Errorf("continuous log of %s: %w", engine, err)
			}
		}
	}
	return nil
}

func (r *run) prices(engine string) []price {
	w := workload{bench: "log", engine: engine, trial: trial{clients: speedClients, seconds: r.Seconds}}
	if engine == mariadb {
		w.what, w.load = "continuous log, sysbench oltp_read_write, 8 threads", target.sysbenchRun
		w.trial.scale = pick(r, sysbenchRows, sysbenchRows/10)
		return []price{{workload: w}}
	}
	w.load, w.trial.tls = target.pgbench, true
	usual, worst := w, w
	usual.what = "continuous log, pgbench TPC-B-like, 8 clients, TLS"
	worst.what = usual.what + ", just after a checkpoint"
	worst.note = "each measurement begins with a checkpoint of every arm: the log is mostly whole pages"
	usual.note = "checkpoints when the server makes them"
	return []price{{usual, false}, {worst, true}}
}

// pricesOf makes the instances of one engine and measures all comparisons on them.
func (r *run) pricesOf(ctx context.Context, l *lab, list []price) (failure error) {
	class, engine := r.Class, list[0].engine
	if class == "" {
		class = l.wholeClass(runtime.NumCPU())
	}
	var arms []priceArm
	for n, days := range []int{1, 0} {
		o := order{name: fmt.Sprintf("log-%s-%d", engine, days), engine: engine, class: class, retention: days}
		var err error
		if engine == postgres {
			if o.group, err = l.groupWithoutTLS(ctx, engine); err != nil {
				return err
			}
		}
		i, err := l.create(ctx, o)
		if err != nil {
			return err
		}
		defer l.removeAtEnd(ctx, &failure, i.name)
		arms = append(arms, priceArm{arm: arm{[]string{armFollowed, armNoLog}[n], i.target}, home: l.home(i), instance: i.name})
		r.out.say("  filling %s", i.name)
		if engine == mariadb {
			err = i.target.sysbenchPrepare(ctx, list[0].trial.scale)
		} else {
			err = i.target.pgbenchInit(ctx, true, pick(r, pgbenchScale, 10))
		}
		if err == nil {
			err = pair{}.warm(ctx, list[0].workload, i.target, pick(r, warmSeconds, 1))
		}
		if err != nil {
			return err
		}
	}
	if engine == mariadb {
		// A PostgreSQL would make new segments meanwhile instead of using old ones again.
		standIn, err := r.standIn(ctx, len(arms), class)
		if err != nil {
			return err
		}
		defer func() { failure = errors.Join(failure, standIn.close()) }()
		arms = append(arms, priceArm{arm: arm{armAway, arms[0].target}, home: arms[0].home, instance: arms[0].instance, standIn: standIn})
	}
	for _, p := range list {
		rates, err := r.priceBlocks(ctx, l, p, arms)
		if err != nil {
			return err
		}
		r.pricedLog(p, class, arms, rates)
	}
	return nil
}

// priceBlocks measures every arm once in each block.
func (r *run) priceBlocks(ctx context.Context, l *lab, p price, arms []priceArm) ([][]float64, error) {
	rates := make([][]float64, len(arms))
	for block := range r.Blocks {
		x := p.trial
		x.seed = r.rng.Uint64()
		for position, n := range r.rng.Perm(len(arms)) {
			if p.checkpoint {
				for k := range arms {
					if err := settle(ctx, arms[k].target, arms[k].home); err != nil {
						return nil, fmt.Errorf("checkpoint: %w", err)
					}
				}
			}
			got, err := l.priceTrial(ctx, p, arms[n], x)
			if err != nil {
				return nil, err
			}
			rates[n] = append(rates[n], got.PerSecond)
			r.out.sample("trial", map[string]any{"what": p.what, "block": block, "position": position, "arm": arms[n].name, "seed": x.seed, "seconds": x.seconds, "result": got})
		}
	}
	return rates, nil
}

// standIn is a second service with idle instances, ended.
func (r *run) standIn(ctx context.Context, instances int, class string) (l *lab, err error) {
	if l, err = r.newLab(); err != nil {
		return nil, err
	}
	_, err = l.start(ctx)
	for n := 0; n < instances && err == nil; n++ {
		_, err = l.create(ctx, order{name: fmt.Sprintf("idle-%d", n), engine: mariadb, class: class})
	}
	if err = errors.Join(err, l.stop()); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *lab) priceTrial(ctx context.Context, p price, a priceArm, x trial) (got result, err error) {
	if a.standIn == nil {
		return p.load(a.target, ctx, x)
	}
	if err := l.stop(); err != nil {
		return got, err
	}
	if _, err = a.standIn.start(ctx); err == nil {
		_, err = a.standIn.waitStatus(ctx, "idle-0", "available")
	}
	if err == nil {
		got, err = p.load(a.target, ctx, x)
	}
	if err = errors.Join(err, a.standIn.stop()); err != nil {
		return got, err
	}
	began := time.Now()
	if _, err := l.start(ctx); err != nil {
		return got, err
	}
	// Fetching what was written meanwhile is not a part of the next trial.
	_, err = l.restorable(ctx, a.instance, began)
	return got, err
}

// pricedLog gives a row to each arm that the followed one is compared with.
func (r *run) pricedLog(p price, class string, arms []priceArm, rates [][]float64) {
	for n := 1; n < len(arms); n++ {
		ratio := stat.PairedRatio(rates[0], rates[n], speedLevel)
		line := row{Bench: p.bench, What: fmt.Sprintf("%s: %s / %s", p.what, arms[0].name, arms[n].name), Value: formatRatio(ratio)}
		line.Note = fmt.Sprintf("median %.0f against %.0f transactions/s; %s, %d blocks of %d s", stat.Median(rates[0]), stat.Median(rates[n]), class, r.Blocks, r.Seconds)
		switch {
		case p.engine == mariadb && arms[n].name == armNoLog:
			line.Note += "; without backups MariaDB writes no binary log: this is the engine's own price too"
		default:
			line.Bar, line.Verdict = fmt.Sprintf("≥ %.2f", logBar), atLeast(ratio.Interval, logBar)
		}
		if p.note != "" {
			line.Note += "; " + p.note
		}
		r.out.row(line)
	}
}
