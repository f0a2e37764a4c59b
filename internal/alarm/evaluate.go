package alarm

import (
	"slices"
	"strconv"
	"time"

	"kurabe"
)

// beyond is how many more data points are looked at than are evaluated, in case that some of the
// newest are missing: the evaluation range in CloudWatch's documents.
const beyond = 2

// Point is the value of a period.
type Point struct {
	At      int64 // Unix time of the begin, seconds
	Value   float64
	Samples float64 // that the value is of, 0 of an expression
}

// Due is an alarm that is to be evaluated, with its data points up to End.
type Due struct {
	kurabe.Alarm
	End int64 // Unix time, seconds
}

// Begin is the begin of the evaluation range, Unix time in seconds.
func (d Due) Begin() int64 { return d.End - int64(d.EvaluationPeriods+beyond)*d.Period }

// Verdict is a state with what it rests on.
type Verdict struct {
	State  kurabe.AlarmState
	Reason string
	Data   string // JSON
}

// evidence is what an evaluation counts.
type evidence struct {
	points []Point // newest first, at most EvaluationPeriods
	filled int     // missing data points that are counted too
	oldest int     // age in periods of the oldest of points that crosses the threshold, 0 of none
}

// Evaluate decides by the data points of the evaluation range, in any order, what the state of an
// alarm is; false when it stays as it is. Points that do not begin with a period of the range
// are none of it.
func Evaluate(d Due, points []Point, now time.Time) (Verdict, bool) {
	e := d.gather(points)
	if d.tooFew(e) {
		return Verdict{}, false
	}
	state, known := d.decide(e)
	if !known {
		return Verdict{}, false
	}
	return Verdict{state, d.reason(e, state), d.data(e, now)}, true
}

// gather takes the newest data points, as many as are evaluated or are there.
func (d Due) gather(points []Point) (e evidence) {
	there := map[int64]Point{}
	for _, p := range points {
		there[p.At] = p
	}
	for age := 1; age <= d.EvaluationPeriods+beyond && len(e.points) < d.EvaluationPeriods; age++ {
		p, ok := there[d.End-int64(age)*d.Period]
		if !ok {
			continue
		}
		e.points = append(e.points, p)
		if d.crosses(p) {
			e.oldest = age
		}
	}
	e.filled = d.EvaluationPeriods - len(e.points)
	return e
}

func (d Due) crosses(p Point) bool { return d.Comparison.Holds(p.Value, d.Threshold) }

// split returns the points that cross the threshold and the others, newest first.
func (d Due) split(points []Point) (crossing, others []Point) {
	for _, p := range points {
		if d.crosses(p) {
			crossing = append(crossing, p)
		} else {
			others = append(others, p)
		}
	}
	return crossing, others
}

// decide is CloudWatch's rule. Missing data points count only where there are too few others, and
// then as few as possible.
func (d Due) decide(e evidence) (state kurabe.AlarmState, known bool) {
	crossing, others := d.split(e.points)
	switch {
	case len(crossing) >= d.ToAlarm():
		return kurabe.AlarmAlarm, true
	case e.filled == 0 || d.MissingData == kurabe.MissingIsNotBreaching:
		return kurabe.AlarmOK, true
	case d.MissingData == kurabe.MissingIsBreaching && len(crossing)+e.filled >= d.ToAlarm():
		return kurabe.AlarmAlarm, true
	case d.MissingData == kurabe.MissingIsBreaching || len(others) > 0:
		return kurabe.AlarmOK, true
	case d.MissingData == kurabe.MissingIsIgnored:
		return "", false
	case e.oldest >= d.ToAlarm():
		// All that is known crosses the threshold, and has for long enough. One that has only now
		// may be followed by one that does not.
		return kurabe.AlarmAlarm, true
	}
	return kurabe.AlarmInsufficientData, true
}

// tooFew says whether a percentile is of so few samples that the alarm is to wait for more:
// fewer than ten beyond it.
func (d Due) tooFew(e evidence) bool {
	stat := d.Queries[d.Watched].Stat
	if d.LowSamples != kurabe.LowSamplesIgnore || len(e.points) == 0 || stat == "" || stat[0] != 'p' {
		return false
	}
	percent, err := strconv.ParseFloat(stat[1:], 64)
	share := min(percent, 100-percent) / 100
	if err != nil || share <= 0 {
		return false
	}
	samples := 0.0
	for _, p := range e.points {
		samples += p.Samples
	}
	return samples < 10/share
}

// span returns the begins of the periods that are evaluated, newest first: those of the points,
// and of the newest missing ones.
func (d Due) span(e evidence) (begins []int64) {
	missing := e.filled
	for age := 1; age <= d.EvaluationPeriods+beyond; age++ {
		at := d.End - int64(age)*d.Period
		if slices.ContainsFunc(e.points, func(p Point) bool { return p.At == at }) {
			begins = append(begins, at)
		} else if missing > 0 {
			missing--
			begins = append(begins, at)
		}
	}
	return begins
}
