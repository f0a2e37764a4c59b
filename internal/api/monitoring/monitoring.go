package monitoring

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/shape"
	"kurabe/internal/control"
	"kurabe/internal/metrics/series"
)

// target is the name of the service in the newer protocols.
const target = "GraniteServiceVersion20100801"

// Source has the series of all hosts.
type Source interface {
	// Query answers each query with the results that have samples, but for those of hosts that are
	// away.
	Query(ctx context.Context, queries []series.Query) (answers [][]series.Result, away []kurabe.HostID, err error)
	// List returns the labels of the series that match and have samples since then.
	List(ctx context.Context, match []series.Match, since time.Time) ([]series.Labels, error)
	// Put keeps what users measured.
	Put(ctx context.Context, data []series.Datum) error
}

type service struct {
	c      *control.Control
	source Source
}

// API returns the service.
func API(c *control.Control, source Source) api.Service {
	s := service{c, source}
	m := shape.Monitoring
	return api.Service{
		Name:      m.Service,
		Protocols: []api.Protocol{api.CBOR{Service: target, Model: m}, api.JSON{Target: target, Version: "1.0", Model: m}, api.Query{Model: m}},
		Ops: api.Table(append(s.alarmRows(),
			api.Read("GetMetricData", s.getMetricData),
			api.Read("GetMetricStatistics", s.getMetricStatistics),
			api.Read("ListMetrics", s.listMetrics),
			api.Write("PutMetricData", s.putMetricData),
		)...),
		Errors:     api.Errors{kurabe.CodeResourceNotFound: {Code: "ResourceNotFound", Status: http.StatusNotFound}},
		NotOffered: whyNot,
	}
}

// reasons are why actions are not offered, by a part of their names; the first one that fits.
var reasons = []struct{ part, reason string }{
	{"MetricWidgetImage", "charts are drawn by clients: GetMetricData has the numbers"},
	{"MetricStream", "metrics are asked for, not streamed"},
	{"CompositeAlarm", "alarms watch metrics, not other alarms: metric math joins several conditions"},
	{"AlarmMuteRule", "alarms are silenced by DisableAlarmActions, not by schedules"},
	{"AlarmContributors", "alarms watch one time series, which has no contributors"},
	{"Dashboard", "there are no dashboards: Grafana and others show these metrics"},
	{"Insight", "there are no contributor insights"},
	{"Anomaly", "there is no anomaly detection"},
	{"OTel", "there is no enrichment of OpenTelemetry's metrics"},
}

func whyNot(action string) string {
	n := slices.IndexFunc(reasons, func(r struct{ part, reason string }) bool { return strings.Contains(action, r.part) })
	if n < 0 {
		return ""
	}
	return reasons[n].reason
}

// validation is CloudWatch's error of GetMetricData.
func validation(format string, args ...any) error {
	return fault.New(http.StatusBadRequest, "ValidationError", format, args...)
}

func invalid(format string, args ...any) error {
	return fault.New(http.StatusBadRequest, "InvalidParameterValue", format, args...)
}

func missing(parameter string) error {
	return fault.New(http.StatusBadRequest, "MissingParameter", "The parameter %s is required.", parameter)
}

func combination(format string, args ...any) error {
	return fault.New(http.StatusBadRequest, "InvalidParameterCombination", format, args...)
}
