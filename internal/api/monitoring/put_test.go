package monitoring

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/schemas"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go/transport/http/protocol/awsquery"
)

func (w world) put(t *testing.T, namespace string, data ...types.MetricDatum) {
	t.Helper()
	if _, err := w.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: &namespace, MetricData: data}); err != nil {
		t.Fatal(err)
	}
}

func own(stat string, period int32, words ...string) types.MetricDataQuery {
	q := metricQuery("m1", "m", stat, period, words...)
	q.MetricStat.Metric.Namespace = aws.String("mine")
	return q
}

// What was put is what is got: values, values with counts, sets of statistics, in the second or
// in the minute, by its exact dimensions.
func TestPutMetricData(t *testing.T) {
	w := newWorld(t)
	at := func(second int) *time.Time { return aws.Time(noon.Add(time.Duration(second) * time.Second)) }
	w.put(t, "mine",
		types.MetricDatum{MetricName: aws.String("m"), Timestamp: at(5), Value: aws.Float64(1), Dimensions: dims("a=1")},
		types.MetricDatum{MetricName: aws.String("m"), Timestamp: at(59), Values: []float64{2, 3}, Counts: []float64{1, 8}, Dimensions: dims("a=1")},
		types.MetricDatum{MetricName: aws.String("m"), Timestamp: at(60), StatisticValues: &types.StatisticSet{SampleCount: aws.Float64(4), Sum: aws.Float64(20), Minimum: aws.Float64(1), Maximum: aws.Float64(9)}, Dimensions: dims("a=1")},
		types.MetricDatum{MetricName: aws.String("m"), Timestamp: at(5), Value: aws.Float64(100), Dimensions: dims("b=2", "a=1")},
		types.MetricDatum{MetricName: aws.String("m"), Timestamp: at(125), Value: aws.Float64(7), StorageResolution: aws.Int32(1), Unit: types.StandardUnitSeconds},
	)
	for _, c := range []struct {
		name string
		q    types.MetricDataQuery
		want string
	}{
		{"sum", own("Sum", 60, "a=1"), "m1 m: 0=27 60=20"},
		{"count", own("SampleCount", 60, "a=1"), "m1 m: 0=10 60=4"},
		{"greatest", own("Maximum", 60, "a=1"), "m1 m: 0=3 60=9"},
		{"median", own("p50", 60, "a=1"), "m1 m: 0=3"}, // those of a set are not known
		{"p10", own("p10", 60, "a=1"), "m1 m: 0=1"},
		{"two dimensions", own("Sum", 60, "a=1", "b=2"), "m1 m: 0=100"},
		{"another value", own("Sum", 60, "a=2"), "m1 m:"},
		{"the second", own("Sum", 1), "m1 m: 125=7"},
	} {
		t.Run(c.name, func(t *testing.T) { w.wantData(t, dataInput(c.q), c.want) })
	}
	q := own("Sum", 60)
	q.MetricStat.Unit = types.StandardUnitSeconds
	w.wantData(t, dataInput(q), "m1 m: 120=7")
	q.MetricStat.Unit = types.StandardUnitBytes
	w.wantData(t, dataInput(q), "m1 m:")
}

// The SDK compresses a large request. The query protocol has a parameter for each member.
func TestPutMuch(t *testing.T) {
	w := newWorld(t)
	query := w
	query.Client = cloudwatch.New(w.Options(), func(o *cloudwatch.Options) { o.Protocol = awsquery.New(schemas.GraniteServiceVersion20100801) })
	data := make([]types.MetricDatum, maxData)
	for n := range data {
		data[n] = types.MetricDatum{MetricName: aws.String("m"), Value: aws.Float64(float64(n)), Timestamp: aws.Time(noon), Dimensions: dims("a=1", "b=2", "c=3")}
	}
	w.put(t, "mine", data...)
	query.put(t, "mine", data...)
	w.wantData(t, dataInput(own("Sum", 60, "a=1", "b=2", "c=3")), "m1 m: 0=999000")
}

