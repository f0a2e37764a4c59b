package resulttest

import (
	"fmt"
	"math"

	"kurabe/lab/result"
)

// points is how many quantiles a made-up histogram has: enough for a smooth curve.
const points = 240

// shape is a distribution of latencies: log-normal, with a share of slow ones.
type shape struct {
	median, sigma  float64 // ms; of the logarithm
	slow, slowness float64 // share; factor
}

func (s shape) mean() float64 {
	body := s.median * math.Exp(s.sigma*s.sigma/2)
	return body * (1 - s.slow + s.slow*s.slowness)
}

// histogram has n latencies of the shape.
func (m *maker) histogram(s shape, n int64) string {
	h := result.NewHistogram()
	record := func(ms float64, count int64) {
		micros := min(max(int64(ms*1000), 1), result.MaxHistogramMicros)
		if count <= 0 {
			return
		}
		if err := h.RecordValues(micros, count); err != nil {
			panic("a made-up latency does not fit: " + err.Error())
		}
	}
	slow := int64(float64(n) * s.slow)
	left := n - slow
	for i := range points {
		q := (float64(i) + 0.5) / points
		count := left*int64(i+1)/points - left*int64(i)/points
		record(s.median*math.Exp(s.sigma*math.Sqrt2*math.Erfinv(2*q-1)), count)
	}
	// The slow ones thin out to the end, as behind a checkpoint.
	for tail := 1.0; slow > 0; tail *= 1.03 {
		count := (slow + 2) / 3
		record(s.median*s.slowness*tail*m.noise(), count)
		slow -= count
	}
	text, err := result.EncodeHistogram(h)
	if err != nil {
		panic(err)
	}
	return text
}

// bins are answered transactions per 100 ms and the slowest of each, ms.
func (m *maker) bins(seconds, tps float64, s shape) (bins []int64, slowest []float64) {
	for range int(seconds*10 + 0.5) {
		mean := tps / 10
		n := int64(max(0, mean+m.rng.NormFloat64()*math.Sqrt(mean)))
		bins = append(bins, n)
		worst := 0.0
		if n > 0 {
			worst = s.median * (2 + 2*m.rng.Float64())
			if m.rng.Float64() < s.slow*float64(n) {
				worst *= s.slowness / 2
			}
		}
		slowest = append(slowest, math.Round(worst*1000)/1000)
	}
	return bins, slowest
}

// costs are what a transaction takes of the server.
type costs struct{ cpuMs, switches, walBytes, fsyncs, readBytes, writeBytes float64 }

func (m *maker) probes(c costs, transactions int64) map[string]float64 {
	n := float64(transactions)
	count := func(x float64) float64 { return math.Round(x * n * m.noise()) }
	all := map[string]float64{
		"cpu_s": math.Round(c.cpuMs*n*m.noise()) / 1000, "context_switches": count(c.switches),
		"wal_bytes": count(c.walBytes), "fsyncs": count(c.fsyncs), "read_bytes": count(c.readBytes),
		"write_bytes": count(c.writeBytes), "lock_waits": math.Round(3 * m.rng.Float64()),
	}
	all["lock_wait_s"] = all["lock_waits"] / 64
	return all
}

// statements are the shape's parts, with the names in the order in which they run.
func (m *maker) statements(names []string, whole shape, n int64) map[string]string {
	all := map[string]string{}
	for i, name := range names {
		s := whole
		s.median = whole.median / float64(len(names)) * (0.8 + 0.4*float64(i)/float64(len(names)))
		all[fmt.Sprintf("%02d %s", i+1, name)] = m.histogram(s, n)
	}
	return all
}
