package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

// The bars of creation, in seconds.
var createBar = map[string]float64{bed.Postgres: 2, bed.MariaDB: 3}

const (
	manyBar   = 30.0
	manyCount = 20
)

// createOne measures one instance at a time, from the request until a client has
// logged in.
func createOne(ctx context.Context, r *bed.Run) error {
	l, err := r.Service(ctx)
	if err != nil {
		return err
	}
	count := bed.Pick(r, 10, 3)
	for _, engine := range []string{bed.Postgres, bed.MariaDB} {
		what := fmt.Sprintf("create → available, %s, median of %d", bed.EngineTitle[engine], count)
		if l.Engines[engine] == "" {
			r.NotInstalled("create", what)
			continue
		}
		var seconds []float64
		for n := range count {
			i, err := l.Create(ctx, bed.Order{Name: fmt.Sprintf("one-%s-%d", engine, n), Engine: engine, Class: l.MicroClass()})
			if err != nil {
				return err
			}
			seconds = append(seconds, i.Took.Seconds())
			r.Out.Sample("create", map[string]any{"engine": engine, "n": n, "seconds": i.Took.Seconds()})
			if err := l.Remove(ctx, i.Name); err != nil {
				return err
			}
		}
		middle := stat.Median(seconds)
		r.Out.Row(bed.Row{
			Bench: "create", What: what, Value: fmt.Sprintf("%.2f s (%.2f to %.2f)", middle, slices.Min(seconds), slices.Max(seconds)),
			Bar: fmt.Sprintf("≤ %.0f s", createBar[engine]), Verdict: bed.Verdict(middle <= createBar[engine]),
			Note: l.MicroClass() + "; from the request until the status is available and a client has logged in, polled every 20 ms",
		})
	}
	return nil
}

// createMany measures many at once.
func createMany(ctx context.Context, r *bed.Run) error {
	l, err := r.Service(ctx)
	if err != nil {
		return err
	}
	for _, engine := range []string{bed.Postgres, bed.MariaDB} {
		what := fmt.Sprintf("%d %s created at once: all available", manyCount, bed.EngineTitle[engine])
		if l.Engines[engine] == "" {
			r.NotInstalled("many", what)
			continue
		}
		began := time.Now()
		fleet, err := createAll(ctx, l, engine, manyCount)
		all := time.Since(began)
		refused := manyCount - len(fleet)
		if err != nil {
			return err
		}
		var seconds, names = []float64{}, []string{}
		for _, i := range fleet {
			seconds = append(seconds, i.Took.Seconds())
			names = append(names, i.Name)
		}
		r.Out.Sample("many", map[string]any{"engine": engine, "seconds": seconds, "refused": refused})
		line := bed.Row{Bench: "many", What: what, Value: fmt.Sprintf("%.1f s", all.Seconds()), Bar: fmt.Sprintf("≤ %.0f s", manyBar),
			Verdict: bed.Verdict(all.Seconds() <= manyBar && refused == 0), Note: l.MicroClass()}
		if len(fleet) > 0 {
			line.Note += fmt.Sprintf("; the first after %.1f s, the middle one after %.1f s", slices.Min(seconds), stat.Median(seconds))
		}
		if refused > 0 {
			line.Note += fmt.Sprintf("; %d were refused with InsufficientDBInstanceCapacity", refused)
		}
		began = time.Now()
		if err := l.Remove(ctx, names...); err != nil {
			return err
		}
		line.Note += fmt.Sprintf("; deleted again in %.1f s", time.Since(began).Seconds())
		r.Out.Row(line)
	}
	return nil
}

// createAll creates instances at once and returns when a client has logged in to
// each. One that is refused for lack of memory is left out. A single client looks
// at all of them: twenty that poll would slow down what they wait for.
func createAll(ctx context.Context, l *bed.Lab, engine string, count int) ([]*bed.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, bed.AvailableTime)
	defer cancel()
	began := time.Now()
	errs := make([]error, count)
	var wait sync.WaitGroup
	for n := range count {
		wait.Go(func() {
			o := bed.Order{Name: fmt.Sprintf("many-%s-%d", engine, n), Engine: engine, Class: l.MicroClass()}
			_, errs[n] = l.Api.CreateDBInstance(ctx, o.Input())
		})
	}
	wait.Wait()
	accepted := count
	for n, err := range errs {
		if bed.ErrorCode(err) == "InsufficientDBInstanceCapacity" {
			errs[n] = nil
			accepted--
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var mu sync.Mutex // guards errs
	made := map[string]*bed.Instance{}
	for len(made) < accepted && ctx.Err() == nil {
		out, err := l.Api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{MaxRecords: aws.Int32(100)})
		if err != nil {
			return nil, err
		}
		for _, d := range out.DBInstances {
			i := bed.FromAPI(d)
			if made[i.Name] != nil || aws.ToString(d.DBInstanceStatus) != "available" {
				continue
			}
			made[i.Name] = i
			wait.Go(func() {
				err := i.Login(ctx)
				mu.Lock()
				defer mu.Unlock()
				i.Took, errs = time.Since(began), append(errs, err)
			})
		}
		select {
		case <-time.After(bed.PollPause):
		case <-ctx.Done():
		}
	}
	wait.Wait()
	return slices.Collect(maps.Values(made)), errors.Join(append(errs, ctx.Err())...)
}
