package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"kurabe/test/bench/bed"
)

const (
	speedBar    = 0.99
	idleCPUBar  = 0.01 // of one processor, each instance
	residentBar = 5 << 20
	idleCount   = 20
)

// Measure compares servers whose metrics and database load are sampled with the same ones while nobody samples them.
func Measure(ctx context.Context, r *bed.Run) error {
	l, err := r.Service(ctx)
	if err != nil {
		return err
	}
	for _, engine := range []string{bed.Postgres, bed.MariaDB} {
		if r.Engine != "" && r.Engine != engine {
			continue
		}
		if l.Engines[engine] == "" {
			r.NotInstalled("metrics", engine)
			continue
		}
		if err := errors.Join(idle(ctx, r, l, engine), load(ctx, r, l, engine)); err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
	}
	return nil
}

// paused stops the service while do runs.
func paused(l *bed.Lab, do func() error) (err error) {
	if err := l.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Cmd.Process.Signal(syscall.SIGCONT)) }()
	return do()
}

// idle measures what instances cost that nobody uses: the service's share, and what it has their
// servers do.
func idle(ctx context.Context, r *bed.Run, l *bed.Lab, engine string) (failure error) {
	before, err := bed.ReadUsage(l.Cmd.Process.Pid)
	if err != nil {
		return err
	}
	var fleet []*bed.Instance
	defer func() {
		for _, i := range fleet {
			l.RemoveAtEnd(ctx, &failure, i.Name)
		}
	}()
	count := cmp.Or(r.Instances, bed.Pick(r, idleCount, 3))
	for n := range count {
		i, err := l.Create(ctx, bed.Order{Name: fmt.Sprintf("idle-%s-%d", engine, n), Engine: engine, Class: cmp.Or(r.Class, l.MicroClass()), Load: true})
		if err != nil {
			return err
		}
		fleet = append(fleet, i)
	}
	over := bed.Pick(r, time.Minute, 10*time.Second)
	if err := bed.Wait(ctx, over/6); err != nil {
		return err
	}
	with, err := cost(ctx, l, fleet, over)
	if err != nil {
		return err
	}
	var without share
	err = paused(l, func() (err error) { without, err = cost(ctx, l, fleet, over); return err })
	if err != nil {
		return err
	}
	each := (with.service + with.servers - without.servers) / float64(count)
	resident := (with.resident - before.Resident) / int64(count)
	r.Out.Sample("idle instances", map[string]any{"engine": engine, "instances": count, "seconds": over.Seconds(), "service": with.service,
		"servers": with.servers, "serversAlone": without.servers, "residentBytes": with.resident, "residentBefore": before.Resident})
	r.Out.Row(bed.Row{Bench: "metrics", What: "processor use for an idle instance of " + engine, Value: fmt.Sprintf("%.2f %% of a core", 100*each), Bar: "≤ 1 %",
		Verdict: bed.Verdict(each <= idleCPUBar), Note: fmt.Sprintf("the service's share and what it has servers do; %d instances over %.0f s", count, over.Seconds())})
	r.Out.Row(bed.Row{Bench: "metrics", What: "memory of the service for an idle instance of " + engine, Value: fmt.Sprintf("%.1f MiB resident", float64(resident)/(1<<20)),
		Bar: "≤ 5 MB", Verdict: bed.Verdict(resident <= residentBar), Note: fmt.Sprintf("%d MiB with %d instances", with.resident>>20, count)})
	return nil
}

// share is what was used over a time, in processors.
type share struct {
	service, servers float64
	resident         int64
}

func cost(ctx context.Context, l *bed.Lab, fleet []*bed.Instance, over time.Duration) (s share, err error) {
	service, err := bed.ReadUsage(l.Cmd.Process.Pid)
	if err != nil {
		return s, err
	}
	servers, err := groupsCPU(l, fleet)
	if err != nil {
		return s, err
	}
	if err := bed.Wait(ctx, over); err != nil {
		return s, err
	}
	serviceAfter, err := bed.ReadUsage(l.Cmd.Process.Pid)
	if err != nil {
		return s, err
	}
	serversAfter, err := groupsCPU(l, fleet)
	return share{(serviceAfter.Cpu - service.Cpu).Seconds() / over.Seconds(), (serversAfter - servers).Seconds() / over.Seconds(), serviceAfter.Resident}, err
}

func groupsCPU(l *bed.Lab, fleet []*bed.Instance) (sum time.Duration, err error) {
	levers := l.Levers()
	for _, i := range fleet {
		group, found := levers.Find(i.Id)
		if !found {
			return 0, fmt.Errorf("%s has no control group", i.Name)
		}
		stats, err := group.Stats()
		if err != nil {
			return 0, err
		}
		sum += stats.CPUUsage
	}
	return sum, nil
}

func workloads(r *bed.Run, engine string) []bed.Workload {
	x := bed.Trial{Clients: bed.SpeedClients, Seconds: r.Seconds}
	if engine == bed.MariaDB {
		x.Scale = bed.Pick(r, bed.SysbenchRows, bed.SysbenchRows/10)
		return []bed.Workload{{Engine: engine, What: "sysbench oltp_read_write, 8 threads", Trial: x, Load: bed.Target.SysbenchRun}}
	}
	read := x
	read.ReadOnly = true
	return []bed.Workload{
		{Engine: engine, What: "pgbench TPC-B-like, 8 clients", Trial: x, Load: bed.Target.Pgbench},
		{Engine: engine, What: "pgbench select-only, 8 clients", Trial: read, Load: bed.Target.Pgbench},
	}
}

// load compares the rates of clients at one server, in blocks.
func load(ctx context.Context, r *bed.Run, l *bed.Lab, engine string) (failure error) {
	if _, err := exec.LookPath("sysbench"); engine == bed.MariaDB && err != nil {
		r.Out.Row(bed.Row{Bench: "metrics", What: "sysbench", Value: bed.NotMeasured, Note: "sysbench is not installed: scripts/install.sh bench"})
		return nil
	}
	o := bed.Order{Name: "metrics-" + engine, Engine: engine, Class: l.WholeClass(runtime.NumCPU()), Load: true}
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
	list := workloads(r, engine)
	if engine == bed.Postgres {
		err = i.Target.PgbenchInit(ctx, false, bed.Pick(r, bed.PgbenchScale, 10))
	} else {
		err = i.Target.SysbenchPrepare(ctx, list[0].Trial.Scale)
	}
	if err != nil {
		return err
	}
	for _, w := range list {
		w.Bench = "metrics"
		ways := [2]bed.Way{
			{Name: "sampled", Do: func(run func() error) error { return run() }},
			{Name: "not sampled", Do: func(run func() error) error { return paused(l, run) }},
		}
		if err := l.Alternate(ctx, r, i, w, ways, speedBar, "without is with the service stopped by a signal"); err != nil {
			return fmt.Errorf("%s: %w", w.What, err)
		}
	}
	return nil
}
