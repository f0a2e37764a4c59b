package monitoring

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/series"
)

// CloudWatch's bounds of PutMetricData.
const (
	maxData       = 1000
	maxDimensions = 30
	maxValues     = 150 // of one datum
	maxName       = 255
	maxValue      = 1024 // characters of a dimension's value
	maxAge        = 14 * 24 * time.Hour
	maxAhead      = 2 * time.Hour
)

// maxMagnitude is 2^360, CloudWatch's bound of values.
var maxMagnitude = math.Ldexp(1, 360)

func (s service) putMetricData(ctx context.Context, in *cloudwatch.PutMetricDataInput) (*cloudwatch.PutMetricDataOutput, error) {
	namespace := *in.Namespace
	switch {
	case strings.HasPrefix(namespace, "AWS/") || strings.HasPrefix(namespace, ":") || ofDatabases(namespace) || !isName(namespace):
		return nil, invalid("The value %.300s for parameter Namespace is invalid.", namespace)
	case len(in.EntityMetricData) > 0:
		return nil, invalid("The parameter EntityMetricData is not supported: metrics belong to no entities.")
	case len(in.MetricData) == 0:
		return nil, missing("MetricData")
	case len(in.MetricData) > maxData:
		return nil, invalid("The collection MetricData must not have a size greater than %d.", maxData)
	}
	data, now := make([]series.Datum, 0, len(in.MetricData)), s.c.Now()
	for n, d := range in.MetricData {
		one, err := datum(namespace, d, fmt.Sprintf("MetricData.member.%d", n+1), now)
		if err != nil {
			return nil, err
		}
		data = append(data, one)
	}
	return &cloudwatch.PutMetricDataOutput{}, s.source.Put(ctx, data)
}

// isName says whether a text can be a name: ASCII without control characters.
func isName(text string) bool {
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) && strings.TrimSpace(text) != ""
}

// datum checks one datum, which is called at in messages.
func datum(namespace string, d types.MetricDatum, at string, now time.Time) (one series.Datum, err error) {
	name := aws.ToString(d.MetricName)
	if !isName(name) {
		return one, invalid("The value %.300s for parameter %s.MetricName is invalid.", name, at)
	}
	dimensions, err := dimensionLabels(d.Dimensions, at)
	if err != nil {
		return one, err
	}
	unit := d.Unit
	if unit == "" {
		unit = types.StandardUnitNone
	}
	if !slices.Contains(unit.Values(), unit) {
		return one, invalid("The parameter %s.Unit must be a value in the set %s.", at, unit.Values())
	}
	when, resolution := now, int64(60)
	if d.Timestamp != nil {
		when = *d.Timestamp
	}
	if when.Before(now.Add(-maxAge)) || when.After(now.Add(maxAhead)) {
		return one, invalid("The parameter %s.Timestamp must specify a time within the past two weeks and no more than two hours in the future.", at)
	}
	if d.StorageResolution != nil {
		resolution = int64(*d.StorageResolution)
	}
	if resolution != 1 && resolution != 60 {
		return one, invalid("The value %d for parameter %s.StorageResolution is invalid: it is 1 or 60.", resolution, at)
	}
	one.Labels = series.NewLabels(append(dimensions, catalog.Namespace, namespace, catalog.Metric, name, catalog.Unit, string(unit))...)
	if one.Bucket, err = bucket(d, at); err != nil {
		return one, err
	}
	one.Bucket.Start = down(when, resolution).Unix()
	return one, nil
}

func dimensionLabels(list []types.Dimension, at string) (pairs []string, err error) {
	if len(list) > maxDimensions {
		return nil, invalid("The collection %s.Dimensions must not have a size greater than %d.", at, maxDimensions)
	}
	sorted := dimensionsOf(list)
	for n, d := range sorted {
		switch {
		case !isName(d.Name) || strings.HasPrefix(d.Name, ":"):
			return nil, invalid("The value %.300s for the name of a dimension of %s is invalid.", d.Name, at)
		case d.Value == "" || len(d.Value) > maxValue || strings.ContainsFunc(d.Value, func(r rune) bool { return r < ' ' || r > '~' }):
			return nil, invalid("The value %.100s for dimension %s of %s is invalid.", d.Value, d.Name, at)
		case n > 0 && sorted[n-1].Name == d.Name:
			return nil, invalid("The dimension %s of %s is given twice.", d.Name, at)
		}
		pairs = append(pairs, catalog.DimensionPrefix+d.Name, d.Value)
	}
	return append(pairs, catalog.DimensionNames, dimensionNames(sorted)), nil
}

// bucket sums up the values of a datum.
func bucket(d types.MetricDatum, at string) (b series.Bucket, err error) {
	both := func(one, other string) error {
		return combination("The parameters %s.%s and %s.%s are mutually exclusive and you have specified both.", at, one, at, other)
	}
	switch set := d.StatisticValues; {
	case d.Value != nil && d.Values != nil:
		return b, both("Value", "Values")
	case d.Value != nil && set != nil:
		return b, both("Value", "StatisticValues")
	case d.Values != nil && set != nil:
		return b, both("Values", "StatisticValues")
	case d.Value != nil:
		return sum(&b, []float64{*d.Value}, nil, at+".Value")
	case d.Values != nil:
		return sum(&b, d.Values, d.Counts, at+".Values")
	case set == nil:
		return b, missing("at least one of " + at + ".Value, " + at + ".Values and " + at + ".StatisticValues")
	case !isNumber(*set.SampleCount) || !isNumber(*set.Sum) || !isNumber(*set.Minimum) || !isNumber(*set.Maximum) || *set.SampleCount <= 0:
		return b, invalid("A value of parameter %s.StatisticValues is invalid.", at)
	case *set.Maximum < *set.Minimum:
		return b, invalid("The parameter %s.StatisticValues.Maximum must be greater than %s.StatisticValues.Minimum.", at, at)
	default:
		b = series.Bucket{Count: *set.SampleCount, Sum: *set.Sum, Min: *set.Minimum, Max: *set.Maximum}
		if b.Min == b.Max {
			b.Values = []series.Weighted{{Value: b.Min, Count: b.Count}}
		}
		return b, nil
	}
}

func isNumber(x float64) bool { return !math.IsNaN(x) && math.Abs(x) <= maxMagnitude }

func sum(b *series.Bucket, values, counts []float64, at string) (series.Bucket, error) {
	switch {
	case len(values) == 0:
		return *b, missing(at)
	case len(values) > maxValues:
		return *b, invalid("The collection %s must not have a size greater than %d.", at, maxValues)
	case counts != nil && len(counts) != len(values):
		return *b, invalid("The parameters %s and %s must be of the same size.", at, strings.TrimSuffix(at, "Values")+"Counts")
	}
	for n, v := range values {
		count := 1.0
		if counts != nil {
			count = counts[n]
		}
		switch {
		case !isNumber(v):
			return *b, invalid("The value %v for parameter %s is invalid.", v, at)
		case !isNumber(count) || count <= 0:
			return *b, invalid("The value %v for parameter %s is invalid.", count, strings.TrimSuffix(at, "Values")+"Counts")
		}
		b.Add(series.Bucket{Count: count, Sum: v * count, Min: v, Max: v, Values: []series.Weighted{{Value: v, Count: count}}})
	}
	return *b, nil
}
