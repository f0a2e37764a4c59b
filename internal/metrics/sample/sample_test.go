package sample_test

import (
	"fmt"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/cgroup"
	"kurabe/internal/metrics/sample"
)

func TestBetween(t *testing.T) {
	counter := func(kind sample.Kind, v float64) sample.Value { return sample.Value{Metric: "m", Kind: kind, Value: v} }
	mean := func(v, count float64) sample.Value {
		return sample.Value{Metric: "m", Kind: sample.Mean, Value: v, Count: count}
	}
	read := func(of string, at time.Duration, v ...sample.Value) sample.Reading {
		return sample.Reading{Of: of, At: at, Values: v}
	}
	const second = time.Second
	cases := map[string]struct {
		before, now sample.Reading
		want        string
	}{
		"gauge":             {read("", 0), read("a", second, counter(sample.Gauge, -1)), "[-1]"},
		"rate":              {read("a", second, counter(sample.Rate, 100)), read("a", 3*second, counter(sample.Rate, 300)), "[100]"},
		"rate, short":       {read("a", second, counter(sample.Rate, 100)), read("a", second+second/2, counter(sample.Rate, 300)), "[400]"},
		"increase":          {read("a", second, counter(sample.Increase, 1)), read("a", 3*second, counter(sample.Increase, 4)), "[3]"},
		"none":              {read("a", second, counter(sample.Rate, 7)), read("a", 2*second, counter(sample.Rate, 7)), "[0]"},
		"first":             {read("a", 0), read("a", second, counter(sample.Rate, 7)), "[]"},
		"another process":   {read("a", 0, counter(sample.Rate, 1)), read("b", second, counter(sample.Rate, 7)), "[]"},
		"counter back":      {read("a", 0, counter(sample.Rate, 9)), read("a", second, counter(sample.Rate, 7)), "[]"},
		"clock stands":      {read("a", second, counter(sample.Rate, 1)), read("a", second, counter(sample.Rate, 7)), "[]"},
		"clock back":        {read("a", 2*second, counter(sample.Rate, 1)), read("a", second, counter(sample.Rate, 7)), "[]"},
		"too soon":          {read("a", second, counter(sample.Rate, 1)), read("a", second+second/8, counter(sample.Rate, 7)), "[]"},
		"gap":               {read("a", second, counter(sample.Increase, 1)), read("a", time.Hour, counter(sample.Increase, 7)), "[]"},
		"mean":              {read("a", 0, mean(10, 100)), read("a", second, mean(12, 104)), "[0.5]"},
		"mean of nothing":   {read("a", 0, mean(10, 100)), read("a", second, mean(10, 100)), "[]"},
		"mean, count back":  {read("a", 0, mean(10, 100)), read("a", second, mean(12, 99)), "[]"},
		"highest":           {read("a", 0, counter(sample.Rate, 0), counter(sample.Rate, 0)), read("a", second, counter(sample.Rate, 7), counter(sample.Rate, 5)), "[7]"},
		"highest of half":   {read("a", 0, counter(sample.Rate, 8), counter(sample.Rate, 0)), read("a", second, counter(sample.Rate, 7), counter(sample.Rate, 5)), "[5]"},
		"counter is a new":  {read("a", 0, counter(sample.Gauge, 1)), read("a", second, counter(sample.Gauge, 1), counter(sample.Rate, 5)), "[1]"},
		"counter is absent": {read("a", 0, counter(sample.Gauge, 1), counter(sample.Rate, 5)), read("a", second, counter(sample.Gauge, 1)), "[1]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			values := []float64{}
			for _, s := range sample.Between(c.before, c.now) {
				values = append(values, s.Value)
			}
			if got := fmt.Sprint(values); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A group that uses half of two processors, and the disk at the limit of its writes.
func TestGroup(t *testing.T) {
	disk := cgroup.Device{Major: 254}
	g := sample.Group{
		Stats: cgroup.Stats{
			CPUUsage: 3 * time.Second, CPUThrottled: time.Second, MemoryLimitBytes: 1000, MemoryUnreclaimableBytes: 400, SwapBytes: 5,
			IO: map[cgroup.Device]cgroup.IOStats{disk: {ReadOps: 10, WriteOps: 20, ReadBytes: 100, WriteBytes: 200}, {Major: 7}: {ReadOps: 1 << 40}},
		},
		Limits: kurabe.Limits{CPUs: 2, WriteIOPS: 40, WriteBytesPerSecond: 1000}, Device: disk, CPUs: 8, AvailableBytes: 1 << 40,
		Disk: cgroup.DiskStats{Reads: 100, Writes: 100, Reading: time.Second, Writing: time.Second},
	}
	before := sample.Reading{Of: "g", Values: g.Values()}
	g.Stats.CPUUsage += time.Second
	g.Stats.CPUThrottled += time.Second / 4
	g.Stats.IO[disk] = cgroup.IOStats{ReadOps: 20, WriteOps: 60, ReadBytes: 1100, WriteBytes: 700}
	g.Disk = cgroup.DiskStats{Reads: 120, Writes: 150, Reading: 1200 * time.Millisecond, Writing: 2 * time.Second}
	got := map[string]float64{}
	for _, s := range sample.WithQueueDepth(sample.Between(before, sample.Reading{Of: "g", At: time.Second, Values: g.Values()})) {
		got[s.Metric] = s.Value
	}
	want := map[string]float64{
		"CPUUtilization": 50, "CPUThrottledTime": .25, "FreeableMemory": 600, "SwapUsage": 5, "ReadIOPS": 10, "WriteIOPS": 40,
		"ReadThroughput": 1000, "WriteThroughput": 500, "ReadLatency": .01, "WriteLatency": .02, "DiskQueueDepth": .9, "IOLimitUtilization": 100,
	}
	for metric, v := range want {
		if d := got[metric] - v; d > 1e-9 || d < -1e-9 {
			t.Errorf("%s = %v, want %v", metric, got[metric], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	g.Limits, g.Stats.MemoryLimitBytes, g.Device = kurabe.Limits{}, 0, cgroup.Device{}
	for _, v := range g.Values() {
		if v.Metric == "FreeableMemory" && v.Value != 1<<40 || v.Metric == "ReadIOPS" || v.Metric == "CPUUtilization" && v.Value != 50 {
			t.Errorf("without limits: %v", v)
		}
	}
}

func TestLoad(t *testing.T) {
	sessions := []kurabe.ActiveSession{{WaitType: kurabe.WaitCPU}, {WaitType: "Lock"}, {WaitType: "IO"}}
	if got := fmt.Sprint(sample.Load(sessions, 1.5)); got != "[{DBLoad 0 3 0} {DBLoadCPU 0 1 0} {DBLoadNonCPU 0 2 0} {DBLoadRelativeToNumVCPUs 0 2 0}]" {
		t.Error(got)
	}
	if got := sample.Load(nil, 0); len(got) != 4 || got[0].Value != 0 || got[3].Value != 0 {
		t.Error(got) // an idle server has a load of 0, not none
	}
}
