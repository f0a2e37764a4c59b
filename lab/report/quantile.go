package report

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"kurabe/lab/result"
	"kurabe/lab/study"
)

// distribution is what the requests of one cell took, as far as the file tells.
type distribution struct {
	variant variant
	// pooled has the requests of all trials that count; nil when the generator gave none.
	pooled *hdrhistogram.Histogram
	// blocks are the quantiles of shiftQuantiles of each trial, ms, by block.
	blocks map[int][]float64
	// fewest is the number of requests of the smallest trial.
	fewest int64
	// points are quantiles of a generator that printed only these: medians over trials.
	points []quantilePoint
}

type quantilePoint struct{ q, ms float64 }

// summaryQuantiles are those that a generator may print.
var summaryQuantiles = []struct {
	q    float64
	name string
}{{0.5, "p50"}, {0.9, "p90"}, {0.95, "p95"}, {0.99, "p99"}, {0.999, "p999"}}

// microsPerMs converts the histograms' unit.
const microsPerMs = 1000

// distributions are those of a workload's variants that have any. Histograms are
// decoded once and dropped; a large study has hundreds.
func (v *view) distributions(w study.Workload) []distribution {
	var out []distribution
	for _, x := range v.variants {
		d := distribution{variant: x, blocks: map[int][]float64{}, fewest: math.MaxInt64}
		for _, t := range v.counted(x.Name, w.Name) {
			v.collect(&d, t)
		}
		if d.pooled == nil {
			for _, s := range summaryQuantiles {
				if ms, n := v.median("resp_"+s.name, x.Name, w.Name); n > 0 {
					d.points = append(d.points, quantilePoint{s.q, ms})
				}
			}
		}
		if d.pooled != nil || len(d.points) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// collect adds a trial; one whose histogram cannot be read adds nothing, as result
// finds no metric in it either.
func (v *view) collect(d *distribution, t *result.Trial) {
	p := v.judged(t)
	if p == nil || p.Load == nil {
		return
	}
	text := p.Load.Response
	if text == "" {
		text = p.Load.Service
	}
	if text == "" {
		return
	}
	h, err := result.DecodeHistogram(text)
	if err != nil || h.TotalCount() == 0 {
		return
	}
	quantiles := make([]float64, len(shiftQuantiles))
	for n, q := range shiftQuantiles {
		quantiles[n] = float64(h.ValueAtQuantile(q*100)) / microsPerMs
	}
	d.blocks[t.Block] = quantiles
	d.fewest = min(d.fewest, h.TotalCount())
	if d.pooled == nil {
		d.pooled = h
		return
	}
	if sum, err := result.Merge(d.pooled, h); err == nil {
		d.pooled = sum
	}
}

// tailSamples is how many requests must lie beyond a quantile before it is drawn.
const tailSamples = 10

// curve are the quantiles of the pooled requests up to where too few lie beyond.
func (d distribution) curve() []quantilePoint {
	if d.pooled == nil {
		return d.points
	}
	const points = 80
	n := float64(d.pooled.TotalCount())
	most := math.Log(max(n/tailSamples, 2)) // of 1/(1-q)
	var out []quantilePoint
	for k := 0; k <= points; k++ {
		q := 1 - math.Exp(-most*float64(k)/points)
		if ms := float64(d.pooled.ValueAtQuantile(q*100)) / microsPerMs; ms > 0 {
			out = append(out, quantilePoint{q, ms})
		}
	}
	return out
}
