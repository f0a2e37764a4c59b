package monitoring

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"kurabe/internal/metrics/catalog"
)

func statisticsInput(stats ...types.Statistic) *cloudwatch.GetMetricStatisticsInput {
	return &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String(catalog.RDS), MetricName: aws.String("CPUUtilization"), Dimensions: dims("DBInstanceIdentifier=shop"),
		StartTime: aws.Time(noon), EndTime: aws.Time(noon.Add(time.Hour)), Period: aws.Int32(60), Statistics: stats,
	}
}

func TestGetMetricStatistics(t *testing.T) {
	w := newWorld(t)
	for second := range 120 {
		w.measured("CPUUtilization", "shop", catalog.RolePrimary, second, float64(second))
	}
	out, err := w.GetMetricStatistics(t.Context(), statisticsInput("Average", "Sum", "Minimum", "Maximum", "SampleCount"))
	if err != nil || *out.Label != "CPUUtilization" || len(out.Datapoints) != 2 {
		t.Fatalf("%v %v", out, err)
	}
	p := out.Datapoints[1]
	got := fmt.Sprintln(p.Timestamp.Unix()-noon.Unix(), *p.Average, *p.Sum, *p.Minimum, *p.Maximum, *p.SampleCount, p.Unit, p.ExtendedStatistics)
	if want := "60 89.5 5370 60 119 60 Percent map[]\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	in := statisticsInput()
	in.ExtendedStatistics = []string{"p50", "p99.9"}
	if out, err = w.GetMetricStatistics(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if p := out.Datapoints[0]; p.ExtendedStatistics["p50"] != 29 || p.ExtendedStatistics["p99.9"] != 59 || p.Average != nil {
		t.Errorf("%v", p)
	}
	in = statisticsInput("Sum")
	in.Unit = types.StandardUnitBytes
	if out, err = w.GetMetricStatistics(t.Context(), in); err != nil || len(out.Datapoints) != 0 {
		t.Errorf("%v %v", out, err)
	}
}

// Users' values of two units are two data points.
func TestGetMetricStatisticsOfUnits(t *testing.T) {
	w := newWorld(t)
	w.put(t, "mine",
		types.MetricDatum{MetricName: aws.String("m"), Timestamp: aws.Time(noon), Value: aws.Float64(1), Unit: types.StandardUnitBytes},
		types.MetricDatum{MetricName: aws.String("m"), Timestamp: aws.Time(noon), Value: aws.Float64(2)},
	)
	in := statisticsInput("Sum")
	in.Namespace, in.MetricName, in.Dimensions = aws.String("mine"), aws.String("m"), nil
	out, err := w.GetMetricStatistics(t.Context(), in)
	if err != nil || len(out.Datapoints) != 2 {
		t.Fatalf("%v %v", out, err)
	}
	got := map[types.StandardUnit]float64{}
	for _, p := range out.Datapoints {
		got[p.Unit] = *p.Sum
	}
	if got[types.StandardUnitBytes] != 1 || got[types.StandardUnitNone] != 2 {
		t.Errorf("%v", got)
	}
}

func TestGetMetricStatisticsRefused(t *testing.T) {
	w := newWorld(t)
	edit := func(f func(*cloudwatch.GetMetricStatisticsInput)) error {
		in := statisticsInput("Sum")
		f(in)
		_, err := w.GetMetricStatistics(t.Context(), in)
		return err
	}
	for _, c := range []struct {
		name, code, text string
		err              error
	}{
		{"too many", "InvalidParameterCombination", "You have requested up to 1441 datapoints, which exceeds the limit of 1440. You may reduce the datapoints requested by increasing Period, or decreasing the time range.",
			edit(func(in *cloudwatch.GetMetricStatisticsInput) {
				in.StartTime = aws.Time(in.EndTime.Add(-1441 * time.Minute))
			})},
		{"as many as can be", "", "", edit(func(in *cloudwatch.GetMetricStatisticsInput) {
			in.StartTime = aws.Time(in.EndTime.Add(-1440 * time.Minute))
		})},
		{"period", "InvalidParameterValue", "The parameter Period must be", edit(func(in *cloudwatch.GetMetricStatisticsInput) { in.Period = aws.Int32(90) })},
		{"times", "InvalidParameterCombination", "StartTime must be less than", edit(func(in *cloudwatch.GetMetricStatisticsInput) { in.EndTime = in.StartTime })},
		{"no statistic", "MissingParameter", "Statistics or ExtendedStatistics is required", edit(func(in *cloudwatch.GetMetricStatisticsInput) { in.Statistics = nil })},
		{"both", "InvalidParameterCombination", "mutually exclusive", edit(func(in *cloudwatch.GetMetricStatisticsInput) { in.ExtendedStatistics = []string{"p50"} })},
		{"unknown", "InvalidParameterValue", "The value Mean for parameter Statistics.member.1", edit(func(in *cloudwatch.GetMetricStatisticsInput) { in.Statistics = []types.Statistic{"Mean"} })},
		{"trimmed", "InvalidParameterValue", "trimmed statistics", edit(func(in *cloudwatch.GetMetricStatisticsInput) {
			in.Statistics, in.ExtendedStatistics = nil, []string{"tm90"}
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.code == "" && c.err == nil {
				return
			}
			wantCode(t, c.err, c.code, c.text)
		})
	}
}
