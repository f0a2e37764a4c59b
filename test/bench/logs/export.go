package logs

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/test/bench/bed"
)

const (
	exportBar     = 0.99
	exportCPUBar  = 0.3 // of one processor, at exportRateBar
	exportRateBar = 20e6
)

// statements are how an engine logs every statement, and the log that has them.
var statements = map[string]struct {
	log    string
	values map[string]string
}{
	bed.Postgres: {"postgresql", map[string]string{"log_statement": "all", "rds.force_ssl": "0"}},
	bed.MariaDB:  {"general", map[string]string{"general_log": "1", "log_output": "FILE"}},
}

// Exports compares a server that logs every statement, while its log is exported, with the same one while it is not.
func Exports(ctx context.Context, r *bed.Run) error {
	l, err := r.Service(ctx)
	if err != nil {
		return err
	}
	for _, engine := range []string{bed.Postgres, bed.MariaDB} {
		if r.Engine != "" && r.Engine != engine {
			continue
		}
		if _, err := exec.LookPath("sysbench"); engine == bed.MariaDB && err != nil {
			r.Out.Row(bed.Row{Bench: "export", What: "sysbench", Value: bed.NotMeasured, Note: "sysbench is not installed: scripts/install.sh bench"})
			continue
		}
		if l.Engines[engine] == "" {
			r.NotInstalled("export", engine)
			continue
		}
		if err := exports(ctx, r, l, engine); err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
	}
	return nil
}

// exporter has the log of an instance be exported, or not.
type exporter struct {
	*bed.Lab
	logs          *cloudwatchlogs.Client
	name, log     string
	seconds       map[bool]float64 // of processor that the service used, exported or not
	over          map[bool]time.Duration
	bytes, before int64 // of messages that were exported
}

func exports(ctx context.Context, r *bed.Run, l *bed.Lab, engine string) (failure error) {
	name := "export-" + engine
	group, err := parameterGroup(ctx, l, name, engine)
	if err != nil {
		return err
	}
	i, err := l.Create(ctx, bed.Order{Name: name, Engine: engine, Class: l.WholeClass(runtime.NumCPU()), Group: group})
	if err != nil {
		return err
	}
	defer l.RemoveAtEnd(ctx, &failure, name)
	x := bed.Trial{Clients: bed.SpeedClients, Seconds: r.Seconds}
	w := bed.Workload{Bench: "export", Engine: engine, What: "pgbench TPC-B-like, 8 clients, every statement logged", Trial: x, Load: bed.Target.Pgbench}
	if engine == bed.Postgres {
		err = i.Target.PgbenchInit(ctx, false, bed.Pick(r, bed.PgbenchScale, 10))
	} else {
		w.What, w.Load, w.Trial.Scale = "sysbench oltp_read_write, 8 threads, every statement logged", bed.Target.SysbenchRun, bed.Pick(r, bed.SysbenchRows, bed.SysbenchRows/10)
		err = i.Target.SysbenchPrepare(ctx, w.Trial.Scale)
	}
	if err != nil {
		return err
	}
	of := l.Api.Options()
	e := &exporter{Lab: l, name: name, log: statements[engine].log, seconds: map[bool]float64{}, over: map[bool]time.Duration{},
		logs: cloudwatchlogs.New(cloudwatchlogs.Options{Region: bed.Region, BaseEndpoint: of.BaseEndpoint, HTTPClient: of.HTTPClient, RetryMaxAttempts: 1, Credentials: of.Credentials})}
	ways := [2]bed.Way{
		{Name: "exported", Do: func(run func() error) error { return e.run(ctx, true, run) }},
		{Name: "not exported", Do: func(run func() error) error { return e.run(ctx, false, run) }},
	}
	if err := l.Alternate(ctx, r, i, w, ways, exportBar, "of one server, whose export is switched"); err != nil {
		return err
	}
	e.report(r, engine)
	return nil
}

