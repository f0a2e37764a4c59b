package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"kurabe"
	evaluating "kurabe/internal/alarm"
	"kurabe/internal/api"
	"kurabe/internal/aws/fault"
	"kurabe/internal/control"
	"kurabe/internal/control/alarm"
)

// CloudWatch's bounds of requests about alarms.
const (
	maxAlarmNames   = 100
	maxAlarmRecords = 100
	alarmsPerPage   = 50
	maxStateReason  = 1023
	maxReasonData   = 4000
)

func (s service) alarmRows() []api.Operation {
	return []api.Operation{
		api.Write("PutMetricAlarm", s.putMetricAlarm),
		api.Read("DescribeAlarms", s.describeAlarms),
		api.Read("DescribeAlarmsForMetric", s.describeAlarmsForMetric),
		api.Read("DescribeAlarmHistory", s.describeAlarmHistory),
		api.Write("SetAlarmState", s.setAlarmState),
		api.Write("EnableAlarmActions", s.enableAlarmActions),
		api.Write("DisableAlarmActions", s.disableAlarmActions),
		api.Write("DeleteAlarms", s.deleteAlarms),
		api.Read("ListTagsForResource", s.listTagsForResource),
		api.Write("TagResource", s.tagResource),
		api.Write("UntagResource", s.untagResource),
	}
}

func (s service) alarms() alarm.Alarms { return alarm.New(s.c.Scope) }

// pageOfAlarms cuts a page out of a list that is sorted by key, by the token and the size of a
// request.
func pageOfAlarms[T any](list []T, key func(T) string, token *string, max *int32, usual int) ([]T, *string, error) {
	after, ok := unpackToken(token)
	size := usual
	if max != nil {
		size = int(*max)
	}
	switch {
	case !ok:
		return nil, nil, fault.New(http.StatusBadRequest, "InvalidNextToken", "Request parameter NextToken is invalid")
	case size < 1 || size > maxAlarmRecords:
		return nil, nil, validation("The parameter MaxRecords must be between 1 and %d.", maxAlarmRecords)
	}
	page, next := control.MarkerPage(list, key, after, size)
	return page, packToken(next), nil
}

// wantsMetricAlarms says whether a request is for alarms of metrics, which it is without a type.
func wantsMetricAlarms(list []types.AlarmType) (bool, error) {
	for _, t := range list {
		if !slices.Contains(t.Values(), t) {
			return false, validation("The value %.60s for parameter AlarmTypes is not supported: it is one of %v.", t, t.Values())
		}
	}
	return len(list) == 0 || slices.Contains(list, types.AlarmTypeMetricAlarm), nil
}

// describeAlarmsOutput has what alarms are here: the SDK's struct has kinds beside it that older
// clients do not know.
type describeAlarmsOutput struct {
	MetricAlarms    []types.MetricAlarm
	CompositeAlarms []types.CompositeAlarm
	NextToken       *string
}

func (s service) describeAlarms(_ context.Context, in *cloudwatch.DescribeAlarmsInput) (*describeAlarmsOutput, error) {
	wanted, err := wantsMetricAlarms(in.AlarmTypes)
	switch {
	case err != nil:
		return nil, err
	case len(in.AlarmNames) > 0 && in.AlarmNamePrefix != nil:
		return nil, combination("The parameters AlarmNames and AlarmNamePrefix are mutually exclusive and you have specified both.")
	case len(in.AlarmNames) > maxAlarmNames:
		return nil, validation("The collection AlarmNames must not have a size greater than %d.", maxAlarmNames)
	}
	if err := oneOf("StateValue", kurabe.AlarmState(in.StateValue), kurabe.AlarmStates, ""); err != nil {
		return nil, err
	}
	var list []alarm.Alarm
	// The parents and children of an alarm are of composite ones, which nobody has.
	if wanted && in.ChildrenOfAlarmName == nil && in.ParentsOfAlarmName == nil {
		list = s.alarms().List(alarm.Filter{
			Names: in.AlarmNames, Prefix: aws.ToString(in.AlarmNamePrefix), ActionPrefix: aws.ToString(in.ActionPrefix), State: kurabe.AlarmState(in.StateValue),
		})
	}
	page, next, err := pageOfAlarms(list, func(a alarm.Alarm) string { return a.Name }, in.NextToken, in.MaxRecords, alarmsPerPage)
	if err != nil {
		return nil, err
	}
	out := &describeAlarmsOutput{MetricAlarms: []types.MetricAlarm{}, CompositeAlarms: []types.CompositeAlarm{}, NextToken: next}
	for _, a := range page {
		out.MetricAlarms = append(out.MetricAlarms, s.shown(a))
	}
	return out, nil
}

