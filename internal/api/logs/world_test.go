package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/smithy-go"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/control/loggroup"
	"kurabe/internal/control/scope"
	"kurabe/internal/hostread"
	"kurabe/internal/logevents"
	"kurabe/internal/logkey"
	"kurabe/internal/logread"
	"kurabe/internal/store"
)

// world is the service on host a, with the SDK's client before it, and a host b.
type world struct {
	*cloudwatchlogs.Client
	api     API
	stores  map[kurabe.HostID]*logevents.Store
	bAway   atomic.Bool
	elapsed atomic.Int64 // nanoseconds by which the clock is ahead
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.elapsed.Load())) }

func newWorld(t *testing.T) *world {
	t.Helper()
	kv := store.NewMemory()
	view := store.NewView(kv)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = view.Run(ctx) }) // ends with ctx only
	t.Cleanup(func() { cancel(); wg.Wait() })
	w := &world{stores: map[kurabe.HostID]*logevents.Store{}}
	handlers := map[kurabe.HostID]*hostread.Handlers{}
	for _, host := range []kurabe.HostID{"a", "b"} {
		s, err := logevents.Open(logevents.Config{Dir: t.TempDir(), GroupBytes: 1 << 30, TotalBytes: 1 << 30, Now: w.now, Lost: func(group, stream string, bytes int64, why string) {
			t.Errorf("%d bytes of %s/%s are lost: %s", bytes, group, stream, why)
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		w.stores[host], handlers[host] = s, hostread.NewHandlers(host)
		logread.Host{ID: host, Store: s, Keep: func(map[string]int) {}}.Handle(handlers[host])
	}
	far := func(ctx context.Context, f hostread.Frame) (hostread.Frame, error) {
		if w.bAway.Load() {
			return hostread.Frame{}, errors.New("no way")
		}
		answer := make(chan hostread.Frame, 1)
		f.ID = fmt.Sprint(time.Now().UnixNano())
		handlers["b"].Take(ctx, f, func(_ context.Context, f hostread.Frame) { answer <- f })
		select {
		case f := <-answer:
			return f, nil
		case <-ctx.Done():
			return f, ctx.Err()
		}
	}
	w.api = API{
		Groups: loggroup.Groups{Scope: scope.New(scope.Scope{KV: kv, View: view, Region: "us-east-1", Account: "000000000000", Now: w.now})},
		Hosts:  logread.Hosts{Ask: hostread.Hosts{Here: handlers["a"], Far: far}, IDs: func() []kurabe.HostID { return []kurabe.HostID{"a", "b"} }},
		Here:   w.stores["a"], Now: w.now,
	}
	server := httptest.NewServer(api.New(api.Config{
		Credentials: func(string) (logkey.Secret, bool) { return "secret", true }, Region: "us-east-1", Account: "000000000000",
		Services: []api.Service{w.api.Service()}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}))
	t.Cleanup(server.Close)
	w.Client = cloudwatchlogs.New(cloudwatchlogs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1, HTTPClient: sdkhttp.Client(),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
	})
	if err := view.WaitRevision(ctx, 0); err != nil {
		t.Fatal(err)
	}
	return w
}

// must is a call that succeeds.
func must[In, Out any](t *testing.T, call func(context.Context, *In, ...func(*cloudwatchlogs.Options)) (*Out, error), in *In) *Out {
	t.Helper()
	out, err := call(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refused is a call that fails with a code and a part of a message.
func refused[In, Out any](t *testing.T, call func(context.Context, *In, ...func(*cloudwatchlogs.Options)) (*Out, error), in *In, code, text string) {
	t.Helper()
	_, err := call(t.Context(), in)
	var known smithy.APIError
	if !errors.As(err, &known) || known.ErrorCode() != code || !strings.Contains(known.ErrorMessage(), text) {
		t.Errorf("got %v, want %s %q", err, code, text)
	}
}

// stream makes a group, if it is not there, and a stream.
func (w *world) stream(t *testing.T, group, stream string) {
	t.Helper()
	if _, err := w.api.Groups.Find(group); err != nil {
		must(t, w.CreateLogGroup, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &group})
	}
	must(t, w.CreateLogStream, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &group, LogStreamName: &stream})
}

// events makes a batch, one event a millisecond.
func events(from int64, messages ...string) (list []types.InputLogEvent) {
	for n, m := range messages {
		list = append(list, types.InputLogEvent{Timestamp: aws.Int64(from + int64(n)), Message: &m})
	}
	return list
}

func (w *world) put(t *testing.T, group, stream string, list []types.InputLogEvent) *cloudwatchlogs.PutLogEventsOutput {
	t.Helper()
	return must(t, w.PutLogEvents, &cloudwatchlogs.PutLogEventsInput{LogGroupName: &group, LogStreamName: &stream, LogEvents: list})
}

// putB stores events on host b, as its databases would.
func (w *world) putB(t *testing.T, group, stream string, list []types.InputLogEvent) {
	t.Helper()
	var events []logevents.Event
	for _, e := range list {
		events = append(events, logevents.Event{Time: *e.Timestamp, Ingested: *e.Timestamp, Message: []byte(*e.Message)})
	}
	if err := w.stores["b"].Append(group, stream, events, nil); err != nil {
		t.Fatal(err)
	}
}

// filter returns the messages of all pages.
func (w *world) filter(t *testing.T, in cloudwatchlogs.FilterLogEventsInput) string {
	t.Helper()
	var list []string
	for range 1000 {
		out := must(t, w.FilterLogEvents, &in)
		for _, e := range out.Events {
			list = append(list, *e.Message)
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			return strings.Join(list, " ")
		}
	}
	t.Fatal("the pages do not end")
	return ""
}

func names(list []types.LogStream) (names []string) {
	for _, s := range list {
		names = append(names, *s.LogStreamName)
	}
	return names
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