func TestPutMetricDataRefused(t *testing.T) {
	w := newWorld(t)
	try := func(namespace string, data ...types.MetricDatum) error {
		_, err := w.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: &namespace, MetricData: data})
		return err
	}
	edit := func(f func(*types.MetricDatum)) error {
		d := types.MetricDatum{MetricName: aws.String("m"), Value: aws.Float64(1)}
		f(&d)
		return try("mine", d)
	}
	many := func(n int) (list []types.Dimension) {
		for i := range n {
			list = append(list, types.Dimension{Name: aws.String(string(rune('A' + i))), Value: aws.String("v")})
		}
		return list
	}
	good := types.MetricDatum{MetricName: aws.String("m"), Value: aws.Float64(1)}
	for _, c := range []struct {
		name, code, text string
		err              error
	}{
		{"AWS's namespace", "InvalidParameterValue", "The value AWS/RDS for parameter Namespace is invalid.", try("AWS/RDS", good)},
		{"ours", "InvalidParameterValue", "The value Kurabe/RDS for parameter Namespace is invalid.", try("Kurabe/RDS", good)},
		{"colon", "InvalidParameterValue", "Namespace is invalid", try(":x", good)},
		{"nothing", "MissingParameter", "The parameter MetricData is required.", try("mine")},
		{"too many", "InvalidParameterValue", "MetricData must not have a size greater than 1000", try("mine", slices.Repeat([]types.MetricDatum{good}, maxData+1)...)},
		{"no name", "InvalidParameterValue", "MetricData.member.1.MetricName is invalid", edit(func(d *types.MetricDatum) { d.MetricName = aws.String("") })},
		{"no value", "MissingParameter", "MetricData.member.1.StatisticValues is required", edit(func(d *types.MetricDatum) { d.Value = nil })},
		{"NaN", "InvalidParameterValue", "The value NaN for parameter MetricData.member.1.Value is invalid.", edit(func(d *types.MetricDatum) { d.Value = aws.Float64(math.NaN()) })},
		{"infinite", "InvalidParameterValue", "MetricData.member.1.Value is invalid", edit(func(d *types.MetricDatum) { d.Value = aws.Float64(math.Inf(1)) })},
		{"value and values", "InvalidParameterCombination", "The parameters MetricData.member.1.Value and MetricData.member.1.Values are mutually exclusive and you have specified both.", edit(func(d *types.MetricDatum) { d.Values = []float64{1} })},
		{"counts", "InvalidParameterValue", "The parameters MetricData.member.1.Values and MetricData.member.1.Counts must be of the same size.", edit(func(d *types.MetricDatum) { d.Value, d.Values, d.Counts = nil, []float64{1, 2}, []float64{1} })},
		{"unit", "InvalidParameterValue", "The parameter MetricData.member.1.Unit must be a value in the set [", edit(func(d *types.MetricDatum) { d.Unit = "Furlongs" })},
		{"resolution", "InvalidParameterValue", "StorageResolution is invalid", edit(func(d *types.MetricDatum) { d.StorageResolution = aws.Int32(5) })},
		{"old", "InvalidParameterValue", "Timestamp must specify a time within the past two weeks", edit(func(d *types.MetricDatum) { d.Timestamp = aws.Time(noon.Add(-15 * 24 * time.Hour)) })},
		{"to come", "InvalidParameterValue", "two hours in the future", edit(func(d *types.MetricDatum) { d.Timestamp = aws.Time(noon.Add(4 * time.Hour)) })},
		{"dimensions", "InvalidParameterValue", "Dimensions must not have a size greater than 30", edit(func(d *types.MetricDatum) { d.Dimensions = many(31) })},
		{"a dimension twice", "InvalidParameterValue", "is given twice", edit(func(d *types.MetricDatum) { d.Dimensions = dims("a=1", "a=2") })},
		{"an empty dimension", "InvalidParameterValue", "dimension a of MetricData.member.1 is invalid", edit(func(d *types.MetricDatum) { d.Dimensions = dims("a=") })},
		{"minimum above maximum", "InvalidParameterValue", "StatisticValues.Maximum must be greater than", edit(func(d *types.MetricDatum) {
			d.Value, d.StatisticValues = nil, &types.StatisticSet{SampleCount: aws.Float64(1), Sum: aws.Float64(1), Minimum: aws.Float64(2), Maximum: aws.Float64(1)}
		})},
	} {
		t.Run(c.name, func(t *testing.T) { wantCode(t, c.err, c.code, c.text) })
	}
	if len(w.data) > 0 {
		t.Errorf("%d data were kept", len(w.data))
	}
}