func (s service) describeAlarmsForMetric(_ context.Context, in *cloudwatch.DescribeAlarmsForMetricInput) (*cloudwatch.DescribeAlarmsForMetricOutput, error) {
	if in.Statistic != "" && in.ExtendedStatistic != nil {
		return nil, combination("The parameters Statistic and ExtendedStatistic are mutually exclusive and you have specified both.")
	}
	stat := string(in.Statistic) + aws.ToString(in.ExtendedStatistic)
	wanted := dimensionsOf(in.Dimensions)
	out := &cloudwatch.DescribeAlarmsForMetricOutput{MetricAlarms: []types.MetricAlarm{}}
	for _, a := range s.alarms().List(alarm.Filter{Metric: func(q kurabe.MetricQuery) bool {
		return q.Namespace == *in.Namespace && q.Name == *in.MetricName && (stat == "" || q.Stat == stat) && (in.Period == nil || q.Period == int64(*in.Period)) &&
			(in.Unit == "" || q.Unit == string(in.Unit)) && slices.Equal(wanted, dimensionsOf(shownDimensions(q)))
	}}) {
		out.MetricAlarms = append(out.MetricAlarms, s.shown(a))
	}
	return out, nil
}

// shown is an alarm as users see it.
func (s service) shown(a alarm.Alarm) types.MetricAlarm {
	v, status := a.Alarm, a.Status
	actions := func(state kurabe.AlarmState) []string { return append([]string{}, v.Actions[state]...) }
	out := types.MetricAlarm{
		AlarmName: &v.Name, AlarmArn: aws.String(s.alarms().ARN(v.Name)), AlarmConfigurationUpdatedTimestamp: &v.UpdatedAt, ActionsEnabled: aws.Bool(!v.Muted),
		OKActions: actions(kurabe.AlarmOK), AlarmActions: actions(kurabe.AlarmAlarm), InsufficientDataActions: actions(kurabe.AlarmInsufficientData),
		StateValue: types.StateValue(status.State), StateReason: &status.Reason, StateUpdatedTimestamp: &status.UpdatedAt, StateTransitionedTimestamp: &status.TransitionedAt,
		EvaluationPeriods: aws.Int32(int32(v.EvaluationPeriods)), Threshold: &v.Threshold, ComparisonOperator: types.ComparisonOperator(v.Comparison),
		AlarmDescription: given(v.Description), StateReasonData: given(status.ReasonData), TreatMissingData: given(string(v.MissingData)),
		EvaluateLowSampleCountPercentile: given(v.LowSamples), Dimensions: []types.Dimension{},
	}
	if v.DatapointsToAlarm > 0 {
		out.DatapointsToAlarm = aws.Int32(int32(v.DatapointsToAlarm))
	}
	if v.Math() {
		out.Metrics = dataQueries(v, "")
		return out
	}
	q := v.Queries[0]
	out.MetricName, out.Namespace, out.Dimensions, out.Unit = &q.Name, &q.Namespace, shownDimensions(q), types.StandardUnit(q.Unit)
	out.Period = aws.Int32(int32(v.Period))
	if stat, _ := parseStatistic(q.Stat); stat.distinct() {
		out.ExtendedStatistic = &q.Stat
	} else {
		out.Statistic = types.Statistic(q.Stat)
	}
	return out
}

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (s service) describeAlarmHistory(_ context.Context, in *cloudwatch.DescribeAlarmHistoryInput) (*cloudwatch.DescribeAlarmHistoryOutput, error) {
	wanted, err := wantsMetricAlarms(in.AlarmTypes)
	switch {
	case err != nil:
		return nil, err
	case in.AlarmContributorId != nil:
		return nil, validation("The parameter AlarmContributorId is not supported: alarms watch one time series.")
	}
	if err := errors.Join(oneOf("HistoryItemType", kurabe.AlarmHistoryKind(in.HistoryItemType), kurabe.AlarmHistoryKinds, ""), oneOf("ScanBy", in.ScanBy, in.ScanBy.Values(), "")); err != nil {
		return nil, err
	}
	var list []kurabe.AlarmEntry
	if wanted {
		list = s.alarms().History(alarm.HistoryFilter{
			Alarm: aws.ToString(in.AlarmName), Kind: kurabe.AlarmHistoryKind(in.HistoryItemType), From: aws.ToTime(in.StartDate), To: aws.ToTime(in.EndDate),
		})
	}
	key := func(e kurabe.AlarmEntry) string { return e.Seq }
	if in.ScanBy != types.ScanByTimestampAscending {
		slices.Reverse(list)
		key = func(e kurabe.AlarmEntry) string { return backwards(e.Seq) }
	}
	page, next, err := pageOfAlarms(list, key, in.NextToken, in.MaxRecords, maxAlarmRecords)
	if err != nil {
		return nil, err
	}
	out := &cloudwatch.DescribeAlarmHistoryOutput{AlarmHistoryItems: []types.AlarmHistoryItem{}, NextToken: next}
	for _, e := range page {
		out.AlarmHistoryItems = append(out.AlarmHistoryItems, types.AlarmHistoryItem{
			AlarmName: aws.String(e.Alarm), AlarmType: types.AlarmTypeMetricAlarm, Timestamp: aws.Time(e.At), HistoryItemType: types.HistoryItemType(e.Kind),
			HistorySummary: aws.String(e.Summary), HistoryData: aws.String(e.Data),
		})
	}
	return out, nil
}

