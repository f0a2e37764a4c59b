package monitoring

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"kurabe"
	evaluating "kurabe/internal/alarm"
)

const topic = "arn:aws:sns:us-east-1:000000000000:pages"

// busy is an alarm on the CPU of shop.
func busy(name string, edit ...func(*cloudwatch.PutMetricAlarmInput)) *cloudwatch.PutMetricAlarmInput {
	in := &cloudwatch.PutMetricAlarmInput{
		AlarmName: &name, AlarmDescription: aws.String("the shop is busy"), Namespace: aws.String("AWS/RDS"), MetricName: aws.String("CPUUtilization"),
		Dimensions: []types.Dimension{{Name: aws.String("DBInstanceIdentifier"), Value: aws.String("shop")}}, Statistic: types.StatisticAverage,
		Period: aws.Int32(60), EvaluationPeriods: aws.Int32(3), DatapointsToAlarm: aws.Int32(2), Threshold: aws.Float64(80),
		ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold, AlarmActions: []string{topic}, Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("shop")}},
	}
	for _, e := range edit {
		e(in)
	}
	return in
}

func (w world) putAlarm(t *testing.T, in *cloudwatch.PutMetricAlarmInput) {
	t.Helper()
	if _, err := w.PutMetricAlarm(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func (w world) alarm(t *testing.T, name string) types.MetricAlarm {
	t.Helper()
	out, err := w.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}})
	if err != nil || len(out.MetricAlarms) != 1 {
		t.Fatalf("%v, %v", out, err)
	}
	return out.MetricAlarms[0]
}

func (w world) history(t *testing.T, in cloudwatch.DescribeAlarmHistoryInput) (list []string) {
	t.Helper()
	out, err := w.DescribeAlarmHistory(t.Context(), &in)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range out.AlarmHistoryItems {
		if !json.Valid([]byte(*i.HistoryData)) {
			t.Errorf("history data %s", *i.HistoryData)
		}
		list = append(list, string(i.HistoryItemType)+": "+*i.HistorySummary)
	}
	return list
}

func TestAlarm(t *testing.T) {
	w := newWorld(t)
	w.putAlarm(t, busy("busy"))
	a := w.alarm(t, "busy")
	arn := "arn:aws:cloudwatch:us-east-1:000000000000:alarm:busy"
	if *a.AlarmArn != arn || a.StateValue != types.StateValueInsufficientData || *a.StateReason != kurabe.AlarmCreated || !*a.ActionsEnabled || a.OKActions == nil ||
		!slices.Equal(a.AlarmActions, []string{topic}) || *a.Threshold != 80 || *a.DatapointsToAlarm != 2 || *a.Period != 60 || a.Statistic != types.StatisticAverage ||
		a.TreatMissingData != nil || *a.Dimensions[0].Value != "shop" || *a.AlarmDescription != "the shop is busy" || !a.StateUpdatedTimestamp.Equal(noon.Add(time.Hour)) {
		t.Errorf("%+v", a)
	}
	if _, err := w.SetAlarmState(t.Context(), &cloudwatch.SetAlarmStateInput{AlarmName: aws.String("busy"), StateValue: types.StateValueAlarm, StateReason: aws.String("a test"), StateReasonData: aws.String(`{"a":1}`)}); err != nil {
		t.Fatal(err)
	}
	w.putAlarm(t, busy("busy", func(in *cloudwatch.PutMetricAlarmInput) { in.Threshold, in.Tags = aws.Float64(90), nil }))
	if a = w.alarm(t, "busy"); *a.Threshold != 90 || a.StateValue != types.StateValueAlarm || *a.StateReason != "a test" || *a.StateReasonData != `{"a":1}` {
		t.Errorf("changed: %+v", a)
	}
	names := []string{"busy", "absent"}
	if _, err := w.DisableAlarmActions(t.Context(), &cloudwatch.DisableAlarmActionsInput{AlarmNames: names}); err != nil || *w.alarm(t, "busy").ActionsEnabled {
		t.Errorf("disabled: %v", err)
	}
	for range 2 {
		if _, err := w.DeleteAlarms(t.Context(), &cloudwatch.DeleteAlarmsInput{AlarmNames: names}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`ConfigurationUpdate: Alarm "busy" created`, "StateUpdate: Alarm updated from INSUFFICIENT_DATA to ALARM",
		"Action: Failed to execute action " + topic + `. Received error: "Resource ` + topic + ` not found"`,
		`ConfigurationUpdate: Alarm "busy" updated`, `ConfigurationUpdate: Alarm "busy" updated`, `ConfigurationUpdate: Alarm "busy" deleted`,
	}
	if got := w.history(t, cloudwatch.DescribeAlarmHistoryInput{ScanBy: types.ScanByTimestampAscending}); !sameEntries(got, want) {
		t.Errorf("history %s", strings.Join(got, "\n"))
	}
	far := cloudwatch.DescribeAlarmHistoryInput{StartDate: aws.Time(time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC)), EndDate: aws.Time(time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC))}
	if got := w.history(t, far); len(got) != len(want) {
		t.Errorf("of 1500 years %d", len(got))
	}
	if got := w.history(t, cloudwatch.DescribeAlarmHistoryInput{EndDate: aws.Time(noon)}); len(got) != 0 {
		t.Errorf("before there was any: %v", got)
	}
	if got := w.history(t, cloudwatch.DescribeAlarmHistoryInput{AlarmName: aws.String("busy"), HistoryItemType: types.HistoryItemTypeStateUpdate}); len(got) != 1 {
		t.Errorf("states %v", got)
	}
}

