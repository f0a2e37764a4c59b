package monitoring

import (
	"fmt"
	"net/http"
	"slices"
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

// before says whether one place comes before another.
func (p page) before(a, b spot) bool {
	if a.at == b.at {
		return a.result < b.result
	}
	return (a.at < b.at) == p.ascending
}

// end returns the first place after the page, nil at the end.
func (p page) end(results []result) *spot {
	var times []int64
	for n, r := range results {
		for _, point := range r.points {
			if p.begin == nil || !p.before(spot{point.At, n}, *p.begin) {
				times = append(times, point.At)
			}
		}
	}
	if len(times) <= p.max {
		return nil
	}
	slices.Sort(times)
	if !p.ascending {
		slices.Reverse(times)
	}
	at, room := times[p.max], 0
	for n := p.max - 1; n >= 0 && times[n] == at; n-- {
		room++
	}
	for n, r := range results {
		_, has := slices.BinarySearchFunc(r.points, at, func(point expression.Point, at int64) int { return int(point.At - at) })
		if !has || p.begin != nil && p.before(spot{at, n}, *p.begin) {
			continue
		}
		if room == 0 {
			return &spot{at, n}
		}
		room--
	}
	return nil
}

// cut makes the answer.
func (p page) cut(results []result) *cloudwatch.GetMetricDataOutput {
	out, end := &cloudwatch.GetMetricDataOutput{MetricDataResults: []types.MetricDataResult{}}, p.end(results)
	if end != nil {
		out.NextToken = packToken(fmt.Sprintf("%d %d", end.at, end.result))
	}
	for n, r := range results {
		one := types.MetricDataResult{Id: aws.String(r.id), Label: aws.String(r.label), StatusCode: types.StatusCodeComplete, Timestamps: []time.Time{}, Values: []float64{}}
		for k := range r.points {
			point := r.points[k]
			if !p.ascending {
				point = r.points[len(r.points)-1-k]
			}
			at := spot{point.At, n}
			switch {
			case p.begin != nil && p.before(at, *p.begin):
			case end != nil && !p.before(at, *end):
				one.StatusCode = types.StatusCodePartialData
			default:
				one.Timestamps, one.Values = append(one.Timestamps, time.Unix(point.At, 0).UTC()), append(one.Values, point.Value)
			}
		}
		out.MetricDataResults = append(out.MetricDataResults, one)
	}
	return out
}
