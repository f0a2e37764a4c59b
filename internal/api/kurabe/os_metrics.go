package kurabe

import (
	"cmp"
	"context"

	"kurabe"
	"kurabe/internal/logread"
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
	i, server, _, err := a.primary(in.Name)
	if err != nil {
		return nil, err
	}
	stream := string(i.ID)
	if i.Spec.Cluster {
		stream = kurabe.ServerResourceID(server)
	}
	q := logread.Query{Group: kurabe.OSMetricsGroup, Streams: []string{stream}, To: 1 << 62, Limit: cmp.Or(in.Limit, picturesMost)}
	switch in.From {
	case "":
		q.Backward, q.Limit = true, 1
	case "0":
	default:
		group, at, err := logread.ReadPointer(in.From)
		if err != nil || group != q.Group || at.Stream != stream {
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "From %.40q is no place among the pictures", in.From)
		}
		q.After = &at
	}
	page, err := a.Logs.Read(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(page.Events) == 0 && i.Spec.Monitoring.IntervalSeconds == 0 {
		return nil, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s has no Enhanced Monitoring: its MonitoringInterval is 0; set it with aws rds modify-db-instance --monitoring-interval 1 --monitoring-role-arn ARN", in.Name)
	}
	out := &DescribeOSMetricsOutput{Pictures: []string{}, From: cmp.Or(in.From, "0")}
	for _, e := range page.Events {
		out.Pictures, out.From = append(out.Pictures, string(e.Message)), logread.Pointer(q.Group, e.Place)
	}
	return out, nil
}
