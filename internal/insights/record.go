package insights

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/logevents"
)

// Record is where an event lies. Its text is the field @ptr of results.
type Record struct {
	Host          kurabe.HostID
	Group, Stream string
	Number        int64 // in the stream
}

var readRecord = hostread.Kind[Record, logevents.Event]{Name: "logs-record", Class: hostread.Insights}

// pointer is the @ptr of an event of this host.
func (p *Parts) pointer(b *logevents.Block, event int) []byte {
	text := fmt.Appendf(nil, "%s\n%d\n%s\n%s", p.host, b.First+int64(event), b.Group, b.Stream)
	return base64.StdEncoding.AppendEncode(nil, text)
}

// ParsePointer reads a @ptr.
func ParsePointer(pointer string) (r Record, err error) {
	raw, err := base64.StdEncoding.DecodeString(pointer)
	parts := strings.SplitN(string(raw), "\n", 4)
	if err != nil || len(parts) < 4 {
		return r, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the log record pointer is not one that a query has told as @ptr")
	}
	r = Record{Host: kurabe.HostID(parts[0]), Group: parts[2], Stream: parts[3]}
	if r.Number, err = strconv.ParseInt(parts[1], 10, 64); err != nil {
		return r, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "the log record pointer is not one that a query has told as @ptr")
	}
	return r, nil
}

func (p *Parts) record(r Record) (logevents.Event, error) {
	e, ok, err := p.events.Get(r.Group, r.Stream, r.Number)
	if err == nil && !ok {
		err = kurabe.Errorf(kurabe.CodeResourceNotFound, "the log event is not kept any more")
	}
	return e, err
}

// Read reads an event. Errors: CodeResourceNotFound; CodeUnavailable when its host does not answer.
func (s *Queries) Read(ctx context.Context, r Record) (logevents.Event, error) {
	if r.Host != s.Host && !slices.Contains(s.Hosts(), r.Host) {
		return logevents.Event{}, kurabe.Errorf(kurabe.CodeResourceNotFound, "the host of the log event is none of the service")
	}
	return hostread.Ask(ctx, s.Ask, r.Host, readRecord, r)
}
