package kurabe

import (
	"context"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/metrics/osmetrics"
)

const picturesMost = 100

// DescribeOSMetricsInput names a DB instance or a DB cluster, whose primary is meant, and the place
// among its pictures: what an answer before gave, "0" for the oldest, "" for the newest.
type DescribeOSMetricsInput struct {
	Name, From string
	Limit      int // 0 is 100
}

// DescribeOSMetricsOutput has pictures in order of time, each JSON in the form of RDSOSMetrics. From
// is the place of the next one.
type DescribeOSMetricsOutput struct {
	Pictures []string
	From     string
}

func (a API) describeOSMetrics(ctx context.Context, in *DescribeOSMetricsInput) (*DescribeOSMetricsOutput, error) {
	if in.Limit < 0 || in.Limit > picturesMost {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Limit %d is not between 1 and %d", in.Limit, picturesMost)
	}
	i, server, host, err := a.primary(in.Name)
	if err != nil {
		return nil, err
	}
	limit := in.Limit
	if limit == 0 {
		limit = picturesMost
	}
	answer, err := hostread.Ask(ctx, a.Hosts, host, osmetrics.ReadKind, osmetrics.Query{Instance: server, From: in.From, Limit: limit})
	if err == nil && len(answer.Pictures) == 0 && i.Spec.Monitoring.IntervalSeconds == 0 {
		err = kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s has no Enhanced Monitoring: its MonitoringInterval is 0", in.Name)
	}
	return &DescribeOSMetricsOutput{append([]string{}, answer.Pictures...), answer.From}, err
}
