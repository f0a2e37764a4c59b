package sample

import "time"

// Kind says how a sample follows from what was read.
type Kind int

// The kinds. Of a counter the increase since the reading before counts.
const (
	Gauge    Kind = iota // as it was read
	Rate                 // increase in one second
	Increase             // increase
	Mean                 // increase by the increase of Count; none where that is 0
)

// Value is one value that was read, or one sample.
type Value struct {
	Metric string // of the catalog
	Kind   Kind
	Value  float64
	Count  float64 // of a Mean
}

// Reading is what was read of one source of values at one time.
type Reading struct {
	Of     string        // identity of that source: counters of another one are others
	At     time.Duration // by a clock that is never set
	Values []Value
}

// Two readings that are nearer than ElapsedMin are no second, and those that are further apart
// than elapsedMax have a gap between them: a counter's increase over it is of no one second.
const (
	ElapsedMin = 200 * time.Millisecond
	elapsedMax = 5 * time.Second
)

// Between returns the samples of the time between two readings. A metric that has several
// values gets the highest of them.
func Between(before, now Reading) []Value {
	elapsed := now.At - before.At
	counts := before.Of == now.Of && elapsed >= ElapsedMin && elapsed <= elapsedMax
	var samples []Value
	for n, v := range now.Values {
		s := Value{Metric: v.Metric, Value: v.Value}
		if v.Kind != Gauge {
			earlier, known := find(before.Values, n, v)
			if !counts || !known {
				continue
			}
			if s.Value, known = increase(earlier, v, elapsed.Seconds()); !known {
				continue
			}
		}
		if last := len(samples) - 1; last >= 0 && samples[last].Metric == v.Metric {
			samples[last].Value = max(samples[last].Value, s.Value)
			continue
		}
		samples = append(samples, s)
	}
	return samples
}

// find returns the n-th value of the earlier reading if it is of the same metric: the values
// of one source have one order.
func find(earlier []Value, n int, v Value) (Value, bool) {
	if n >= len(earlier) || earlier[n].Metric != v.Metric || earlier[n].Kind != v.Kind {
		return Value{}, false
	}
	return earlier[n], true
}

func increase(before, now Value, seconds float64) (float64, bool) {
	grown := now.Value - before.Value
	if grown < 0 {
		return 0, false
	}
	switch now.Kind {
	case Rate:
		return grown / seconds, true
	case Mean:
		count := now.Count - before.Count
		return grown / count, count > 0
	}
	return grown, true
}
