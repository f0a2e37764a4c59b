package pi

import (
	"context"
	"slices"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/aws/shape"
	"kurabe/internal/control"
	"kurabe/internal/load"
)

// Source asks all hosts for what they know of an instance's load.
type Source interface {
	Load(ctx context.Context, q load.Query) (load.Answer, error)
	LoadCounts(ctx context.Context, q load.CountQuery) (load.Counts, error)
	LoadTexts(ctx context.Context, q load.TextQuery) (map[string]load.Text, error)
}

// API is the service.
type API struct {
	Control *control.Control
	Source  Source
	// Now is the time in seconds since 1970.
	Now func() int64
}

// Service returns the table of actions.
func (a API) Service() api.Service {
	return api.Service{
		Name: "pi", Protocols: []api.Protocol{api.JSON{Target: "PerformanceInsightsv20180227", Version: "1.1", Model: shape.PI}},
		Ops: api.Table(
			api.Read("GetResourceMetrics", a.getResourceMetrics),
			api.Read("DescribeDimensionKeys", a.describeDimensionKeys),
			api.Read("GetDimensionKeyDetails", a.getDimensionKeyDetails),
			api.Read("GetResourceMetadata", a.getResourceMetadata),
			api.Read("ListAvailableResourceDimensions", a.listDimensions),
			api.Read("ListAvailableResourceMetrics", a.listMetrics),
		),
		Errors: api.Errors{
			kurabe.CodeInvalidParameterValue: {Code: "InvalidArgumentException", Status: 400},
			kurabe.CodeInvalidParameterCombo: {Code: "InvalidArgumentException", Status: 400},
			kurabe.CodeInternal:              {Code: "InternalServiceError", Status: 500},
			kurabe.CodeInstanceNotFound:      {Code: "NotAuthorizedException", Status: 400},
		},
		NotOffered: func(string) string { return "reports of analyses are not written; nothing of the service has tags" },
	}
}

// resource is the servers whose load is asked for.
type resource struct {
	id      kurabe.InstanceID
	alone   bool
	counted bool // its engine counts statements
}

// find returns the instance of a request.
func (a API) find(service, identifier *string) (r resource, err error) {
	if deref(service) != "RDS" {
		return r, invalid("ServiceType must be RDS")
	}
	id := deref(identifier)
	list, _ := a.Control.Instances(control.InstanceFilter{IDs: []string{id}}, "", 1)
	switch {
	case id == "" || len(list) == 0:
		return r, kurabe.Errorf(kurabe.CodeInstanceNotFound, "no DB instance has the resource id %.100q; DescribeDBInstances names it DbiResourceId", id)
	case !list[0].Spec.LoadKept:
		return r, invalid("Performance Insights is not enabled for the DB instance %s; modify it with EnablePerformanceInsights", list[0].Name)
	}
	r = resource{id: list[0].Spec.ID, counted: list[0].Spec.Engine == kurabe.Postgres}
	if list[0].Server != nil {
		r.id, r.alone = list[0].Server.ID, true
	}
	return r, nil
}

// The metrics of load; both are the average of one sample a second.
const (
	loadMetric    = "db.load.avg"
	sampledMetric = "db.sampledload.avg"
)

func isLoad(metric string) bool { return metric == loadMetric || metric == sampledMetric }

func (a API) getResourceMetadata(ctx context.Context, in *GetResourceMetadataInput) (*GetResourceMetadataOutput, error) {
	r, err := a.find(in.ServiceType, in.Identifier)
	if err != nil {
		return nil, err
	}
	counted, err := a.counts(ctx, r)
	if err != nil {
		return nil, err
	}
	enabled, unsupported := "ENABLED", "UNSUPPORTED"
	statistics := &unsupported
	if counted {
		statistics = &enabled
	}
	return &GetResourceMetadataOutput{Identifier: in.Identifier, Features: map[string]FeatureMetadata{
		"SQL_STATISTICS": {statistics}, "LONG_TERM_RETENTION": {&unsupported}, "PERFORMANCE_INSIGHTS": {&enabled}, "EXECUTION_PLANS": {&unsupported},
	}}, nil
}

