package control

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/control/eventsub"
	"kurabe/internal/control/parameter"
	"kurabe/internal/control/scope"
	"kurabe/internal/event"
)

// sourceTypes are RDS's; those without event.Categories have no events here.
var sourceTypes = []string{
	event.Instance, event.ParameterGroup, event.Snapshot, "db-security-group", event.Cluster, event.ClusterSnapshot,
	"custom-engine-version", event.Proxy, "blue-green-deployment", "db-shard-group", "zero-etl", event.Topic,
}

// Bounds of the time that DescribeEvents looks back.
const (
	defaultEventSpan = time.Hour
	maxEventSpan     = 14 * 24 * time.Hour // events are not kept longer
)

// EventFilter narrows the history; zero fields match everything.
type EventFilter struct {
	SourceType string
	Source     string // name of the source now; needs SourceType
	Categories []string
	From, To   time.Time
	Span       time.Duration // back from now or To, or on from From; an hour when 0
}

// Events lists what happened, oldest first. An instance's events are found by its
// name of today, whatever it was called then, and show that name; those of an
// instance that is gone by its last one.
func (c *Control) Events(f EventFilter) ([]kurabe.Event, error) {
	if err := checkSourceType(f.SourceType); err != nil {
		return nil, err
	}
	if f.Source != "" && f.SourceType == "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Cannot specify source identifier without source type")
	}
	from, to, err := f.span(c.Now())
	if err != nil {
		return nil, err
	}
	source, names := strings.ToLower(f.Source), c.eventNames(from)
	var list []kurabe.Event
	for _, e := range c.View.Events(from, to) {
		if name, ok := names[e.SourceID]; ok {
			e.Source = name
		}
		if (f.SourceType == "" || f.SourceType == e.SourceType) && (source == "" || source == e.Source) && matchesCategory(f.Categories, e.Categories) {
			list = append(list, e)
		}
	}
	return list, nil
}

// eventNames has the name to show for each resource id of the events from a time
// on: that of today, or the last one of an instance that is gone.
func (c *Control) eventNames(from time.Time) map[string]string {
	names := map[string]string{}
	for _, e := range c.View.Events(from, c.Now().Add(time.Hour)) {
		if e.SourceID != "" {
			names[e.SourceID] = e.Source
		}
	}
	for _, i := range c.View.Instances() {
		names[string(i.ID)] = i.Name()
	}
	for _, p := range c.View.Proxies() {
		names[string(p.ID)] = p.Spec.Name
	}
	return names
}

// EventCategories are the categories of the sources of a type, "" for all types.
func EventCategories(sourceType string) ([]event.SourceCategories, error) {
	if err := checkSourceType(sourceType); err != nil || sourceType == "" {
		return event.Categories, err
	}
	return slices.DeleteFunc(slices.Clone(event.Categories), func(c event.SourceCategories) bool { return c.SourceType != sourceType }), nil
}

// checkSourceType refuses what RDS has no source type for; "" is none given.
func checkSourceType(name string) error {
	if name != "" && !slices.Contains(sourceTypes, name) {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid source type: %s; valid are %s", name, strings.Join(sourceTypes, ", "))
	}
	return nil
}

// span makes the half-open time that a filter means.
func (f EventFilter) span(now time.Time) (from, to time.Time, err error) {
	if f.Span < 0 || f.Span > maxEventSpan {
		return from, to, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Duration must be from 1 to %d minutes", int(maxEventSpan/time.Minute))
	}
	if !f.From.IsZero() && !f.To.IsZero() && f.Span != 0 {
		return from, to, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Duration cannot be given together with StartTime and EndTime")
	}
	span := f.Span
	if span == 0 {
		span = defaultEventSpan
	}
	from, to = f.From, f.To
	switch {
	case from.IsZero() && to.IsZero():
		from = now.Add(-span)
	case from.IsZero():
		from = to.Add(-span)
	case to.IsZero() && f.Span != 0:
		to = from.Add(span)
	}
	if to.IsZero() {
		// Another host's clock may be ahead of ours; what it wrote has happened.
		to = now.Add(time.Hour)
	}
	if !from.Before(to) {
		return from, to, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "The specified start date must be before the end date")
	}
	return from, to, nil
}

func matchesCategory(wanted, have []string) bool {
	return len(wanted) == 0 || slices.ContainsFunc(have, func(category string) bool { return scope.HasFold(wanted, category) })
}

// sourceExists says whether there is a source of events of a type with a name.
func (c *Control) sourceExists(sourceType, name string) bool {
	of, clusters := c.of(false), c.Clusters()
	var err error
	switch sourceType {
	case event.Instance:
		_, err = of.Instance(name)
	case event.Cluster:
		_, err = clusters.Instance(name)
	case event.Snapshot:
		_, err = of.findSnapshot(name)
	case event.ClusterSnapshot:
		_, err = clusters.findSnapshot(name)
	case event.Proxy:
		_, err = c.Proxy(name)
	case event.ParameterGroup:
		if _, err = of.ParameterGroup(name); err != nil {
			_, err = clusters.ParameterGroup(name)
		}
	default:
		return false
	}
	return err == nil
}

// EventDispatcher queues events for the topics of their subscriptions.
func (c *Control) EventDispatcher(log *slog.Logger) *eventsub.Dispatcher {
	return &eventsub.Dispatcher{Scope: c.Scope, Log: log, Source: func(e kurabe.Event) (string, []kurabe.Tag) {
		arn := c.SourceARN(e)
		tags, _ := c.Tags(arn) // of a source that is gone there are none
		return arn, tags
	}}
}

// SourceARN is the ARN of an event's source, "" when it has none.
func (c *Control) SourceARN(e kurabe.Event) string {
	switch e.SourceType {
	case event.Instance:
		return c.ARN("db", e.Source)
	case event.ParameterGroup:
		if strings.HasPrefix(e.SourceID, parameter.ClusterSource) {
			return c.ARN("cluster-pg", e.Source)
		}
		return c.ARN("pg", e.Source)
	case event.Snapshot:
		return c.ARN("snapshot", e.Source)
	case event.Proxy:
		return c.ARN("db-proxy", e.SourceID)
	case event.Cluster:
		return c.ARN("cluster", e.Source)
	case event.ClusterSnapshot:
		return c.ARN("cluster-snapshot", e.Source)
	}
	return ""
}
