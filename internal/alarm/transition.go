package alarm

import (
	"encoding/json"
	"fmt"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

// Place is the account and region of the alarms, as messages and ARNs name them.
type Place struct{ Region, Account string }

// ARN is that of an alarm.
func (p Place) ARN(name string) string {
	return "arn:aws:cloudwatch:" + p.Region + ":" + p.Account + ":alarm:" + name
}

// Enter writes that an alarm comes into a state: the state, and, when it was another one before,
// the entry of the history and the notifications. The change compares the alarm and its state
// with what was read.
func (p Place) Enter(change *store.Change, view *store.View, a store.Alarm, v Verdict, now time.Time) *store.Change {
	old := a.Status.Value
	status := kurabe.AlarmStatus{Name: a.Value.Name, State: v.State, Reason: v.Reason, ReasonData: v.Data, UpdatedAt: now.UTC(), TransitionedAt: old.TransitionedAt}
	change.RequireAlarm(a.Value.Name, a.ModRevision)
	if v.State == old.State {
		return change.PutAlarmStatus(status, a.Status.ModRevision)
	}
	status.TransitionedAt = status.UpdatedAt
	change.PutAlarmStatus(status, a.Status.ModRevision).AddAlarmEntry(kurabe.AlarmEntry{
		Alarm: a.Value.Name, At: status.UpdatedAt, Kind: kurabe.AlarmUpdated,
		Summary: fmt.Sprintf("Alarm updated from %s to %s", old.State, v.State),
		Data:    asJSON(stateUpdate{"1.0", stateOf(old), stateOf(status)}),
	})
	if a.Value.Muted {
		return change
	}
	text := p.message(a.Value, old.State, v, now)
	for _, topic := range a.Value.Actions[v.State] {
		data := action{ActionState: "Succeeded", At: status.UpdatedAt.UnixMilli(), Resource: topic, Message: optional(asJSON(map[string]string{"default": text}))}
		summary := "Successfully executed action " + topic
		if _, there := view.TopicByARN(topic); !there {
			data.ActionState, data.Message, data.Error = "Failed", nil, optional("Resource "+topic+" not found")
			summary = fmt.Sprintf("Failed to execute action %s. Received error: \"%s\"", topic, *data.Error)
		}
		change.NotifyOrCount(view, kurabe.Notification{TopicARN: topic, Subject: p.subject(a.Value.Name, v.State), Message: text, Time: status.UpdatedAt})
		change.AddAlarmEntry(kurabe.AlarmEntry{Alarm: a.Value.Name, At: status.UpdatedAt, Kind: kurabe.AlarmAction, Summary: summary, Data: asJSON(data)})
	}
	return change
}

type stateUpdate struct {
	Version string `json:"version"`
	Old     state  `json:"oldState"`
	New     state  `json:"newState"`
}

type state struct {
	Value  kurabe.AlarmState `json:"stateValue"`
	Reason string            `json:"stateReason"`
	Data   json.RawMessage   `json:"stateReasonData,omitempty"`
}

func stateOf(s kurabe.AlarmStatus) state {
	one := state{Value: s.State, Reason: s.Reason}
	if json.Valid([]byte(s.ReasonData)) {
		one.Data = json.RawMessage(s.ReasonData)
	}
	return one
}

// action is what the history has of a notification.
type action struct {
	ActionState string  `json:"actionState"`
	At          int64   `json:"stateUpdateTimestamp"` // ms
	Resource    string  `json:"notificationResource"`
	Message     *string `json:"publishedMessage"`
	Error       *string `json:"error"`
}

// Configured is the entry of the history that an alarm was created, updated or deleted: what
// names which, as in "created".
func (p Place) Configured(what string, a store.Alarm, now time.Time) kurabe.AlarmEntry {
	verb := map[string]string{"created": "Create", "updated": "Update", "deleted": "Delete"}[what]
	return kurabe.AlarmEntry{
		Alarm: a.Value.Name, At: now.UTC(), Kind: kurabe.AlarmConfigured, Summary: fmt.Sprintf("Alarm %q %s", a.Value.Name, what),
		Data: asJSON(map[string]any{"version": "1.0", "type": verb, what + "Alarm": p.configuration(a)}),
	}
}

// configuration is an alarm as CloudWatch's history writes it.
func (p Place) configuration(a store.Alarm) map[string]any {
	actions := func(s kurabe.AlarmState) []string { return append([]string{}, a.Value.Actions[s]...) }
	out := map[string]any{
		"alarmName": a.Value.Name, "alarmArn": p.ARN(a.Value.Name), "actionsEnabled": !a.Value.Muted,
		"okactions": actions(kurabe.AlarmOK), "alarmActions": actions(kurabe.AlarmAlarm), "insufficientDataActions": actions(kurabe.AlarmInsufficientData),
		"evaluationPeriods": a.Value.EvaluationPeriods, "threshold": number(a.Value.Threshold), "comparisonOperator": a.Value.Comparison,
		"alarmConfigurationUpdatedTimestamp": moment(a.Value.UpdatedAt),
		"stateValue":                         a.Status.Value.State, "stateUpdatedTimestamp": moment(a.Status.Value.UpdatedAt),
	}
	optionally := func(key string, value any, has bool) {
		if has {
			out[key] = value
		}
	}
	optionally("alarmDescription", a.Value.Description, a.Value.Description != "")
	optionally("datapointsToAlarm", a.Value.DatapointsToAlarm, a.Value.DatapointsToAlarm > 0)
	optionally("treatMissingData", a.Value.MissingData, a.Value.MissingData != "")
	optionally("evaluateLowSampleCountPercentile", a.Value.LowSamples, a.Value.LowSamples != "")
	t := triggerOf(a.Value)
	if a.Value.Math() {
		out["metrics"] = t.Metrics
		return out
	}
	q := a.Value.Queries[0]
	out["namespace"], out["metricName"], out["dimensions"], out["period"] = q.Namespace, q.Name, t.Dimensions, a.Value.Period
	optionally("statistic", q.Stat, t.Statistic != "")
	optionally("extendedStatistic", q.Stat, t.Statistic == "")
	optionally("unit", q.Unit, q.Unit != "")
	return out
}
