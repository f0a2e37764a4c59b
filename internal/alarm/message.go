package alarm

import (
	"cmp"
	"strings"
	"time"

	"kurabe"
)

// subjectMax is SNS's bound, in characters.
const subjectMax = 100

// regions are AWS's names of its regions, which messages about alarms have.
var regions = map[string]string{
	"us-east-1": "US East (N. Virginia)", "us-east-2": "US East (Ohio)", "us-west-1": "US West (N. California)", "us-west-2": "US West (Oregon)",
	"af-south-1": "Africa (Cape Town)", "ap-east-1": "Asia Pacific (Hong Kong)", "ap-south-1": "Asia Pacific (Mumbai)", "ap-south-2": "Asia Pacific (Hyderabad)",
	"ap-southeast-1": "Asia Pacific (Singapore)", "ap-southeast-2": "Asia Pacific (Sydney)", "ap-southeast-3": "Asia Pacific (Jakarta)", "ap-southeast-4": "Asia Pacific (Melbourne)",
	"ap-northeast-1": "Asia Pacific (Tokyo)", "ap-northeast-2": "Asia Pacific (Seoul)", "ap-northeast-3": "Asia Pacific (Osaka)",
	"ca-central-1": "Canada (Central)", "ca-west-1": "Canada West (Calgary)", "eu-central-1": "EU (Frankfurt)", "eu-central-2": "Europe (Zurich)",
	"eu-west-1": "EU (Ireland)", "eu-west-2": "EU (London)", "eu-west-3": "EU (Paris)", "eu-north-1": "EU (Stockholm)", "eu-south-1": "EU (Milan)", "eu-south-2": "Europe (Spain)",
	"il-central-1": "Israel (Tel Aviv)", "me-central-1": "Middle East (UAE)", "me-south-1": "Middle East (Bahrain)", "sa-east-1": "South America (Sao Paulo)",
}

func (p Place) regionName() string { return cmp.Or(regions[p.Region], p.Region) }

// subject is that of a message; the name is cut where it is too long, and loses what a subject
// cannot have.
func (p Place) subject(name string, state kurabe.AlarmState) string {
	name = strings.Map(func(r rune) rune {
		if r > '~' {
			return '?'
		}
		return r
	}, name)
	before, after := string(state)+": \"", "\" in "+p.regionName()
	if room := subjectMax - len(before) - len(after); len(name) > room {
		name = name[:max(room-3, 0)] + "..."
	}
	return before + name + after
}

// message is what topics are told, with the members of CloudWatch's and in their order.
type message struct {
	AlarmName        string
	AlarmDescription *string
	Account          string `json:"AWSAccountId"`
	UpdatedAt        string `json:"AlarmConfigurationUpdatedTimestamp"`
	NewStateValue    kurabe.AlarmState
	NewStateReason   string
	StateChangeTime  string
	Region           string
	AlarmArn         string
	OldStateValue    kurabe.AlarmState

	OKActions, AlarmActions, InsufficientDataActions []string

	Trigger trigger
}

type trigger struct {
	*single

	Period                           int64
	EvaluationPeriods                int
	DatapointsToAlarm                int `json:",omitempty"`
	ComparisonOperator               kurabe.Comparison
	Threshold                        number
	TreatMissingData                 kurabe.MissingData
	EvaluateLowSampleCountPercentile string
	Metrics                          []metric `json:",omitempty"`
}

// single is the metric of an alarm of one.
type single struct {
	MetricName, Namespace string
	StatisticType         string
	Statistic             string `json:",omitempty"`
	ExtendedStatistic     string `json:",omitempty"`
	Unit                  *string
	Dimensions            []dimension
}

type dimension struct {
	Value string `json:"value"`
	Name  string `json:"name"`
}

// metric is a query of an alarm of several.
type metric struct {
	Expression string `json:",omitempty"`
	ID         string `json:"Id"`
	Label      string `json:",omitempty"`
	MetricStat *metricStat
	ReturnData bool
}

type metricStat struct {
	Metric struct {
		Dimensions            []dimension
		MetricName, Namespace string
	}
	Period int64
	Stat   string
	Unit   string `json:",omitempty"`
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func dimensionsOf(q kurabe.MetricQuery) []dimension {
	list := []dimension{}
	for _, d := range q.Dimensions {
		list = append(list, dimension{d.Value, d.Name})
	}
	return list
}

// statistics are CloudWatch's words in messages.
var statistics = map[string]string{"Average": "AVERAGE", "Sum": "SUM", "Minimum": "MINIMUM", "Maximum": "MAXIMUM", "SampleCount": "SAMPLE_COUNT"}

func triggerOf(a kurabe.Alarm) trigger {
	t := trigger{
		Period: a.Period, EvaluationPeriods: a.EvaluationPeriods, DatapointsToAlarm: a.DatapointsToAlarm, ComparisonOperator: a.Comparison,
		Threshold: number(a.Threshold), TreatMissingData: a.MissingData, EvaluateLowSampleCountPercentile: a.LowSamples,
	}
	if !a.Math() {
		q := a.Queries[0]
		t.single = &single{MetricName: q.Name, Namespace: q.Namespace, Unit: optional(q.Unit), Dimensions: dimensionsOf(q)}
		if t.Statistic = statistics[q.Stat]; t.Statistic != "" {
			t.StatisticType = "Statistic"
		} else {
			t.StatisticType, t.ExtendedStatistic = "ExtendedStatistic", q.Stat
		}
		return t
	}
	for n, q := range a.Queries {
		one := metric{Expression: q.Expression, ID: q.ID, Label: q.Label, ReturnData: n == a.Watched}
		if q.Expression == "" {
			one.MetricStat = &metricStat{Period: q.Period, Stat: q.Stat, Unit: q.Unit}
			one.MetricStat.Metric.Dimensions, one.MetricStat.Metric.MetricName, one.MetricStat.Metric.Namespace = dimensionsOf(q), q.Name, q.Namespace
		}
		t.Metrics = append(t.Metrics, one)
	}
	return t
}

// message tells of a transition.
func (p Place) message(a kurabe.Alarm, old kurabe.AlarmState, v Verdict, now time.Time) string {
	actions := func(s kurabe.AlarmState) []string { return append([]string{}, a.Actions[s]...) }
	return asJSON(message{
		AlarmName: a.Name, AlarmDescription: optional(a.Description), Account: p.Account, UpdatedAt: moment(a.UpdatedAt),
		NewStateValue: v.State, NewStateReason: v.Reason, StateChangeTime: moment(now), Region: p.regionName(), AlarmArn: p.ARN(a.Name), OldStateValue: old,
		OKActions: actions(kurabe.AlarmOK), AlarmActions: actions(kurabe.AlarmAlarm), InsufficientDataActions: actions(kurabe.AlarmInsufficientData),
		Trigger: triggerOf(a),
	})
}
