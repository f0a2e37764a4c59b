package monitoring

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"kurabe"
	evaluating "kurabe/internal/alarm"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/series"
)

// stored is a source with the store of one host.
type stored struct{ *series.Store }

// Query implements Source.
func (s stored) Query(ctx context.Context, queries []series.Query) ([][]series.Result, []kurabe.HostID, error) {
	results, err := s.Store.Query(ctx, queries)
	return results, nil, err
}

// BenchmarkAlarms reads and evaluates 500 alarms on metrics of 50 instances, of three out of five
// minutes each, as happens once a minute.
func BenchmarkAlarms(b *testing.B) {
	const instances, perInstance, minutes = 50, 10, 15
	now := noon
	store := series.New(series.Config{
		Dir: b.TempDir(), BytesMax: 1 << 30, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
		Free: func() int64 { return -1 }, Tell: func(string) {},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = store.Run(ctx) })
	defer run.Wait()
	defer cancel()
	var samples []series.Sample
	var due []evaluating.Due
	for i := range instances {
		for m := range perInstance {
			d, name := catalog.All[m], fmt.Sprint("i", i)
			samples = append(samples, series.Sample{Labels: series.NewLabels(catalog.Namespace, d.Namespace, catalog.Metric, d.Name, catalog.Instance, name, catalog.Server, "s", catalog.Engine, "postgres", catalog.Role, catalog.RolePrimary)})
			q := kurabe.MetricQuery{Namespace: d.Namespace, Name: d.Name, Stat: "Average", Period: 60, Dimensions: []kurabe.MetricDimension{{Name: byInstance, Value: name}}}
			due = append(due, evaluating.Due{Alarm: kurabe.Alarm{Queries: []kurabe.MetricQuery{q}, Period: 60, EvaluationPeriods: 5, DatapointsToAlarm: 3, Comparison: kurabe.Greater, Threshold: 1e9}})
		}
	}
	for second := range minutes * 60 {
		now = noon.Add(time.Duration(second) * time.Second)
		for store.Append(now, samples) != nil { // until it is open
			time.Sleep(time.Millisecond)
		}
		for n := range samples {
			samples[n].Value++
		}
	}
	for n := range due {
		due[n].End = now.Add(time.Second).Unix()
	}
	r := AlarmReader{newWorldOf(b).service}
	r.service.source = stored{store}
	for b.Loop() {
		points, err := r.Read(ctx, due)
		if err != nil {
			b.Fatal(err)
		}
		for n := range due {
			if v, ok := evaluating.Evaluate(due[n], points[n].Points, now); !ok || v.State != kurabe.AlarmOK || len(points[n].Points) != 7 {
				b.Fatal(v, points[n])
			}
		}
	}
}
