package monitoring

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/expression"
	"kurabe/internal/metrics/series"
)

// Bounds of one GetMetricStatistics, which are CloudWatch's.
const (
	maxStatistics = 1440 // data points
	maxExtended   = 10
)

func (s service) getMetricStatistics(ctx context.Context, in *cloudwatch.GetMetricStatisticsInput) (*cloudwatch.GetMetricStatisticsOutput, error) {
	stats, err := statisticsOf(in)
	if err != nil {
		return nil, err
	}
	out := &cloudwatch.GetMetricStatisticsOutput{Label: in.MetricName, Datapoints: []types.Datapoint{}}
	m := expression.Metric{Namespace: *in.Namespace, Name: *in.MetricName, Dimensions: dimensionsOf(in.Dimensions)}
	match, known := newPlaces(s.c).matches(m, in.Unit)
	if !known {
		return out, nil
	}
	q := question{match: match, stat: stats[len(stats)-1], period: int64(*in.Period), by: []string{catalog.Unit}} // percentiles are the last ones
	answers, _, err := s.source.Query(ctx, []series.Query{span{*in.StartTime, *in.EndTime, s.c.Now(), 0}.query(q)})
	if err != nil {
		return nil, err
	}
	for _, r := range answers[0] {
		unit := types.StandardUnit(r.Labels.Get(catalog.Unit))
		if d, ok := definitions[[2]string{m.Namespace, m.Name}]; ok {
			unit = types.StandardUnit(d.Unit)
		}
		for _, b := range r.Buckets {
			if b.Count > 0 {
				out.Datapoints = append(out.Datapoints, datapoint(b, stats, unit))
			}
		}
	}
	slices.SortStableFunc(out.Datapoints, func(a, b types.Datapoint) int { return a.Timestamp.Compare(*b.Timestamp) })
	return out, nil
}

func datapoint(b series.Bucket, stats []statistic, unit types.StandardUnit) types.Datapoint {
	p := types.Datapoint{Timestamp: aws.Time(time.Unix(b.Start, 0).UTC()), Unit: unit}
	fields := map[string]**float64{"Average": &p.Average, "Sum": &p.Sum, "Minimum": &p.Minimum, "Maximum": &p.Maximum, "SampleCount": &p.SampleCount}
	for _, s := range stats {
		if field := fields[s.name]; field != nil {
			*field = aws.Float64(s.of(b))
			continue
		}
		if len(b.Values) > 0 {
			if p.ExtendedStatistics == nil {
				p.ExtendedStatistics = map[string]float64{}
			}
			p.ExtendedStatistics[s.name] = s.of(b)
		}
	}
	return p
}

// statisticsOf checks a request and returns what it asks for, percentiles last.
func statisticsOf(in *cloudwatch.GetMetricStatisticsInput) ([]statistic, error) {
	var stats []statistic
	read := func(parameter, text string) error {
		stat, wrong := parseStatistic(text)
		if wrong != "" || stat.distinct() != strings.HasPrefix(parameter, "Extended") {
			return invalid("The value %.40s for parameter %s is not supported: %s.", text, parameter, wrong)
		}
		stats = append(stats, stat)
		return nil
	}
	for n, text := range in.Statistics {
		if err := read(fmt.Sprintf("Statistics.member.%d", n+1), string(text)); err != nil {
			return nil, err
		}
	}
	for n, text := range in.ExtendedStatistics {
		if err := read(fmt.Sprintf("ExtendedStatistics.member.%d", n+1), text); err != nil {
			return nil, err
		}
	}
	period := int64(*in.Period)
	switch {
	case *in.Namespace == "":
		return nil, missing("Namespace")
	case *in.MetricName == "":
		return nil, missing("MetricName")
	case len(stats) == 0:
		return nil, missing("Statistics or ExtendedStatistics")
	case len(in.Statistics) > 0 && len(in.ExtendedStatistics) > 0:
		return nil, combination("The parameters Statistics and ExtendedStatistics are mutually exclusive and you have specified both.")
	case len(in.ExtendedStatistics) > maxExtended:
		return nil, invalid("The collection ExtendedStatistics must not have a size greater than %d.", maxExtended)
	case !validPeriod(period):
		return nil, invalid("The parameter Period %s.", periodRule)
	case !in.StartTime.Before(*in.EndTime):
		return nil, combination("The parameter StartTime must be less than the parameter EndTime.")
	case in.StartTime.Unix() < 0:
		return nil, invalid("The parameter StartTime must not be before 1970.")
	}
	if most := int64(in.EndTime.Sub(*in.StartTime)/time.Second) / period; most > maxStatistics {
		return nil, combination("You have requested up to %d datapoints, which exceeds the limit of %d. You may reduce the datapoints requested by increasing Period, or decreasing the time range.", most, maxStatistics)
	}
	return stats, nil
}
