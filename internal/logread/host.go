package logread

import (
	"cmp"
	"context"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/logevents"
	"kurabe/internal/logpattern"
)

const (
	// answerBytes bounds the messages of an answer, of which CloudWatch gives 1 MB at most. An
	// answer is JSON with each message in base64, below a frame's 8 MB.
	answerBytes = 1 << 20
	// readTime is how long a host looks for one answer, and textMax in how much text.
	readTime = time.Second
	textMax  = 256 << 20
)

// Place is that of an event among those of all hosts.
type Place struct {
	Time   int64 // Unix milliseconds
	Stream string
	Host   kurabe.HostID
	Number int64 // in the stream on that host
}

// Compare is -1, 0 or 1 where p lies before q, at it or behind it.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Time, q.Time), cmp.Compare(p.Stream, q.Stream), cmp.Compare(p.Host, q.Host), cmp.Compare(p.Number, q.Number))
}

// on is the place as one of a host's own: events of that stream and time on other hosts lie all
// before it or all behind it.
func (p *Place) on(host kurabe.HostID) *logevents.Position {
	if p == nil {
		return nil
	}
	at := logevents.Position{Time: p.Time, Stream: p.Stream, Number: p.Number}
	switch cmp.Compare(host, p.Host) {
	case 1:
		at.Number = 0
	case -1:
		at.Number = 1<<63 - 1
	}
	return &at
}

// Event is an event with its place.
type Event struct {
	Place
	Ingested int64 // Unix milliseconds
	Message  []byte
}

// Query asks for events of a group in order.
type Query struct {
	Group   string
	Streams []string // nil: all whose name begins with Prefix
	Prefix  string
	From    int64 // Unix milliseconds, inclusive
	To      int64 // exclusive
	// After, where it is not nil, is the event behind which the answer begins, or before which it
	// ends when it goes Backward.
	After    *Place
	Backward bool
	Limit    int
	Pattern  string
	// Deleted has the hosts that may not know of the deletion of a group of this name, which had
	// all streams that are not younger, in Unix milliseconds.
	Deleted map[kurabe.HostID]int64
}

// answer has a host's first events. Stopped is the last event that it has looked at when there
// may be more.
type answer struct {
	Events  []Event
	Stopped *Place
}

// Stream is what is known of a stream. Times are Unix milliseconds, 0 without events.
type Stream struct {
	Name                      string
	Created                   int64
	First, Last, LastIngested int64
	Bytes                     int64 // of messages
}

// streamQuery asks for the streams of a group, or for one.
type streamQuery struct {
	Group, Name, Prefix string
	Deleted             map[kurabe.HostID]int64
}

// removal removes a stream, or all of a group that are not younger than a time.
type removal struct {
	Group, Stream string
	Until         int64 // Unix milliseconds, 0: whatever their age
}

// recordQuery asks for one event.
type recordQuery struct {
	Group, Stream string
	Number        int64
}

// The questions about events.
var (
	askEvents  = hostread.Kind[Query, answer]{Name: "log-events", Class: hostread.Logs}
	askStreams = hostread.Kind[streamQuery, []Stream]{Name: "log-event-streams", Class: hostread.Logs}
	askRemoval = hostread.Kind[removal, bool]{Name: "log-event-removal", Class: hostread.Logs}
	askRecord  = hostread.Kind[recordQuery, *Event]{Name: "log-event", Class: hostread.Logs}
	askBytes   = hostread.Kind[[]string, map[string]int64]{Name: "log-event-bytes", Class: hostread.Logs}
	askSweep   = hostread.Kind[map[string]int, []string]{Name: "log-event-groups", Class: hostread.Logs}
)

// Host answers for the events of a host.
type Host struct {
	ID    kurabe.HostID
	Store *logevents.Store
	// Keep takes down for how many days the events of groups are kept.
	Keep func(map[string]int)
}

// Handle has the host answer.
func (h Host) Handle(handlers *hostread.Handlers) {
	hostread.Handle(handlers, askEvents, h.events)
	hostread.Handle(handlers, askStreams, func(_ context.Context, q streamQuery) ([]Stream, error) { return h.streams(q), nil })
	hostread.Handle(handlers, askRemoval, func(_ context.Context, r removal) (bool, error) { return true, h.remove(r) })
	hostread.Handle(handlers, askRecord, func(_ context.Context, q recordQuery) (*Event, error) {
		e, found, err := h.Store.Get(q.Group, q.Stream, q.Number)
		if err != nil || !found {
			return nil, err
		}
		return &Event{Place{e.Time, q.Stream, h.ID, q.Number}, e.Ingested, e.Message}, nil
	})
	hostread.Handle(handlers, askBytes, func(_ context.Context, groups []string) (map[string]int64, error) {
		bytes := map[string]int64{}
		for _, group := range groups {
			for _, s := range h.Store.Streams(group, "") {
				bytes[group] += s.Bytes
			}
		}
		return bytes, nil
	})
	hostread.Handle(handlers, askSweep, func(_ context.Context, days map[string]int) ([]string, error) {
		h.Keep(days)
		return h.Store.Groups(), nil
	})
}

func (h Host) streams(q streamQuery) (list []Stream) {
	for _, s := range h.Store.Streams(q.Group, q.Name) {
		if s.Created > q.Deleted[h.ID] && strings.HasPrefix(s.Name, q.Prefix) {
			list = append(list, Stream{s.Name, s.Created, s.First, s.Last, s.LastIngested, s.Bytes})
		}
	}
	return list
}

func (h Host) remove(r removal) error {
	if r.Stream != "" {
		return h.Store.DeleteStream(r.Group, r.Stream)
	}
	for _, s := range h.Store.Streams(r.Group, "") {
		if s.Created > r.Until {
			continue
		}
		if err := h.Store.DeleteStream(r.Group, s.Name); err != nil {
			return err
		}
	}
	return nil
}

func (h Host) events(ctx context.Context, q Query) (a answer, err error) {
	pattern, err := logpattern.Parse(q.Pattern)
	if err != nil {
		return a, err
	}
	names := q.Streams
	if names == nil && (q.Prefix != "" || q.Deleted[h.ID] != 0) {
		names = []string{}
		for _, s := range h.streams(streamQuery{Group: q.Group, Prefix: q.Prefix, Deleted: q.Deleted}) {
			names = append(names, s.Name)
		}
	}
	w := logevents.Walk{Group: q.Group, Streams: names, From: q.From, To: q.To, After: q.After.on(h.ID), Backward: q.Backward}
	began, text, size := time.Now(), 0, 0
	var last *Place
	return a, h.Store.Walk(ctx, w, func(f logevents.Found) error {
		matches := pattern.Match(f.Message)
		if len(a.Events) > 0 && matches && (len(a.Events) >= q.Limit || size+len(f.Message) > answerBytes) || text > textMax || time.Since(began) > readTime {
			if a.Stopped = last; last != nil {
				return logevents.ErrEnough
			}
		}
		last = &Place{f.Time, f.Stream, h.ID, f.Number}
		text += len(f.Message)
		if matches {
			a.Events = append(a.Events, Event{*last, f.Ingested, f.Message})
			size += len(f.Message)
		}
		return nil
	})
}