// backwards makes a text of digits and letters that sorts the other way.
func backwards(text string) string {
	return strings.Map(func(r rune) rune { return '~' - r + ' ' }, text)
}

func (s service) setAlarmState(ctx context.Context, in *cloudwatch.SetAlarmStateInput) (*cloudwatch.SetAlarmStateOutput, error) {
	v := evaluating.Verdict{State: kurabe.AlarmState(in.StateValue), Reason: *in.StateReason, Data: aws.ToString(in.StateReasonData)}
	if err := oneOf("StateValue", v.State, kurabe.AlarmStates, ""); err != nil {
		return nil, err
	}
	switch {
	case len([]rune(v.Reason)) > maxStateReason:
		return nil, validation("The parameter StateReason must not be longer than %d characters.", maxStateReason)
	case len([]rune(v.Data)) > maxReasonData:
		return nil, validation("The parameter StateReasonData must not be longer than %d characters.", maxReasonData)
	case v.Data != "" && !json.Valid([]byte(v.Data)):
		return nil, fault.New(http.StatusBadRequest, "InvalidFormat", "TimestampFormat or JSON of StateReasonData is invalid")
	}
	return &cloudwatch.SetAlarmStateOutput{}, s.alarms().SetState(ctx, *in.AlarmName, v)
}

func (s service) enableAlarmActions(ctx context.Context, in *cloudwatch.EnableAlarmActionsInput) (*cloudwatch.EnableAlarmActionsOutput, error) {
	return &cloudwatch.EnableAlarmActionsOutput{}, s.mute(ctx, in.AlarmNames, false)
}

func (s service) disableAlarmActions(ctx context.Context, in *cloudwatch.DisableAlarmActionsInput) (*cloudwatch.DisableAlarmActionsOutput, error) {
	return &cloudwatch.DisableAlarmActionsOutput{}, s.mute(ctx, in.AlarmNames, true)
}

func (s service) mute(ctx context.Context, names []string, muted bool) error {
	if err := checkNames(names); err != nil {
		return err
	}
	return s.alarms().Mute(ctx, names, muted)
}

func checkNames(names []string) error {
	if len(names) > maxAlarmNames {
		return validation("The collection AlarmNames must not have a size greater than %d.", maxAlarmNames)
	}
	return nil
}

func (s service) deleteAlarms(ctx context.Context, in *cloudwatch.DeleteAlarmsInput) (*cloudwatch.DeleteAlarmsOutput, error) {
	if err := checkNames(in.AlarmNames); err != nil {
		return nil, err
	}
	return &cloudwatch.DeleteAlarmsOutput{}, s.alarms().Delete(ctx, in.AlarmNames)
}

func (s service) listTagsForResource(_ context.Context, in *cloudwatch.ListTagsForResourceInput) (*cloudwatch.ListTagsForResourceOutput, error) {
	tags, err := s.alarms().Tags(*in.ResourceARN)
	out := &cloudwatch.ListTagsForResourceOutput{Tags: []types.Tag{}}
	for _, t := range tags {
		out.Tags = append(out.Tags, types.Tag{Key: aws.String(t.Key), Value: aws.String(t.Value)})
	}
	return out, ofTags(err)
}

func (s service) tagResource(ctx context.Context, in *cloudwatch.TagResourceInput) (*cloudwatch.TagResourceOutput, error) {
	var tags []kurabe.Tag
	for _, t := range in.Tags {
		tags = append(tags, kurabe.Tag{Key: aws.ToString(t.Key), Value: aws.ToString(t.Value)})
	}
	if err := kurabe.CheckTags(tags); err != nil {
		return nil, err
	}
	return &cloudwatch.TagResourceOutput{}, ofTags(s.alarms().EditTags(ctx, *in.ResourceARN, func(have []kurabe.Tag) []kurabe.Tag { return kurabe.WithTags(have, tags) }))
}

func (s service) untagResource(ctx context.Context, in *cloudwatch.UntagResourceInput) (*cloudwatch.UntagResourceOutput, error) {
	return &cloudwatch.UntagResourceOutput{}, ofTags(s.alarms().EditTags(ctx, *in.ResourceARN, func(have []kurabe.Tag) []kurabe.Tag {
		return slices.DeleteFunc(have, func(t kurabe.Tag) bool { return slices.Contains(in.TagKeys, t.Key) })
	}))
}

// ofTags is an error of the actions on tags, which call an absent alarm by another code.
func ofTags(err error) error {
	if kurabe.CodeOf(err) == kurabe.CodeResourceNotFound {
		return fault.New(http.StatusNotFound, "ResourceNotFoundException", "%s", err.Error())
	}
	return err
}
