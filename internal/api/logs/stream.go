package logs

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"kurabe"
	"kurabe/internal/logread"
)

func noStream() error {
	return kurabe.Errorf(kurabe.CodeResourceNotFound, "The specified log stream does not exist.")
}

// hasStream says whether a stream is on any host. CodeUnavailable when it is on none that answers,
// and one does not.
func (a API) hasStream(ctx context.Context, g kurabe.LogGroup, stream string) (bool, error) {
	list, away, err := a.Hosts.Streams(ctx, g.Name, stream, "", deleted(g))
	if err == nil && len(list) == 0 && len(away) > 0 {
		err = kurabe.Errorf(kurabe.CodeUnavailable, "host %s does not answer, and may have the log stream; try again", away[0])
	}
	return len(list) > 0, err
}

func (a API) createLogStream(ctx context.Context, in *cloudwatchlogs.CreateLogStreamInput) (*cloudwatchlogs.CreateLogStreamOutput, error) {
	if err := kurabe.CheckLogStreamName(*in.LogStreamName); err != nil {
		return nil, err
	}
	g, err := a.group(in.LogGroupName, nil)
	if err != nil {
		return nil, err
	}
	there, err := a.hasStream(ctx, g, *in.LogStreamName)
	if err != nil {
		return nil, err
	}
	if there {
		return nil, kurabe.Errorf(kurabe.CodeInstanceExists, "The specified log stream already exists")
	}
	return nil, a.Here.Create(g.Name, *in.LogStreamName)
}

func (a API) deleteLogStream(ctx context.Context, in *cloudwatchlogs.DeleteLogStreamInput) (*cloudwatchlogs.DeleteLogStreamOutput, error) {
	g, err := a.group(in.LogGroupName, nil)
	if err != nil {
		return nil, err
	}
	there, err := a.hasStream(ctx, g, *in.LogStreamName)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, noStream()
	}
	return nil, a.Hosts.DeleteStream(ctx, g.Name, *in.LogStreamName)
}

func (a API) describeLogStreams(ctx context.Context, in *cloudwatchlogs.DescribeLogStreamsInput) (*cloudwatchlogs.DescribeLogStreamsOutput, error) {
	most, err := limit(in.Limit, listMax, listMax)
	if err != nil {
		return nil, err
	}
	byTime, after := in.OrderBy == types.OrderByLastEventTime, listToken{}
	switch {
	case in.OrderBy != "" && !slices.Contains(in.OrderBy.Values(), in.OrderBy):
		return nil, invalid("1 validation error detected: Value '%.60s' at 'orderBy' failed to satisfy constraint: Member must satisfy enum value set: [LogStreamName, LastEventTime]", in.OrderBy)
	case byTime && in.LogStreamNamePrefix != nil:
		return nil, invalid("Cannot order by LastEventTime with a logStreamNamePrefix.")
	}
	if after, err = readListToken(in.NextToken); err != nil {
		return nil, err
	}
	g, err := a.group(in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	list, _, err := a.Hosts.Streams(ctx, g.Name, "", aws.ToString(in.LogStreamNamePrefix), deleted(g))
	if err != nil {
		return nil, err
	}
	compare := func(a, b listToken) int {
		c := cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(a.Name, b.Name))
		if aws.ToBool(in.Descending) {
			return -c
		}
		return c
	}
	at := func(s logread.Stream) listToken {
		if byTime {
			return listToken{s.Last, s.Name}
		}
		return listToken{Name: s.Name}
	}
	slices.SortFunc(list, func(a, b logread.Stream) int { return compare(at(a), at(b)) })
	list = slices.DeleteFunc(list, func(s logread.Stream) bool { return after.Name != "" && compare(at(s), after) <= 0 })
	out := &cloudwatchlogs.DescribeLogStreamsOutput{LogStreams: []types.LogStream{}}
	if len(list) > most {
		list = list[:most]
		out.NextToken = at(list[most-1]).text()
	}
	for _, s := range list {
		out.LogStreams = append(out.LogStreams, types.LogStream{
			LogStreamName: &s.Name, Arn: aws.String(a.Groups.ARN(g.Name) + ":log-stream:" + s.Name), CreationTime: aws.Int64(s.Created),
			//lint:ignore SA1019 clients show it; AWS has it 0
			StoredBytes:         aws.Int64(s.Bytes),
			FirstEventTimestamp: present(s.First), LastEventTimestamp: present(s.Last), LastIngestionTime: present(s.LastIngested), UploadSequenceToken: sequenceToken(s.LastIngested),
		})
	}
	return out, nil
}
