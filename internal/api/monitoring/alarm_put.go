package monitoring

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"kurabe"
	"kurabe/internal/aws/fault"
	"kurabe/internal/control/alarm"
	"kurabe/internal/metrics/expression"
)

// CloudWatch's bounds of an alarm.
const (
	maxAlarmDescription = 1024
	maxActions          = 5 // of one state
	maxAlarmQueries     = 20
	maxAlarmMetrics     = 10
	maxEvaluationDay    = 86400  // seconds, of periods below an hour
	maxEvaluationWeek   = 604800 // of others
	hourLong            = 3600
)

func (s service) putMetricAlarm(ctx context.Context, in *cloudwatch.PutMetricAlarmInput) (*cloudwatch.PutMetricAlarmOutput, error) {
	a, err := s.alarmOf(in)
	if err != nil {
		return nil, err
	}
	if err := s.alarms().Put(ctx, a); errors.Is(err, alarm.ErrQuota) {
		return nil, fault.New(http.StatusBadRequest, "LimitExceeded", "There are %d alarms already, which is the limit.", alarm.Max)
	} else if err != nil {
		return nil, err
	}
	return &cloudwatch.PutMetricAlarmOutput{}, nil
}

// alarmOf checks a request and returns its alarm.
func (s service) alarmOf(in *cloudwatch.PutMetricAlarmInput) (a kurabe.Alarm, err error) {
	if err := refuseAlarm(in); err != nil {
		return a, err
	}
	a = kurabe.Alarm{
		Name: *in.AlarmName, Description: aws.ToString(in.AlarmDescription), Muted: in.ActionsEnabled != nil && !*in.ActionsEnabled,
		Comparison: kurabe.Comparison(in.ComparisonOperator), MissingData: kurabe.MissingData(aws.ToString(in.TreatMissingData)),
		LowSamples: aws.ToString(in.EvaluateLowSampleCountPercentile), EvaluationPeriods: int(aws.ToInt32(in.EvaluationPeriods)),
		DatapointsToAlarm: int(aws.ToInt32(in.DatapointsToAlarm)), Threshold: aws.ToFloat64(in.Threshold), Actions: map[kurabe.AlarmState][]string{},
	}
	if err := checkAlarm(in, a); err != nil {
		return a, err
	}
	for state, list := range map[kurabe.AlarmState][]string{kurabe.AlarmOK: in.OKActions, kurabe.AlarmAlarm: in.AlarmActions, kurabe.AlarmInsufficientData: in.InsufficientDataActions} {
		if len(list) > 0 {
			a.Actions[state] = list
		}
		if err := s.checkActions(list); err != nil {
			return a, err
		}
	}
	for _, t := range in.Tags {
		a.Tags = append(a.Tags, kurabe.Tag{Key: aws.ToString(t.Key), Value: aws.ToString(t.Value)})
	}
	if err := kurabe.CheckTags(a.Tags); err != nil {
		return a, err
	}
	if len(in.Metrics) > 0 {
		err = s.readQueries(&a, in)
	} else {
		err = readMetric(&a, in)
	}
	if err != nil {
		return a, err
	}
	return a, s.checkQueries(a)
}

// refuseAlarm refuses what no alarm here has.
func refuseAlarm(in *cloudwatch.PutMetricAlarmInput) error {
	for _, c := range []struct {
		parameter, reason string
		given             bool
	}{
		{"ThresholdMetricId", "there is no anomaly detection", in.ThresholdMetricId != nil},
		{"EvaluationCriteria", "alarms watch metrics and metric math, not PromQL", in.EvaluationCriteria != nil},
		{"EvaluationInterval", "it goes with EvaluationCriteria", in.EvaluationInterval != nil},
		{"EvaluationWindow", "alarms look at sliding windows, as they do without it", in.EvaluationWindow != nil},
		{"ActionConfiguration", "actions are topics, told once at each change", in.ActionConfiguration != nil},
		{"WarmUpConfiguration", "an alarm is evaluated from its creation on", in.WarmUpConfiguration != nil},
	} {
		if c.given {
			return validation("The parameter %s is not supported: %s.", c.parameter, c.reason)
		}
	}
	return nil
}

// oneOf refuses a word that is none of some; "" is none given.
func oneOf[T ~string](parameter string, word T, words []T, more string) error {
	if word == "" || slices.Contains(words, word) {
		return nil
	}
	return validation("The value %.60s for parameter %s is not supported: it is one of %v%s.", word, parameter, words, more)
}

