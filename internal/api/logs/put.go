package logs

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"kurabe"
	"kurabe/internal/logevents"
)

const (
	spanMax  = 24 * time.Hour      // of a batch
	ageMax   = 14 * 24 * time.Hour // of an event
	aheadMax = 2 * time.Hour
)

func (a API) putLogEvents(ctx context.Context, in *cloudwatchlogs.PutLogEventsInput) (*cloudwatchlogs.PutLogEventsOutput, error) {
	if in.Entity != nil {
		return nil, invalid("Entity is not supported: log events belong to no entities")
	}
	if err := checkBatch(in.LogEvents); err != nil {
		return nil, err
	}
	g, err := a.group(in.LogGroupName, nil)
	if err != nil {
		return nil, err
	}
	if len(a.Here.Streams(g.Name, *in.LogStreamName)) == 0 {
		there, err := a.hasStream(ctx, g, *in.LogStreamName)
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, noStream()
		}
	}
	now := a.Now().UnixMilli()
	out := &cloudwatchlogs.PutLogEventsOutput{NextSequenceToken: sequenceToken(now)}
	var from, to int
	from, to, out.RejectedLogEventsInfo = accepted(in.LogEvents, now, a.expired(g))
	if from < to {
		events := make([]logevents.Event, 0, to-from)
		for _, e := range in.LogEvents[from:to] {
			events = append(events, logevents.Event{Time: *e.Timestamp, Ingested: now, Message: []byte(*e.Message)})
		}
		if err := a.Here.Append(g.Name, *in.LogStreamName, events, nil); err != nil {
			return nil, &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "The log events were not stored: the disk does not take them; try again", Err: err}
		}
	}
	return out, nil
}

// checkBatch refuses what AWS refuses as a whole.
func checkBatch(events []types.InputLogEvent) error {
	if len(events) == 0 || len(events) > kurabe.LogBatchEventsMax {
		return invalid("1 validation error detected: Value at 'logEvents' failed to satisfy constraint: Member must have length from 1 to %d", kurabe.LogBatchEventsMax)
	}
	size := 0
	for n, e := range events {
		switch {
		case *e.Message == "":
			return invalid("1 validation error detected: Value '' at 'logEvents.%d.member.message' failed to satisfy constraint: Member must have length greater than or equal to 1", n+1)
		case *e.Timestamp < 0:
			return invalid("1 validation error detected: Value '%d' at 'logEvents.%d.member.timestamp' failed to satisfy constraint: Member must have value greater than or equal to 0", *e.Timestamp, n+1)
		case len(*e.Message)+kurabe.LogEventOverhead > kurabe.LogEventBytesMax:
			return invalid("Log event too large: %d bytes exceeds limit of %d", len(*e.Message)+kurabe.LogEventOverhead, kurabe.LogEventBytesMax)
		case n > 0 && *e.Timestamp < *events[n-1].Timestamp:
			return invalid("Log events in a single PutLogEvents request must be in chronological order.")
		}
		size += len(*e.Message) + kurabe.LogEventOverhead
	}
	if size > kurabe.LogBatchBytesMax {
		return invalid("Upload too large: %d bytes exceeds limit of %d", size, kurabe.LogBatchBytesMax)
	}
	if *events[len(events)-1].Timestamp-*events[0].Timestamp > spanMax.Milliseconds() {
		return invalid("The batch of log events in a single PutLogEvents request cannot span more than 24 hours.")
	}
	return nil
}

// accepted returns which events of a batch are stored, from the first (inclusive) to the last
// (exclusive), and why others are not.
func accepted(events []types.InputLogEvent, now, expired int64) (from, to int, rejected *types.RejectedLogEventsInfo) {
	before := func(at int64) (n int) {
		for n < len(events) && *events[n].Timestamp < at {
			n++
		}
		return n
	}
	info := types.RejectedLogEventsInfo{}
	if n := before(now - ageMax.Milliseconds()); n > 0 {
		from, rejected, info.TooOldLogEventEndIndex = n, &info, aws.Int32(int32(n))
	}
	if n := before(expired); n > 0 {
		from, rejected, info.ExpiredLogEventEndIndex = max(from, n), &info, aws.Int32(int32(n))
	}
	if to = before(now + aheadMax.Milliseconds() + 1); to < len(events) {
		rejected, info.TooNewLogEventStartIndex = &info, aws.Int32(int32(to))
	}
	return from, to, rejected
}