// sameEntries compares without the order: the clock of the tests stands still.
func sameEntries(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func TestAlarmTags(t *testing.T) {
	w := newWorld(t)
	w.putAlarm(t, busy("busy"))
	arn := w.alarm(t, "busy").AlarmArn
	tags := func() (text string) {
		out, err := w.ListTagsForResource(t.Context(), &cloudwatch.ListTagsForResourceInput{ResourceARN: arn})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range out.Tags {
			text += *one.Key + "=" + *one.Value + " "
		}
		return text
	}
	if _, err := w.TagResource(t.Context(), &cloudwatch.TagResourceInput{ResourceARN: arn, Tags: []types.Tag{{Key: aws.String("b"), Value: aws.String("2")}, {Key: aws.String("team"), Value: aws.String("x")}}}); err != nil || tags() != "team=x b=2 " {
		t.Errorf("%v, %s", err, tags())
	}
	if _, err := w.UntagResource(t.Context(), &cloudwatch.UntagResourceInput{ResourceARN: arn, TagKeys: []string{"team", "none"}}); err != nil || tags() != "b=2 " {
		t.Errorf("%v, %s", err, tags())
	}
	_, err := w.ListTagsForResource(t.Context(), &cloudwatch.ListTagsForResourceInput{ResourceARN: aws.String(*arn + "x")})
	wantCode(t, err, "ResourceNotFoundException", "")
	_, err = w.ListTagsForResource(t.Context(), &cloudwatch.ListTagsForResourceInput{ResourceARN: aws.String("arn:aws:rds:us-east-1:000000000000:db:x")})
	wantCode(t, err, "InvalidParameterValue", "none of an alarm")
}

func TestAlarmPages(t *testing.T) {
	w := newWorld(t)
	for n := range 7 {
		w.putAlarm(t, busy(fmt.Sprintf("busy/%d ö", n)))
	}
	w.putAlarm(t, busy("idle", func(in *cloudwatch.PutMetricAlarmInput) {
		in.Statistic, in.ExtendedStatistic, in.EvaluateLowSampleCountPercentile, in.AlarmActions = "", aws.String("p99"), aws.String("ignore"), nil
	}))
	list := func(in cloudwatch.DescribeAlarmsInput) (names []string) {
		pages := cloudwatch.NewDescribeAlarmsPaginator(w, &in)
		for pages.HasMorePages() {
			out, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range out.MetricAlarms {
				names = append(names, *a.AlarmName)
			}
		}
		return names
	}
	for n, c := range []struct {
		in   cloudwatch.DescribeAlarmsInput
		want int
	}{
		{cloudwatch.DescribeAlarmsInput{MaxRecords: aws.Int32(3)}, 8},
		{cloudwatch.DescribeAlarmsInput{AlarmNamePrefix: aws.String("busy/"), MaxRecords: aws.Int32(2)}, 7},
		{cloudwatch.DescribeAlarmsInput{ActionPrefix: aws.String("arn:aws:sns")}, 7},
		{cloudwatch.DescribeAlarmsInput{ActionPrefix: aws.String("arn:aws:lambda")}, 0},
		{cloudwatch.DescribeAlarmsInput{StateValue: types.StateValueInsufficientData}, 8},
		{cloudwatch.DescribeAlarmsInput{StateValue: types.StateValueOk}, 0},
		{cloudwatch.DescribeAlarmsInput{AlarmTypes: []types.AlarmType{types.AlarmTypeCompositeAlarm}}, 0},
		{cloudwatch.DescribeAlarmsInput{ParentsOfAlarmName: aws.String("idle")}, 0},
	} {
		if got := list(c.in); len(got) != c.want || !slices.IsSorted(got) {
			t.Errorf("%d: %v", n, got)
		}
	}
	metric := cloudwatch.DescribeAlarmsForMetricInput{Namespace: aws.String("AWS/RDS"), MetricName: aws.String("CPUUtilization"), Dimensions: busy("").Dimensions}
	forMetric := func() int {
		out, err := w.DescribeAlarmsForMetric(t.Context(), &metric)
		if err != nil {
			t.Fatal(err)
		}
		return len(out.MetricAlarms)
	}
	all := forMetric()
	metric.ExtendedStatistic = aws.String("p99")
	extended := forMetric()
	metric.Dimensions = nil
	if none := forMetric(); all != 8 || extended != 1 || none != 0 {
		t.Errorf("for the metric %d, with p99 %d, of all instances %d", all, extended, none)
	}
	count := 0
	pages := cloudwatch.NewDescribeAlarmHistoryPaginator(w, &cloudwatch.DescribeAlarmHistoryInput{MaxRecords: aws.Int32(3)})
	for pages.HasMorePages() {
		out, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		count += len(out.AlarmHistoryItems)
	}
	if count != 8 {
		t.Errorf("%d entries in the history", count)
	}
}

func onMath(name string, queries ...types.MetricDataQuery) *cloudwatch.PutMetricAlarmInput {
	return &cloudwatch.PutMetricAlarmInput{
		AlarmName: &name, Metrics: queries, EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(1), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
	}
}

func TestAlarmRefusals(t *testing.T) {
	w := newWorld(t)
	m1 := metricQuery("m1", "CPUUtilization", "Average", 60)
	for _, c := range []struct {
		in         *cloudwatch.PutMetricAlarmInput
		code, text string
	}{
		{busy(""), "ValidationError", "AlarmName"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) { in.Period = aws.Int32(15) }), "ValidationError", "Period must be 10, 20, 30 or a multiple of 60"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) { in.EvaluationPeriods = aws.Int32(1441) }), "ValidationError", "more than 86400 seconds"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) {
			in.Period, in.EvaluationPeriods = aws.Int32(3600), aws.Int32(169)
		}), "ValidationError", "more than 604800 seconds"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) { in.DatapointsToAlarm = aws.Int32(4) }), "ValidationError", "DatapointsToAlarm must be from 1 to"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) { in.ExtendedStatistic = aws.String("p50") }), "InvalidParameterCombination", "mutually exclusive"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) { in.Statistic = "p50" }), "ValidationError", "Statistic"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) { in.Statistic = "" }), "MissingParameter", "Statistic or ExtendedStatistic"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) { in.Threshold = nil }), "MissingParameter", "Threshold"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) { in.TreatMissingData = aws.String("no") }), "ValidationError", "TreatMissingData"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) {
			in.ComparisonOperator = types.ComparisonOperatorGreaterThanUpperThreshold
		}), "ValidationError", "no anomaly detection"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) { in.ThresholdMetricId = aws.String("a") }), "ValidationError", "no anomaly detection"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) {
			in.OKActions = []string{"arn:aws:automate:us-east-1:ec2:stop"}
		}), "ValidationError", "actions of EC2"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) {
			in.AlarmActions = []string{"arn:aws:lambda:us-east-1:000000000000:function:f"}
		}), "ValidationError", "Lambda"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) { in.AlarmActions = slices.Repeat([]string{topic}, 6) }), "ValidationError", "At most 5"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) { in.EvaluateLowSampleCountPercentile = aws.String("ignore") }), "ValidationError", "goes with a percentile"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) { in.Metrics = []types.MetricDataQuery{m1} }), "InvalidParameterCombination", "With Metrics"},
		{busy("x", func(in *cloudwatch.PutMetricAlarmInput) {
			in.EvaluationWindow = &types.EvaluationWindowMemberWallClockWindow{}
		}), "", "EvaluationWindow"},
		{onMath("x", m1, mathQuery("e1", "m1 * 2")), "ValidationError", "exactly one element"},
		{onMath("x", hidden(m1), mathQuery("e1", "m1 +")), "ValidationError", "Error in expression 'e1'"},
		{onMath("x", hidden(m1), mathQuery("e1", "m2")), "ValidationError", "Undefined variable 'm2'"},
		{onMath("x", hidden(m1), mathQuery("e1", "METRICS()")), "ValidationError", "single time series"},
		{onMath("x", hidden(m1), mathQuery("e1", "AVG(m1)")), "ValidationError", "single time series, and e1 returns Number"},
		{onMath("x", hidden(m1), mathQuery("e1", "SUM(SEARCH('{AWS/RDS}', 'Average', 60))")), "ValidationError", "SEARCH is not supported"},
		{onMath("x", hidden(m1), hidden(metricQuery("m2", "CPUUtilization", "Average", 120)), mathQuery("e1", "m1 + m2")), "ValidationError", "same period"},
	} {
		_, err := w.PutMetricAlarm(t.Context(), c.in)
		if c.code == "" {
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
			continue
		}
		wantCode(t, err, c.code, c.text)
	}
	_, err := w.SetAlarmState(t.Context(), &cloudwatch.SetAlarmStateInput{AlarmName: aws.String("absent"), StateValue: types.StateValueOk, StateReason: aws.String("x")})
	wantCode(t, err, "ResourceNotFound", "absent")
	w.putAlarm(t, busy("busy"))
	_, err = w.SetAlarmState(t.Context(), &cloudwatch.SetAlarmStateInput{AlarmName: aws.String("busy"), StateValue: types.StateValueOk, StateReason: aws.String("x"), StateReasonData: aws.String("{")})
	wantCode(t, err, "InvalidFormat", "JSON")
	_, err = w.PutCompositeAlarm(t.Context(), &cloudwatch.PutCompositeAlarmInput{AlarmName: aws.String("c"), AlarmRule: aws.String("ALARM(busy)")})
	wantCode(t, err, "UnsupportedOperation", "alarms watch metrics, not other alarms")
}