// checkAlarm checks what is not of the metric.
func checkAlarm(in *cloudwatch.PutMetricAlarmInput, a kurabe.Alarm) error {
	switch {
	case a.Name == "" || len([]rune(a.Name)) > maxName || strings.ContainsFunc(a.Name, unicode.IsControl):
		return validation("The value %.300q for parameter AlarmName is invalid: it has 1 to %d characters, none of which is a control character.", a.Name, maxName)
	case len([]rune(a.Description)) > maxAlarmDescription:
		return validation("The parameter AlarmDescription must not be longer than %d characters.", maxAlarmDescription)
	case in.ComparisonOperator == "":
		return missing("ComparisonOperator")
	case in.EvaluationPeriods == nil:
		return missing("EvaluationPeriods")
	case in.Threshold == nil:
		return missing("Threshold")
	case !isNumber(a.Threshold):
		return validation("The value %v for parameter Threshold is invalid.", a.Threshold)
	case a.EvaluationPeriods < 1:
		return validation("The parameter EvaluationPeriods must be greater than 0.")
	case in.DatapointsToAlarm != nil && (a.DatapointsToAlarm < 1 || a.DatapointsToAlarm > a.EvaluationPeriods):
		return validation("The parameter DatapointsToAlarm must be from 1 to EvaluationPeriods, which is %d.", a.EvaluationPeriods)
	}
	return errors.Join(
		oneOf("ComparisonOperator", a.Comparison, kurabe.Comparisons, ": there is no anomaly detection"),
		oneOf("TreatMissingData", a.MissingData, kurabe.MissingDatas, ""),
		oneOf("EvaluateLowSampleCountPercentile", a.LowSamples, []string{kurabe.LowSamplesEvaluate, kurabe.LowSamplesIgnore}, ""),
	)
}

// checkActions refuses what nobody here would do.
func (s service) checkActions(list []string) error {
	if len(list) > maxActions {
		return validation("At most %d actions are allowed for each state.", maxActions)
	}
	topics := "arn:aws:sns:" + s.c.Region + ":" + s.c.Account + ":"
	for _, arn := range list {
		if parts := strings.Split(arn, ":"); len(parts) > 3 && parts[2] == "sns" && parts[3] != s.c.Region {
			return validation("Invalid region %.40s specified. Only %s is supported.", parts[3], s.c.Region)
		}
		if name, ours := strings.CutPrefix(arn, topics); !ours || name == "" || strings.Contains(name, ":") {
			return validation("Invalid arn syntax: %.300s: the actions of alarms are topics of SNS (%sNAME); actions of EC2, Auto Scaling, Lambda and Systems Manager are not offered.", arn, topics)
		}
	}
	return nil
}

// readMetric reads the metric of an alarm of one.
func readMetric(a *kurabe.Alarm, in *cloudwatch.PutMetricAlarmInput) error {
	q := kurabe.MetricQuery{
		Namespace: aws.ToString(in.Namespace), Name: aws.ToString(in.MetricName), Unit: string(in.Unit), Period: int64(aws.ToInt32(in.Period)),
		Stat: string(in.Statistic), Dimensions: alarmDimensions(in.Dimensions),
	}
	switch {
	case q.Name == "":
		return missing("MetricName or Metrics")
	case q.Namespace == "":
		return missing("Namespace")
	case in.Period == nil:
		return missing("Period")
	case q.Stat != "" && in.ExtendedStatistic != nil:
		return combination("The parameters Statistic and ExtendedStatistic are mutually exclusive and you have specified both.")
	case q.Stat == "" && in.ExtendedStatistic == nil:
		return missing("Statistic or ExtendedStatistic")
	case in.Unit != "" && !slices.Contains(in.Unit.Values(), in.Unit):
		return validation("The value %.40s for parameter Unit is not supported.", in.Unit)
	}
	extended := q.Stat == ""
	if extended {
		q.Stat = *in.ExtendedStatistic
	}
	if stat, wrong := parseStatistic(q.Stat); wrong != "" || stat.distinct() != extended {
		if extended {
			return fault.New(http.StatusBadRequest, "InvalidParameterValue", "The value %.40s for parameter ExtendedStatistic is not supported.", q.Stat)
		}
		return validation("The value %.40s for parameter Statistic is not supported: %s.", q.Stat, wrong)
	}
	if a.LowSamples != "" && !extended {
		return validation("The parameter EvaluateLowSampleCountPercentile goes with a percentile in ExtendedStatistic.")
	}
	a.Queries, a.Period = []kurabe.MetricQuery{q}, q.Period
	return nil
}

func alarmDimensions(list []types.Dimension) (out []kurabe.MetricDimension) {
	for _, d := range list {
		out = append(out, kurabe.MetricDimension{Name: aws.ToString(d.Name), Value: aws.ToString(d.Value)})
	}
	return out
}

