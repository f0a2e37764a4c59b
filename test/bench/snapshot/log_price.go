package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

// logBar is what following the log may leave of the transactions of a server whose
// log nobody follows.
const logBar = 0.98

// priceArm is one way of measuring an instance.
type priceArm struct {
	bed.Arm
	home     string
	instance string
	// standIn, if any, is a service that runs meanwhile in the place of the one the
	// instance is of: the server writes its log, nobody follows it, and the machine
	// bears what a service costs that has as many instances, which are idle.
	standIn *bed.Lab
}

const (
	armFollowed = "followed"
	armNoLog    = "without backups"
	armAway     = "log written, not followed"
)

// price is one comparison of the arms, in blocks of random order.
type price struct {
	bed.Workload
	// checkpoint before each measurement: the log is full of whole pages then.
	checkpoint bool
}

// LogPrice compares instances that differ in their backup retention alone.
func LogPrice(ctx context.Context, r *bed.Run) error {
	l, err := r.Service(ctx)
	if err != nil {
		return err
	}
	for _, engine := range []string{bed.Postgres, bed.MariaDB} {
		if r.Engine != "" && r.Engine != engine {
			continue
		}
		list := prices(r, engine)
		_, err := exec.LookPath("sysbench")
		switch {
		case engine == bed.MariaDB && err != nil:
			r.Out.Row(bed.Row{Bench: "log", What: list[0].What, Value: bed.NotMeasured, Note: "sysbench is not installed: scripts/install.sh bench"})
		case l.Engines[engine] == "":
			r.NotInstalled("log", list[0].What)
		default:
			if err := pricesOf(ctx, r, l, list); err != nil {
				return fmt.Errorf("continuous log of %s: %w", engine, err)
			}
		}
	}
	return nil
}

func prices(r *bed.Run, engine string) []price {
	w := bed.Workload{Bench: "log", Engine: engine, Trial: bed.Trial{Clients: bed.SpeedClients, Seconds: r.Seconds}}
	if engine == bed.MariaDB {
		w.What, w.Load = "continuous log, sysbench oltp_read_write, 8 threads", bed.Target.SysbenchRun
		w.Trial.Scale = bed.Pick(r, bed.SysbenchRows, bed.SysbenchRows/10)
		return []price{{Workload: w}}
	}
	w.Load, w.Trial.Tls = bed.Target.Pgbench, true
	usual, worst := w, w
	usual.What = "continuous log, pgbench TPC-B-like, 8 clients, TLS"
	worst.What = usual.What + ", just after a checkpoint"
	worst.Note = "each measurement begins with a checkpoint of every arm: the log is mostly whole pages"
	usual.Note = "checkpoints when the server makes them"
	return []price{{usual, false}, {worst, true}}
}

// pricesOf makes the instances of one engine and measures all comparisons on them.
func pricesOf(ctx context.Context, r *bed.Run, l *bed.Lab, list []price) (failure error) {
	class, engine := r.Class, list[0].Engine
	if class == "" {
		class = l.WholeClass(runtime.NumCPU())
	}
	var arms []priceArm
	for n, days := range []int{1, 0} {
		o := bed.Order{Name: fmt.Sprintf("log-%s-%d", engine, days), Engine: engine, Class: class, Retention: days}
		var err error
		if engine == bed.Postgres {
			if o.Group, err = l.GroupWithoutTLS(ctx, engine); err != nil {
				return err
			}
		}
		i, err := l.Create(ctx, o)
		if err != nil {
			return err
		}
		defer l.RemoveAtEnd(ctx, &failure, i.Name)
		arms = append(arms, priceArm{Arm: bed.Arm{Name: []string{armFollowed, armNoLog}[n], Target: i.Target}, home: l.Home(i), instance: i.Name})
		r.Out.Say("  filling %s", i.Name)
		if engine == bed.MariaDB {
			err = i.Target.SysbenchPrepare(ctx, list[0].Trial.Scale)
		} else {
			err = i.Target.PgbenchInit(ctx, true, bed.Pick(r, bed.PgbenchScale, 10))
		}
		if err == nil {
			err = list[0].Workload.Warm(ctx, i.Target, bed.Pick(r, bed.WarmSeconds, 1))
		}
		if err != nil {
			return err
		}
	}
	if engine == bed.MariaDB {
		// A PostgreSQL would make new segments meanwhile instead of using old ones again.
		standIn, err := standIn(ctx, r, len(arms), class)
		if err != nil {
			return err
		}
		defer func() { failure = errors.Join(failure, standIn.Close()) }()
		arms = append(arms, priceArm{Arm: bed.Arm{Name: armAway, Target: arms[0].Target}, home: arms[0].home, instance: arms[0].instance, standIn: standIn})
	}
	for _, p := range list {
		rates, err := priceBlocks(ctx, r, l, p, arms)
		if err != nil {
			return err
		}
		pricedLog(r, p, class, arms, rates)
	}
	return nil
}

