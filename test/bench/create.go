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
)

// The bars of creation, in seconds.
var createBar = map[string]float64{postgres: 2, mariadb: 3}

const (
	manyBar    = 30.0
	manyCount  = 20
	smallClass = "db.t3.micro"
	localClass = "db.local.micro" // where the machine cannot enforce limits
)

// microClass is the smallest class on offer.
func (l *lab) microClass() string {
	if levers := l.levers(); levers.CPU.Enforceable && levers.Memory.Enforceable {
		return smallClass
	}
	return localClass
}

// notInstalled gives the row of an engine that the service does not offer.
func (r *run) notInstalled(bench, what string) {
	r.out.row(row{Bench: bench, What: what, Value: notInstalled})
}

// createOne measures one instance at a time, from the request until a client has
// logged in.
func createOne(ctx context.Context, r *run) error {
	l, err := r.service(ctx)
	if err != nil {
		return err
	}
	count := pick(r, 10, 3)
	for _, engine := range []string{postgres, mariadb} {
		what := fmt.Sprintf("create → available, %s, median of %d", engineTitle[engine], count)
		if l.engines[engine] == "" {
			r.notInstalled("create", what)
			continue
		}
		var seconds []float64
		for n := range count {
			i, err := l.create(ctx, order{name: fmt.Sprintf("one-%s-%d", engine, n), engine: engine, class: l.microClass()})
			if err != nil {
				return err
			}
			seconds = append(seconds, i.took.Seconds())
			r.out.sample("create", map[string]any{"engine": engine, "n": n, "seconds": i.took.Seconds()})
			if err := l.remove(ctx, i.name); err != nil {
				return err
			}
		}
		middle := stat.Median(seconds)
		r.out.row(row{
			Bench: "create", What: what, Value: fmt.Sprintf("%.2f s (%.2f to %.2f)", middle, slices.Min(seconds), slices.Max(seconds)),
			Bar: fmt.Sprintf("≤ %.0f s", createBar[engine]), Verdict: verdict(middle <= createBar[engine]),
			Note: l.microClass() + "; from the request until the status is available and a client has logged in, polled every 20 ms",
		})
	}
	return nil
}

// createMany measures many at once.
func createMany(ctx context.Context, r *run) error {
	l, err := r.service(ctx)
	if err != nil {
		return err
	}
	for _, engine := range []string{postgres, mariadb} {
		what := fmt.Sprintf("%d %s created at once: all available", manyCount, engineTitle[engine])
		if l.engines[engine] == "" {
			r.notInstalled("many", what)
			continue
		}
		began := time.Now()
		fleet, err := l.createAll(ctx, engine, manyCount)
		all := time.Since(began)
		refused := manyCount - len(fleet)
		if err != nil {
			return err
		}
		var seconds, names = []float64{}, []string{}
		for _, i := range fleet {
			seconds = append(seconds, i.took.Seconds())
			names = append(names, i.name)
		}
		r.out.sample("many", map[string]any{"engine": engine, "seconds": seconds, "refused": refused})
		line := row{Bench: "many", What: what, Value: fmt.Sprintf("%.1f s", all.Seconds()), Bar: fmt.Sprintf("≤ %.0f s", manyBar),
			Verdict: verdict(all.Seconds() <= manyBar && refused == 0), Note: l.microClass()}
		if len(fleet) > 0 {
			line.Note += fmt.Sprintf("; the first after %.1f s, the middle one after %.1f s", slices.Min(seconds), stat.Median(seconds))
		}
		if refused > 0 {
			line.Note += fmt.Sprintf("; %d were refused with InsufficientDBInstanceCapacity", refused)
		}
		began = time.Now()
		if err := l.remove(ctx, names...); err != nil {
			return err
		}
		line.Note += fmt.Sprintf("; deleted again in %.1f s", time.Since(began).Seconds())
		r.out.row(line)
	}
	return nil
}

// createAll creates instances at once and returns when a client has logged in to
// each. One that is refused for lack of memory is left out. A single client looks
// at all of them: twenty that poll would slow down what they wait for.
func (l *lab) createAll(ctx context.Context, engine string, count int) ([]*instance, error) {
	ctx, cancel := context.WithTimeout(ctx, availableTime)
	defer cancel()
	began := time.Now()
	errs := make([]error, count)
	var wait sync.WaitGroup
	for n := range count {
		wait.Go(func() {
			o := order{name: fmt.Sprintf("many-%s-%d", engine, n), engine: engine, class: l.microClass()}
			_, errs[n] = l.api.CreateDBInstance(ctx, o.input())
		})
	}
	wait.Wait()
	accepted := count
	for n, err := range errs {
		if code(err) == "InsufficientDBInstanceCapacity" {
			errs[n] = nil
			accepted--
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var mu sync.Mutex // guards errs
	made := map[string]*instance{}
	for len(made) < accepted && ctx.Err() == nil {
		out, err := l.api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{MaxRecords: aws.Int32(100)})
		if err != nil {
			return nil, err
		}
		for _, d := range out.DBInstances {
			i := fromAPI(d)
			if made[i.name] != nil || aws.ToString(d.DBInstanceStatus) != "available" {
				continue
			}
			made[i.name] = i
			wait.Go(func() {
				err := i.login(ctx)
				mu.Lock()
				defer mu.Unlock()
				i.took, errs = time.Since(began), append(errs, err)
			})
		}
		select {
		case <-time.After(pollPause):
		case <-ctx.Done():
		}
	}
	wait.Wait()
	return slices.Collect(maps.Values(made)), errors.Join(append(errs, ctx.Err())...)
}