func parameterGroup(ctx context.Context, l *bed.Lab, name, engine string) (string, error) {
	_, err := l.Api.CreateDBParameterGroup(ctx, &rds.CreateDBParameterGroupInput{DBParameterGroupName: &name, DBParameterGroupFamily: aws.String(l.Families[engine]), Description: &name})
	in := &rds.ModifyDBParameterGroupInput{DBParameterGroupName: &name}
	for parameter, value := range statements[engine].values {
		in.Parameters = append(in.Parameters, types.Parameter{ParameterName: &parameter, ParameterValue: &value, ApplyMethod: types.ApplyMethodImmediate})
	}
	if err == nil {
		_, err = l.Api.ModifyDBParameterGroup(ctx, in)
	}
	return name, err
}

// run runs a load while the log is exported, or not, and waits until nothing of it is left to export.
func (e *exporter) run(ctx context.Context, exported bool, load func() error) error {
	if err := e.set(ctx, exported); err != nil {
		return err
	}
	began := time.Now()
	before, err := bed.ReadUsage(e.Cmd.Process.Pid)
	if err != nil {
		return err
	}
	if err := load(); err != nil {
		return err
	}
	took := time.Since(began)
	if err := e.settled(ctx); err != nil {
		return err
	}
	after, err := bed.ReadUsage(e.Cmd.Process.Pid)
	e.seconds[exported] += (after.Cpu - before.Cpu).Seconds()
	e.over[exported] += took
	return err
}

// set switches the export, and waits until it is in force.
func (e *exporter) set(ctx context.Context, exported bool) error {
	change := &types.CloudwatchLogsExportConfiguration{DisableLogTypes: []string{e.log}}
	if exported {
		change = &types.CloudwatchLogsExportConfiguration{EnableLogTypes: []string{e.log}}
	}
	if _, err := e.Api.ModifyDBInstance(ctx, &rds.ModifyDBInstanceInput{DBInstanceIdentifier: &e.name, CloudwatchLogsExportConfiguration: change}); err != nil {
		return err
	}
	for {
		out, err := e.Api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: &e.name})
		if err != nil {
			return err
		}
		d := out.DBInstances[0]
		if d.PendingModifiedValues.PendingCloudwatchLogsExports == nil && slices.Contains(d.EnabledCloudwatchLogsExports, e.log) == exported {
			return nil
		}
		if err := bed.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// settled waits until the log group has not grown for two seconds.
func (e *exporter) settled(ctx context.Context) error {
	for begun := time.Now(); ; {
		out, err := e.logs.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: aws.String("/aws/rds/instance/" + e.name + "/" + e.log)})
		if err != nil {
			return err
		}
		now := int64(0)
		for _, g := range out.LogGroups {
			now += aws.ToInt64(g.StoredBytes)
		}
		if now != e.before {
			begun = time.Now()
		}
		e.bytes, e.before = e.bytes+max(0, now-e.before), now
		if time.Since(begun) > 2*time.Second {
			return nil
		}
		if err := bed.Wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// report says what the service used for the export beside what it uses without.
func (e *exporter) report(r *bed.Run, engine string) {
	with, without := e.seconds[true]/e.over[true].Seconds(), e.seconds[false]/e.over[false].Seconds()
	rate := float64(e.bytes) / e.over[true].Seconds()
	at := (with - without) * exportRateBar / max(rate, 1)
	r.Out.Sample("export", map[string]any{"engine": engine, "exportedSeconds": e.seconds[true], "notExportedSeconds": e.seconds[false], "bytes": e.bytes, "over": e.over[true].Seconds()})
	// The part of it that does not grow with the log makes the proportion of a slow log too large, never too small.
	verdict := bed.Undecided
	if at <= exportCPUBar || rate >= exportRateBar || with-without > exportCPUBar {
		verdict = bed.Verdict(at <= exportCPUBar)
	}
	r.Out.Row(bed.Row{
		Bench: "export", What: "processor use for the export of 20 MB/s of the log of " + engine, Value: fmt.Sprintf("%.2f core", at), Bar: fmt.Sprintf("≤ %.1f core", exportCPUBar),
		Verdict: verdict, Note: fmt.Sprintf("in proportion to %.2f core more with the export of %.1f MB/s", with-without, rate/1e6),
	})
}