// priceBlocks measures every arm once in each block.
func priceBlocks(ctx context.Context, r *bed.Run, l *bed.Lab, p price, arms []priceArm) ([][]float64, error) {
	rates := make([][]float64, len(arms))
	for block := range r.Blocks {
		x := p.Trial
		x.Seed = r.Rng.Uint64()
		for position, n := range r.Rng.Perm(len(arms)) {
			if p.checkpoint {
				for k := range arms {
					if err := bed.Settle(ctx, arms[k].Target, arms[k].home); err != nil {
						return nil, fmt.Errorf("checkpoint: %w", err)
					}
				}
			}
			got, err := priceTrial(ctx, l, p, arms[n], x)
			if err != nil {
				return nil, err
			}
			rates[n] = append(rates[n], got.PerSecond)
			r.Out.Sample("trial", map[string]any{"what": p.What, "block": block, "position": position, "arm": arms[n].Name, "seed": x.Seed, "seconds": x.Seconds, "result": got})
		}
	}
	return rates, nil
}

// standIn is a second service with idle instances, ended.
func standIn(ctx context.Context, r *bed.Run, instances int, class string) (l *bed.Lab, err error) {
	if l, err = r.NewLab(); err != nil {
		return nil, err
	}
	_, err = l.Start(ctx)
	for n := 0; n < instances && err == nil; n++ {
		_, err = l.Create(ctx, bed.Order{Name: fmt.Sprintf("idle-%d", n), Engine: bed.MariaDB, Class: class})
	}
	if err = errors.Join(err, l.Stop()); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func priceTrial(ctx context.Context, l *bed.Lab, p price, a priceArm, x bed.Trial) (got bed.Result, err error) {
	if a.standIn == nil {
		return p.Load(a.Target, ctx, x)
	}
	if err := l.Stop(); err != nil {
		return got, err
	}
	if _, err = a.standIn.Start(ctx); err == nil {
		_, err = a.standIn.WaitStatus(ctx, "idle-0", "available")
	}
	if err == nil {
		got, err = p.Load(a.Target, ctx, x)
	}
	if err = errors.Join(err, a.standIn.Stop()); err != nil {
		return got, err
	}
	began := time.Now()
	if _, err := l.Start(ctx); err != nil {
		return got, err
	}
	// Fetching what was written meanwhile is not a part of the next trial.
	_, err = restorable(ctx, l, a.instance, began)
	return got, err
}

// pricedLog gives a row to each arm that the followed one is compared with.
func pricedLog(r *bed.Run, p price, class string, arms []priceArm, rates [][]float64) {
	for n := 1; n < len(arms); n++ {
		ratio := stat.PairedRatio(rates[0], rates[n], bed.SpeedLevel)
		line := bed.Row{Bench: p.Bench, What: fmt.Sprintf("%s: %s / %s", p.What, arms[0].Name, arms[n].Name), Value: bed.FormatRatio(ratio)}
		line.Note = fmt.Sprintf("median %.0f against %.0f transactions/s; %s, %d blocks of %d s", stat.Median(rates[0]), stat.Median(rates[n]), class, r.Blocks, r.Seconds)
		switch {
		case p.Engine == bed.MariaDB && arms[n].Name == armNoLog:
			line.Note += "; without backups MariaDB writes no binary log: this is the engine's own price too"
		default:
			line.Bar, line.Verdict = fmt.Sprintf("≥ %.2f", logBar), bed.AtLeast(ratio.Interval, logBar)
		}
		if p.Note != "" {
			line.Note += "; " + p.Note
		}
		r.Out.Row(line)
	}
}