// readQueries reads the list of an alarm on metric math. The queries themselves are checked later.
func (s service) readQueries(a *kurabe.Alarm, in *cloudwatch.PutMetricAlarmInput) error {
	switch {
	case in.MetricName != nil || in.Namespace != nil || in.Statistic != "" || in.ExtendedStatistic != nil || len(in.Dimensions) > 0 || in.Period != nil || in.Unit != "":
		return combination("With Metrics, the parameters MetricName, Namespace, Statistic, ExtendedStatistic, Dimensions, Period and Unit must not be specified.")
	case len(in.Metrics) > maxAlarmQueries:
		return validation("The collection Metrics must not have a size greater than %d.", maxAlarmQueries)
	}
	watched, metrics := 0, 0
	for n, q := range in.Metrics {
		one := kurabe.MetricQuery{ID: aws.ToString(q.Id), Label: aws.ToString(q.Label), Expression: aws.ToString(q.Expression), Period: int64(aws.ToInt32(q.Period))}
		if q.AccountId != nil && *q.AccountId != s.c.Account {
			return validation("The value %.20s for parameter Metrics.member.%d.AccountId is not supported: there is one account.", *q.AccountId, n+1)
		}
		if m := q.MetricStat; m != nil && m.Metric != nil {
			if q.Expression != nil || q.Period != nil {
				return validation("The parameter Metrics.member.%d.MetricStat and Expression or Period are mutually exclusive.", n+1)
			}
			metrics++
			one.Namespace, one.Name, one.Dimensions = aws.ToString(m.Metric.Namespace), aws.ToString(m.Metric.MetricName), alarmDimensions(m.Metric.Dimensions)
			one.Stat, one.Unit, one.Period = aws.ToString(m.Stat), string(m.Unit), int64(aws.ToInt32(m.Period))
		}
		if q.ReturnData == nil || *q.ReturnData {
			watched, a.Watched = watched+1, n
		}
		if one.Period != 0 {
			if a.Period != 0 && a.Period != one.Period {
				return validation("Invalid metrics list: all queries of an alarm must have the same period.")
			}
			a.Period = one.Period
		}
		a.Queries = append(a.Queries, one)
	}
	switch {
	case watched != 1:
		return validation("Invalid metrics list: exactly one element of the metrics list should return data, and %d do.", watched)
	case metrics == 0:
		return validation("Invalid metrics list: it has no metric.")
	case metrics > maxAlarmMetrics:
		return validation("Invalid metrics list: at most %d metrics are allowed.", maxAlarmMetrics)
	}
	return nil
}

// checkQueries checks the period, the queries, and that the watched one is one time series.
func (s service) checkQueries(a kurabe.Alarm) error {
	longest := int64(maxEvaluationWeek)
	if a.Period < hourLong {
		longest = maxEvaluationDay
	}
	switch {
	case a.Period < 10 || a.Period < 60 && !slices.Contains([]int64{10, 20, 30}, a.Period) || a.Period >= 60 && a.Period%60 != 0:
		return validation("The parameter Period must be 10, 20, 30 or a multiple of 60.")
	case int64(a.EvaluationPeriods) > longest/a.Period:
		return validation("Metrics cannot be checked across more than %d seconds: Period times EvaluationPeriods is %d.", longest, a.Period*int64(a.EvaluationPeriods))
	}
	now := s.c.Now().Truncate(time.Minute)
	e := &evaluation{service: s, places: newPlaces(s.c), span: span{from: now.Add(-time.Duration(a.Period) * time.Second), to: now, now: now}}
	if err := e.read(dataQueries(a, "q")); err != nil {
		return err
	}
	for _, q := range e.queries {
		if q.math != nil && len(q.math.Searches) > 0 {
			return validation("Invalid metrics list: SEARCH is not supported on alarms.")
		}
	}
	if err := e.collect(context.Background()); err != nil { // nothing is asked without SEARCH
		return err
	}
	v, err := e.value(e.queries[a.Watched])
	if err == nil && v.Kind != expression.Single {
		err = validation("Invalid metrics list: the expression of an alarm must return a single time series, and %s returns %s.", a.Queries[a.Watched].ID, v.Kind)
	}
	return err
}

// dataQueries are the queries of an alarm as GetMetricData has them; lone is the id of one without.
func dataQueries(a kurabe.Alarm, lone string) (list []types.MetricDataQuery) {
	for n, q := range a.Queries {
		one := types.MetricDataQuery{Id: aws.String(q.ID), ReturnData: aws.Bool(n == a.Watched)}
		if q.ID == "" {
			one.Id = aws.String(lone)
		}
		if q.Label != "" {
			one.Label = aws.String(q.Label)
		}
		if q.Expression != "" {
			one.Expression = aws.String(q.Expression)
			if q.Period != 0 {
				one.Period = aws.Int32(int32(q.Period))
			}
		} else {
			one.MetricStat = &types.MetricStat{
				Metric: &types.Metric{Namespace: aws.String(q.Namespace), MetricName: aws.String(q.Name), Dimensions: shownDimensions(q)},
				Period: aws.Int32(int32(q.Period)), Stat: aws.String(q.Stat), Unit: types.StandardUnit(q.Unit),
			}
		}
		list = append(list, one)
	}
	return list
}

func shownDimensions(q kurabe.MetricQuery) []types.Dimension {
	list := []types.Dimension{}
	for _, d := range q.Dimensions {
		list = append(list, types.Dimension{Name: aws.String(d.Name), Value: aws.String(d.Value)})
	}
	return list
}
