package kurabe

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// AlarmState says whether what an alarm watches is within its threshold.
type AlarmState string

// The states.
const (
	AlarmOK               AlarmState = "OK"
	AlarmAlarm            AlarmState = "ALARM"
	AlarmInsufficientData AlarmState = "INSUFFICIENT_DATA"
)

// AlarmStates are all states.
var AlarmStates = []AlarmState{AlarmOK, AlarmAlarm, AlarmInsufficientData}

// AlarmCreated is the reason of the state that a new alarm has.
const AlarmCreated = "Unchecked: Initial alarm creation"

// Comparison is how a data point that crosses the threshold compares to it.
type Comparison string

// The comparisons, by CloudWatch's names.
const (
	GreaterOrEqual Comparison = "GreaterThanOrEqualToThreshold"
	Greater        Comparison = "GreaterThanThreshold"
	Less           Comparison = "LessThanThreshold"
	LessOrEqual    Comparison = "LessThanOrEqualToThreshold"
)

// Comparisons are all comparisons.
var Comparisons = []Comparison{GreaterOrEqual, Greater, Less, LessOrEqual}

// Holds says whether a value crosses a threshold.
func (c Comparison) Holds(value, threshold float64) bool {
	switch c {
	case GreaterOrEqual:
		return value >= threshold
	case Greater:
		return value > threshold
	case Less:
		return value < threshold
	}
	return value <= threshold
}

// MissingData is what an alarm takes a data point for that is not there.
type MissingData string

// The treatments, by CloudWatch's names; "" is MissingIsMissing.
const (
	MissingIsMissing      MissingData = "missing"
	MissingIsIgnored      MissingData = "ignore"
	MissingIsBreaching    MissingData = "breaching"
	MissingIsNotBreaching MissingData = "notBreaching"
)

// MissingDatas are all treatments.
var MissingDatas = []MissingData{MissingIsMissing, MissingIsIgnored, MissingIsBreaching, MissingIsNotBreaching}

// What an alarm does with a percentile of few samples, by CloudWatch's names.
const (
	LowSamplesEvaluate = "evaluate"
	LowSamplesIgnore   = "ignore"
)

// MetricDimension is a name and a value by which metrics of one name are told apart.
type MetricDimension struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// MetricQuery is a statistic of a metric, or an expression over other queries.
type MetricQuery struct {
	ID         string            `json:"id,omitempty"` // by which expressions name it
	Label      string            `json:"label,omitempty"`
	Expression string            `json:"expression,omitempty"` // or, with Stat:
	Namespace  string            `json:"namespace,omitempty"`
	Name       string            `json:"name,omitempty"`
	Dimensions []MetricDimension `json:"dimensions,omitempty"`
	Stat       string            `json:"stat,omitempty"`
	Unit       string            `json:"unit,omitempty"`
	Period     int64             `json:"period,omitempty"` // seconds
}

// Alarm is the wish of a user to be told of a metric that crosses a threshold.
type Alarm struct {
	Name        string `json:"name"` // any text of 1 to 255 characters
	Description string `json:"description,omitempty"`
	// Queries is the metric alone, without ID, or all that the expression needs.
	Queries []MetricQuery `json:"queries"`
	// Watched is the place of the query in Queries whose data points are compared.
	Watched int `json:"watched,omitempty"`
	// Period is that of all queries, in seconds.
	Period            int64       `json:"period"`
	EvaluationPeriods int         `json:"evaluationPeriods"`
	DatapointsToAlarm int         `json:"datapointsToAlarm,omitempty"` // 0: EvaluationPeriods
	Comparison        Comparison  `json:"comparison"`
	Threshold         float64     `json:"threshold"`
	MissingData       MissingData `json:"missingData,omitempty"`
	LowSamples        string      `json:"lowSamples,omitempty"`
	// Actions are the ARNs of the topics that are told when the alarm comes into a state.
	Actions map[AlarmState][]string `json:"actions,omitempty"`
	// Muted: nobody is told.
	Muted     bool      `json:"muted,omitempty"`
	Tags      []Tag     `json:"tags,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"` // of all but tags
}

// Math says whether the alarm was asked for with a list of queries.
func (a Alarm) Math() bool { return a.Queries[0].ID != "" }

// ToAlarm is how many of the data points must cross the threshold.
func (a Alarm) ToAlarm() int {
	if a.DatapointsToAlarm == 0 {
		return a.EvaluationPeriods
	}
	return a.DatapointsToAlarm
}

// AlarmKey is what stands for the name of an alarm where only a plain word can.
func AlarmKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// AlarmStatus is the state of an alarm, written by the elected server, and by the API where a
// user sets it.
type AlarmStatus struct {
	Name       string     `json:"name"`
	State      AlarmState `json:"state"`
	Reason     string     `json:"reason"`
	ReasonData string     `json:"reasonData,omitempty"` // JSON
	UpdatedAt  time.Time  `json:"updatedAt"`
	// TransitionedAt is when the state was another one before.
	TransitionedAt time.Time `json:"transitionedAt"`
}

// AlarmHistoryKind is what an entry of the history tells of.
type AlarmHistoryKind string

// The kinds, by CloudWatch's names.
const (
	AlarmConfigured AlarmHistoryKind = "ConfigurationUpdate"
	AlarmUpdated    AlarmHistoryKind = "StateUpdate"
	AlarmAction     AlarmHistoryKind = "Action"
)

// AlarmHistoryKinds are all kinds.
var AlarmHistoryKinds = []AlarmHistoryKind{AlarmConfigured, AlarmUpdated, AlarmAction}

// AlarmEntry is an entry of the history of an alarm, which outlives it.
type AlarmEntry struct {
	Seq     string           `json:"seq"` // orders entries; set by the store
	Alarm   string           `json:"alarm"`
	At      time.Time        `json:"at"`
	Kind    AlarmHistoryKind `json:"kind"`
	Summary string           `json:"summary"`
	Data    string           `json:"data"` // JSON
}
