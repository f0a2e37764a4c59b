package logs

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"kurabe"
	"kurabe/internal/logpattern"
	"kurabe/internal/logread"
)

const eventsMax = 10_000 // in a page

// span is the time of a request, of events that are kept.
func (a API) span(g kurabe.LogGroup, start, end *int64) (from, to int64, err error) {
	from, to = aws.ToInt64(start), math.MaxInt64
	if end != nil {
		to = *end
	}
	if from < 0 || to < 0 {
		return 0, 0, invalid("1 validation error detected: Value '%d' at 'startTime' failed to satisfy constraint: Member must have value greater than or equal to 0", min(from, to))
	}
	return max(from, a.expired(g)), to, nil
}

func (a API) getLogEvents(ctx context.Context, in *cloudwatchlogs.GetLogEventsInput) (*cloudwatchlogs.GetLogEventsOutput, error) {
	most, err := limit(in.Limit, eventsMax, eventsMax)
	if err != nil {
		return nil, err
	}
	g, err := a.group(in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	q := logread.Query{Group: g.Name, Streams: []string{*in.LogStreamName}, Limit: most, Deleted: deleted(g), Backward: !aws.ToBool(in.StartFromHead)}
	if q.From, q.To, err = a.span(g, in.StartTime, in.EndTime); err != nil {
		return nil, err
	}
	reading := of(g.Name, *in.LogStreamName)
	if in.NextToken != nil {
		direction := forward
		if q.Backward = strings.HasPrefix(*in.NextToken, backward); q.Backward {
			direction = backward
		}
		if q.After, err = readEventToken(*in.NextToken, direction, reading); err != nil {
			return nil, err
		}
	}
	page, err := a.Hosts.Read(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(page.Events) == 0 && in.NextToken == nil {
		if there, err := a.hasStream(ctx, g, *in.LogStreamName); err != nil {
			return nil, err
		} else if !there {
			return nil, noStream()
		}
	}
	if q.Backward {
		slices.Reverse(page.Events)
	}
	first, last := ends(q, page)
	out := &cloudwatchlogs.GetLogEventsOutput{Events: []types.OutputLogEvent{}, NextForwardToken: eventToken{reading, last}.text(forward), NextBackwardToken: eventToken{reading, first}.text(backward)}
	for _, e := range page.Events {
		out.Events = append(out.Events, types.OutputLogEvent{Timestamp: aws.Int64(e.Time), IngestionTime: aws.Int64(e.Ingested), Message: text(e.Message)})
	}
	return out, nil
}

// ends are the places before and behind a page, whose events are in the order of time.
func ends(q logread.Query, page logread.Page) (first, last logread.Place) {
	if first = (logread.Place{Time: q.From}); q.After != nil {
		first = *q.After
	}
	last = first
	if n := len(page.Events); n > 0 {
		first, last = page.Events[0].Place, page.Events[n-1].Place
	}
	switch {
	case page.Next != nil && q.Backward:
		first = *page.Next
	case page.Next != nil:
		last = *page.Next
	}
	return first, last
}

func (a API) filterLogEvents(ctx context.Context, in *cloudwatchlogs.FilterLogEventsInput) (*cloudwatchlogs.FilterLogEventsOutput, error) {
	most, err := limit(in.Limit, eventsMax, eventsMax)
	if err != nil {
		return nil, err
	}
	if len(in.LogStreamNames) > 0 && in.LogStreamNamePrefix != nil {
		return nil, invalid("The parameters logStreamNames and logStreamNamePrefix are mutually exclusive.")
	}
	pattern := aws.ToString(in.FilterPattern)
	if _, err := logpattern.Parse(pattern); err != nil {
		return nil, err
	}
	g, err := a.group(in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	q := logread.Query{Group: g.Name, Streams: in.LogStreamNames, Prefix: aws.ToString(in.LogStreamNamePrefix), Limit: most, Pattern: pattern, Deleted: deleted(g), Backward: in.StartFromHead != nil && !*in.StartFromHead}
	if len(q.Streams) == 0 {
		q.Streams = nil
	}
	if q.From, q.To, err = a.span(g, in.StartTime, in.EndTime); err != nil {
		return nil, err
	}
	if q.To < math.MaxInt64 {
		q.To++ // the end is a part of it here
	}
	reading := of(append([]string{g.Name, pattern, q.Prefix}, q.Streams...)...)
	if in.NextToken != nil {
		if q.After, err = readEventToken(*in.NextToken, "", reading); err != nil {
			return nil, err
		}
	}
	for _, name := range q.Streams {
		there, err := a.hasStream(ctx, g, name)
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, noStream()
		}
	}
	page, err := a.Hosts.Read(ctx, q)
	if err != nil {
		return nil, err
	}
	// CloudWatch leaves the list of streams empty since 2020.
	out := &cloudwatchlogs.FilterLogEventsOutput{Events: []types.FilteredLogEvent{}, SearchedLogStreams: []types.SearchedLogStream{}}
	if page.Next != nil {
		out.NextToken = eventToken{reading, *page.Next}.text("")
	}
	for _, e := range page.Events {
		out.Events = append(out.Events, types.FilteredLogEvent{
			EventId: eventID(g.Name, e.Place), LogStreamName: &e.Stream, Timestamp: aws.Int64(e.Time), IngestionTime: aws.Int64(e.Ingested), Message: text(e.Message),
		})
	}
	return out, nil
}