func (a API) listDimensions(_ context.Context, in *ListAvailableResourceDimensionsInput) (*ListAvailableResourceDimensionsOutput, error) {
	if _, err := a.find(in.ServiceType, in.Identifier); err != nil {
		return nil, err
	}
	for _, action := range in.AuthorizedActions {
		if !slices.Contains([]string{"DescribeDimensionKeys", "GetDimensionKeyDetails", "GetResourceMetrics"}, action) {
			return nil, invalid("AuthorizedActions: unknown action %.100q", action)
		}
	}
	out := &ListAvailableResourceDimensionsOutput{}
	for _, metric := range in.Metrics {
		if metric != "db.load" && !isLoad(metric) {
			return nil, invalid("Metrics: %.100q has no dimensions; db.load has", metric)
		}
		m := MetricDimensionGroups{Metric: &metric}
		for _, g := range groups {
			d := DimensionGroupDetail{Group: &g.name}
			for _, one := range g.dimensions {
				d.Dimensions = append(d.Dimensions, DimensionDetail{&one.name})
			}
			m.Groups = append(m.Groups, d)
		}
		out.MetricDimensions = append(out.MetricDimensions, m)
	}
	return out, nil
}

func (a API) listMetrics(ctx context.Context, in *ListAvailableResourceMetricsInput) (*ListAvailableResourceMetricsOutput, error) {
	r, err := a.find(in.ServiceType, in.Identifier)
	if err != nil {
		return nil, err
	}
	out := &ListAvailableResourceMetricsOutput{}
	unit, description := "avg", "active sessions, each second"
	for _, kind := range in.MetricTypes {
		switch kind {
		case "db":
			for _, metric := range []string{"db.load", "db.sampledload"} {
				out.Metrics = append(out.Metrics, ResponseResourceMetric{&metric, &description, &unit})
			}
		case "db.sql_tokenized.stats":
			counted, err := a.counts(ctx, r)
			if err != nil {
				return nil, err
			}
			for _, s := range statistics {
				if metric := statisticPrefix + s.name; counted {
					out.Metrics = append(out.Metrics, ResponseResourceMetric{&metric, &s.description, &s.unit})
				}
			}
		case "os", "db.sql.stats":
			// CloudWatch has what is measured of the operating system.
		default:
			return nil, invalid("MetricTypes: unknown type %.100q", kind)
		}
	}
	out.Metrics, out.NextToken, err = page(out.Metrics, in.MaxResults, in.NextToken)
	return out, err
}

// getDimensionKeyDetails tells the whole text of a statement.
func (a API) getDimensionKeyDetails(ctx context.Context, in *GetDimensionKeyDetailsInput) (*GetDimensionKeyDetailsOutput, error) {
	r, err := a.find(in.ServiceType, in.Identifier)
	if err != nil {
		return nil, err
	}
	name := deref(in.Group)
	if name != "db.sql" && name != "db.sql_tokenized" {
		return nil, invalid("Group: details are known of db.sql and db.sql_tokenized, not of %.100q", name)
	}
	for _, d := range in.RequestedDimensions {
		if d != "statement" && d != name+".statement" {
			return nil, invalid("RequestedDimensions: %.100q is not available; %s.statement is", d, name)
		}
	}
	id, now := deref(in.GroupIdentifier), a.Now()
	texts, err := a.Source.LoadTexts(ctx, load.TextQuery{Instance: r.id, Alone: r.alone, IDs: []string{id}, From: now - keptSeconds, To: now})
	if err != nil {
		return nil, err
	}
	text, known := texts[id]
	if !known {
		return nil, invalid("GroupIdentifier: no statement with the id %.100q is kept", id)
	}
	dimension, status := name+".statement", "AVAILABLE"
	return &GetDimensionKeyDetailsOutput{Dimensions: []DimensionKeyDetail{{&text.Statement, &dimension, &status}}}, nil
}
