package monitoring

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"kurabe/internal/aws/fault"
	"kurabe/internal/metrics/expression"
)

// page is the part of an answer that a request asks for: data points in the order of time, the
// newest first unless the user wants the oldest. Its token is the place of the first data point
// after it, so points that come meanwhile move no other.
type page struct {
	max       int
	ascending bool
	begin     *spot
}

// spot is a data point's place: its time and the number of its result.
type spot struct {
	at     int64
	result int
}

func pageOf(in *cloudwatch.GetMetricDataInput) (page, error) {
	p := page{max: maxDatapoints, ascending: in.ScanBy == types.ScanByTimestampAscending}
	text, ok := unpackToken(in.NextToken)
	if text != "" {
		p.begin = &spot{}
		_, err := fmt.Sscanf(text, "%d %d", &p.begin.at, &p.begin.result)
		ok = ok && err == nil
	}
	if in.MaxDatapoints != nil {
		p.max = int(*in.MaxDatapoints)
	}
	switch {
	case !ok:
		return p, fault.New(http.StatusBadRequest, "InvalidNextToken", "Request parameter NextToken is invalid")
	case p.max < 1 || p.max > maxDatapoints:
		return p, validation("The parameter MaxDatapoints must be between 1 and %d.", maxDatapoints)
	case in.ScanBy != "" && !slices.Contains(in.ScanBy.Values(), in.ScanBy):
		return p, validation("The value %.40s for parameter ScanBy is not supported.", in.ScanBy)
	case in.LabelOptions != nil && in.LabelOptions.Timezone != nil && !timezonePattern.MatchString(*in.LabelOptions.Timezone):
		return p, validation("The value %.40s for parameter LabelOptions.Timezone is invalid: it is such as +0130.", *in.LabelOptions.Timezone)
	}
	return p, checkTimes(*in.StartTime, *in.EndTime)
}

// rank is how many points of the n-th result come before a place.
func (p page) rank(points []expression.Point, n int, s *spot) int {
	at := s.at
	if n < s.result == p.ascending {
		at++ // the point of this time comes before the place, or behind it in the other order
	}
	older, _ := slices.BinarySearchFunc(points, at, func(point expression.Point, at int64) int { return cmp.Compare(point.At, at) })
	if p.ascending {
		return older
	}
	return len(points) - older
}

// bounds are the first and the last point of a result that are on the page, by rank; the last one
// is not on it.
func (p page) bounds(points []expression.Point, n int, end *spot) (first, last int) {
	last = len(points)
	if p.begin != nil {
		first = p.rank(points, n, p.begin)
	}
	if end != nil {
		last = max(first, p.rank(points, n, end))
	}
	return first, last
}

// end returns the first place after the page, nil at the end.
func (p page) end(results []result) *spot {
	total := func(end *spot) (sum int) {
		for n, r := range results {
			first, last := p.bounds(r.points, n, end)
			sum += last - first
		}
		return sum
	}
	if total(nil) <= p.max {
		return nil
	}
	oldest, newest := int64(math.MaxInt64), int64(math.MinInt64)
	for _, r := range results {
		if len(r.points) > 0 {
			oldest, newest = min(oldest, r.points[0].At), max(newest, r.points[len(r.points)-1].At)
		}
	}
	place := func(second int) *spot {
		if p.ascending {
			return &spot{at: oldest + int64(second)}
		}
		return &spot{at: newest - int64(second)}
	}
	// The page ends at the last second whose points do not all find room, among its results.
	end := place(sort.Search(int(newest-oldest)+1, func(second int) bool { return total(place(second)) > p.max }) - 1)
	end.result = sort.Search(len(results)-1, func(n int) bool { return total(&spot{end.at, n + 1}) > p.max })
	return end
}

// cut makes the answer.
func (p page) cut(results []result) *cloudwatch.GetMetricDataOutput {
	out, end := &cloudwatch.GetMetricDataOutput{MetricDataResults: []types.MetricDataResult{}}, p.end(results)
	if end != nil {
		out.NextToken = packToken(fmt.Sprintf("%d %d", end.at, end.result))
	}
	for n, r := range results {
		first, last := p.bounds(r.points, n, end)
		one := types.MetricDataResult{
			Id: aws.String(r.id), Label: aws.String(r.label), StatusCode: types.StatusCodeComplete,
			Timestamps: make([]time.Time, 0, last-first), Values: make([]float64, 0, last-first),
		}
		if last < len(r.points) {
			one.StatusCode = types.StatusCodePartialData
		}
		for k := first; k < last; k++ {
			point := r.points[k]
			if !p.ascending {
				point = r.points[len(r.points)-1-k]
			}
			one.Timestamps, one.Values = append(one.Timestamps, time.Unix(point.At, 0).UTC()), append(one.Values, point.Value)
		}
		out.MetricDataResults = append(out.MetricDataResults, one)
	}
	return out
}
