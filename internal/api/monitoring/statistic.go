package monitoring

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"kurabe/internal/metrics/expression"
	"kurabe/internal/metrics/series"
)

// CloudWatch's resolutions: values of less than a minute are kept for hours, those of minutes
// for days.
const (
	fineFor = 3 * time.Hour
	keptFor = 15 * 24 * time.Hour
)

// statistic is what is told of the samples of a period: one of the names, or a percentile.
type statistic struct {
	name       string
	percentile float64
}

var (
	percentileName = regexp.MustCompile(`^p(\d{1,3}(?:\.\d{1,10})?)$`)
	otherStatistic = regexp.MustCompile(`^(?i:IQM|(tm|wm|tc|ts|pr)[\d(].*)$`)
)

// parseStatistic returns a statistic, or what is wrong with it.
func parseStatistic(text string) (s statistic, wrong string) {
	switch text {
	case "Average", "Sum", "Minimum", "Maximum", "SampleCount":
		return statistic{name: text}, ""
	}
	if m := percentileName.FindStringSubmatch(text); m != nil {
		if p, err := strconv.ParseFloat(m[1], 64); err == nil && p <= 100 {
			return statistic{text, p}, ""
		}
	}
	if otherStatistic.MatchString(text) {
		return s, "trimmed statistics are not supported by this version of Kurabe: use a percentile such as p90"
	}
	return s, "it is Average, Sum, Minimum, Maximum, SampleCount or a percentile from p0.0 to p100"
}

// distinct says whether the statistic needs the samples one by one.
func (s statistic) distinct() bool { return s.name[0] == 'p' }

// of returns the statistic of the samples of a bucket, which has at least one.
func (s statistic) of(b series.Bucket) float64 {
	switch s.name {
	case "Average":
		return b.Sum / b.Count
	case "Sum":
		return b.Sum
	case "Minimum":
		return b.Min
	case "Maximum":
		return b.Max
	case "SampleCount":
		return b.Count
	}
	return percentile(b.Values, s.percentile)
}

// percentile returns the least value that p of 100 samples do not exceed.
func percentile(values []series.Weighted, p float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), func(a, b series.Weighted) int { return cmp.Compare(a.Value, b.Value) })
	total := 0.0
	for _, v := range sorted {
		total += v.Count
	}
	seen := 0.0
	for _, v := range sorted {
		if seen += v.Count; seen >= total*p/100 {
			return v.Value
		}
	}
	return math.NaN() // of values that were put as sums
}

// validPeriod says whether a period is one of CloudWatch's.
func validPeriod(seconds int64) bool {
	return seconds > 0 && (seconds%60 == 0 || slices.Contains([]int64{1, 5, 10, 20, 30}, seconds))
}

const periodRule = "must be 1, 5, 10, 20, 30 or a multiple of 60"

// question is one metric, statistic and period of a request.
type question struct {
	match  []series.Match
	stat   statistic
	period int64 // seconds
	by     []string
}

// span is the time of a request. Periods begin at multiples of themselves, moved by offset.
type span struct {
	from, to, now time.Time
	offset        time.Duration
}

// query returns a question's series.Query. Times are rounded down: the start to a whole
// period, and the end too where the period is less than a minute. There is nothing to ask for
// outside of what CloudWatch keeps for the period.
func (t span) query(q question) series.Query {
	keep := keptFor
	if q.period < 60 {
		keep = fineFor
	}
	from, to := down(latest(t.from, t.now.Add(-keep)).Add(-t.offset), q.period).Add(t.offset), t.to
	if ahead := t.now.Add(maxAhead); to.After(ahead) {
		to = ahead
	}
	if q.period < 60 {
		to = down(to, q.period)
	}
	return series.Query{Match: q.match, From: from, To: latest(from, to), Period: time.Duration(q.period) * time.Second, Offset: t.offset, By: q.by, Distinct: q.stat.distinct()}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// down is the begin of the period that a time is in, since the epoch.
func down(at time.Time, period int64) time.Time { return time.Unix(at.Unix()-at.Unix()%period, 0) }

// points returns a statistic of buckets, whose times are moved back by offset.
func points(buckets []series.Bucket, s statistic, offset int64) []expression.Point {
	out := make([]expression.Point, 0, len(buckets))
	for _, b := range buckets {
		if value := s.of(b); b.Count > 0 && !math.IsNaN(value) {
			out = append(out, expression.Point{At: b.Start - offset, Value: value})
		}
	}
	return out
}