// What alarms read: whole periods that slide, of a metric with its number of samples, of metric
// math, and of an alarm that is refused, which spoils no other.
func TestAlarmReads(t *testing.T) {
	w := newWorld(t)
	for n := range 600 {
		w.measured("CPUUtilization", "shop", "primary", n, float64(n/60))
	}
	query := func(stat string, period int64) kurabe.MetricQuery {
		return kurabe.MetricQuery{Namespace: "AWS/RDS", Name: "CPUUtilization", Stat: stat, Period: period, Dimensions: []kurabe.MetricDimension{{Name: "DBInstanceIdentifier", Value: "shop"}}}
	}
	due := func(minute, period int64, queries ...kurabe.MetricQuery) evaluating.Due {
		return evaluating.Due{Alarm: kurabe.Alarm{Queries: queries, Watched: len(queries) - 1, Period: period, EvaluationPeriods: 1}, End: noon.Unix() + minute*60}
	}
	named := query("Average", 180)
	named.ID = "m1"
	got, err := AlarmReader{w.service}.Read(t.Context(), []evaluating.Due{
		due(10, 180, query("Average", 180)),
		due(10, 180, named, kurabe.MetricQuery{ID: "e1", Expression: "FILL(m1, 0) * 10"}),
		due(10, 60, query("nonsense", 60)),
		due(12, 60, query("Maximum", 60)),
	})
	if err != nil || len(got) != 4 || got[2].Err == nil {
		t.Fatalf("%v, %v", got, err)
	}
	at := func(minute int64, value, samples float64) evaluating.Point {
		return evaluating.Point{At: noon.Unix() + minute*60, Value: value, Samples: samples}
	}
	for n, want := range [][]evaluating.Point{{at(1, 2, 180), at(4, 5, 180), at(7, 8, 180)}, {at(1, 20, 0), at(4, 50, 0), at(7, 80, 0)}, nil, {at(9, 9, 60)}} {
		if !slices.Equal(got[n].Points, want) {
			t.Errorf("%d: %v, want %v", n, got[n].Points, want)
		}
	}
}
