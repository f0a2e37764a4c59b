//go:build integration

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"kurabe/internal/harness"
)

// alarmTime bounds a change of state, an election on a busy machine included.
const alarmTime = 4 * time.Minute

const alarmTopic = "arn:aws:sns:us-east-1:000000000000:pages"

// highAbove is an alarm on a user's own metric of that name, which is told in both states.
func highAbove(t *testing.T, s *harness.Service, name string) {
	t.Helper()
	if _, err := monitoring(s).PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName: &name, Namespace: aws.String("mine"), MetricName: &name, Statistic: types.StatisticMaximum, Period: aws.Int32(10), EvaluationPeriods: aws.Int32(1),
		Threshold: aws.Float64(0.5), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold, TreatMissingData: aws.String("ignore"),
		AlarmActions: []string{alarmTopic}, OKActions: []string{alarmTopic},
	}); err != nil {
		t.Fatal(err)
	}
}

// measuring puts a metric to all servers, each second, until it is stopped. Each keeps its own.
func measuring(t *testing.T, servers []*harness.Service, name string, value *atomic.Int64) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	for _, s := range servers {
		run.Go(func() {
			for ticker := time.NewTicker(time.Second); ctx.Err() == nil; <-ticker.C {
				// One that is away takes nothing.
				_, _ = monitoring(s).PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: aws.String("mine"), MetricData: []types.MetricDatum{
					{MetricName: &name, Value: aws.Float64(float64(value.Load())), StorageResolution: aws.Int32(1)},
				}})
			}
		})
	}
	return func() { cancel(); run.Wait() }
}

// waitAlarm waits until a server tells a state of an alarm.
func waitAlarm(t *testing.T, s *harness.Service, name string, want types.StateValue) {
	t.Helper()
	harness.Wait(t, alarmTime, fmt.Sprintf("alarm %s is %s", name, want), func() string {
		out, err := monitoring(s).DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}})
		switch {
		case err != nil:
			return err.Error()
		case len(out.MetricAlarms) != 1:
			return "it is not there"
		case out.MetricAlarms[0].StateValue != want:
			return fmt.Sprint(out.MetricAlarms[0].StateValue, *out.MetricAlarms[0].StateReason)
		}
		return ""
	})
}

// alarmHistory lists the changes of state of an alarm and how often each was told, oldest first.
func alarmHistory(t *testing.T, s *harness.Service, name string) (list []string) {
	t.Helper()
	out, err := monitoring(s).DescribeAlarmHistory(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{AlarmName: &name, ScanBy: types.ScanByTimestampAscending})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range out.AlarmHistoryItems {
		switch i.HistoryItemType {
		case types.HistoryItemTypeStateUpdate:
			list = append(list, strings.TrimPrefix(*i.HistorySummary, "Alarm updated from "))
		case types.HistoryItemTypeAction:
			list = append(list, "told")
		}
	}
	return list
}

// TestAlarmIsToldOnce kills the elected one of three servers around each change of a metric: every
// change of the alarm's state is in the history once, and told once.
func TestAlarmIsToldOnce(t *testing.T) {
	needRoot(t)
	b := newServersBed(t, 3)
	const name, changes = "high", 4
	highAbove(t, b.servers[0], name)
	var value atomic.Int64
	stop := measuring(t, b.servers, name, &value)
	defer stop()
	waitAlarm(t, b.servers[0], name, types.StateValueOk)
	want := []string{"INSUFFICIENT_DATA to OK", "told"}
	asked := 0
	for n := range changes {
		state, change := types.StateValueAlarm, "OK to ALARM"
		if n%2 == 1 {
			state, change = types.StateValueOk, "ALARM to OK"
		}
		killed := b.planner(t, asked)
		value.Store(int64((n + 1) % 2))
		time.Sleep(rand.N(20 * time.Second)) // somewhere before, in or after the evaluation
		b.servers[killed].Kill(t)
		asked = (killed + 1) % 3
		waitAlarm(t, b.servers[asked], name, state)
		b.servers[killed].Start(t)
		b.waitServer(t, killed, asked, "ready")
		want = append(want, change, "told")
	}
	for i, s := range b.servers {
		if got := alarmHistory(t, s, name); strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("server %d: %s; want %s", i, strings.Join(got, ", "), strings.Join(want, ", "))
		}
	}
}
