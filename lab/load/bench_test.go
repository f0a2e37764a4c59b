package load

import (
	"context"
	"testing"
	"time"

	"kurabe/lab/result"
	"kurabe/lab/study"
)

// capacityTime is how long a benchmark of a whole run loads.
const capacityTime = time.Second

// benchmarkLoad reports what one run of the load reaches. It ignores b.N: a run has a
// length and not a number.
func benchmarkLoad(b *testing.B, w study.Workload, run func(Options) (*Outcome, error)) {
	for b.Loop() {
		out, err := run(Options{Measure: capacityTime, Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		l := phase(b, out, result.PhaseMeasure).Load
		b.ReportMetric(float64(l.Transactions)/l.Seconds, "requests/s")
		b.ReportMetric(l.Generator["cpu_s"]/float64(l.Transactions)*1e6, "cpu-µs/request")
		if w.Mode == study.ModeOpen {
			b.ReportMetric(float64(l.Skipped), "skipped")
			b.ReportMetric(quantile(b, l.Response, 99), "p99-ms")
			b.ReportMetric(l.Generator["lag_p99_ms"], "lag-p99-ms")
		}
	}
}

// BenchmarkCapacity is what the generator itself can do: every part of a real run but
// the server, whose sessions answer at once.
func BenchmarkCapacity(b *testing.B) {
	cases := map[string]study.Workload{
		"closed":           closedLoad(2),
		"open/100k":        openLoad(16, 100_000),
		"open/200k":        openLoad(16, 200_000),
		"open/1k":          openLoad(16, 1000),
		"kit/tpcb-like":    {Name: "w", Generator: study.GeneratorOwn, Kit: "tpcb-like", Mode: study.ModeClosed, Clients: 2},
		"poisson/100k/256": {Name: "w", Generator: study.GeneratorOwn, Script: "SELECT 1;", Mode: study.ModeOpen, Clients: 256, Rate: 100_000},
	}
	for name, w := range cases {
		b.Run(name, func(b *testing.B) {
			benchmarkLoad(b, w, func(o Options) (*Outcome, error) {
				return generator(b, w).load(context.Background(), (&fakeServer{}).opener(), o)
			})
		})
	}
}

// BenchmarkAlarm reports how late a sleep of a millisecond ends, of this package's timer
// and of the runtime's.
func BenchmarkAlarm(b *testing.B) {
	const sleep = time.Millisecond
	kinds := map[string]func(task *task, wait func(*alarm)){
		"loop":       func(task *task, wait func(*alarm)) { wait(must(newAlarm(task))) },
		"poller":     func(_ *task, wait func(*alarm)) { wait(must(newAlarm(nil))) },
		"time.Sleep": func(_ *task, wait func(*alarm)) { wait(nil) },
	}
	for name, with := range kinds {
		b.Run(name, func(b *testing.B) {
			h := result.NewHistogram()
			inLoop(b, func(task *task) {
				with(task, func(a *alarm) {
					for b.Loop() {
						start := time.Now()
						if a == nil {
							time.Sleep(sleep)
						} else {
							_, _ = a.wait(sleep)
						}
						_ = h.RecordValue(micros(int64(time.Since(start) - sleep)))
					}
				})
			})
			b.ReportMetric(float64(h.ValueAtQuantile(50)), "late-p50-µs")
			b.ReportMetric(float64(h.ValueAtQuantile(99)), "late-p99-µs")
		})
	}
}

func must(a *alarm, err error) *alarm {
	if err != nil {
		panic(err)
	}
	return a
}
