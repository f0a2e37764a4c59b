package monitoring

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/smithy-go"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/control"
	"kurabe/internal/control/scope"
	"kurabe/internal/logkey"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/series"
	"kurabe/internal/store"
)

// noon is the time of the tests.
var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// memory is a source in memory.
type memory struct {
	data  []series.Datum
	asked []series.Query
	away  []kurabe.HostID
}

func labelled(l series.Labels, match []series.Match) bool {
	return !slices.ContainsFunc(match, func(m series.Match) bool { return !slices.Contains(m.Values, l.Get(m.Label)) })
}

// Query implements Source.
func (m *memory) Query(_ context.Context, queries []series.Query) ([][]series.Result, []kurabe.HostID, error) {
	m.asked = append(m.asked, queries...)
	out := make([][]series.Result, len(queries))
	for n, q := range queries {
		period, offset, found := int64(q.Period/time.Second), int64(q.Offset/time.Second), map[string]map[int64]*series.Bucket{}
		for _, d := range m.data {
			at := d.Bucket.Start
			if !labelled(d.Labels, q.Match) || at < q.From.Unix() || at >= q.To.Unix() {
				continue
			}
			key := ""
			for _, name := range q.By {
				key += name + "\n" + d.Labels.Get(name) + "\n"
			}
			if found[key] == nil {
				found[key] = map[int64]*series.Bucket{}
			}
			begin := at - (at-offset)%period
			if found[key][begin] == nil {
				found[key][begin] = &series.Bucket{Start: begin}
			}
			b := d.Bucket
			if !q.Distinct {
				b.Values = nil
			}
			found[key][begin].Add(b)
		}
		for _, key := range slices.Sorted(maps.Keys(found)) {
			r := series.Result{Labels: series.NewLabels(strings.Split(strings.TrimSuffix(key, "\n"), "\n")...)}
			for _, at := range slices.Sorted(maps.Keys(found[key])) {
				r.Buckets = append(r.Buckets, *found[key][at])
			}
			out[n] = append(out[n], r)
		}
	}
	return out, m.away, nil
}

// List implements Source.
func (m *memory) List(_ context.Context, match []series.Match, since time.Time) (list []series.Labels, err error) {
	for _, d := range m.data {
		if labelled(d.Labels, match) && d.Bucket.Start >= since.Unix() && !slices.ContainsFunc(list, func(l series.Labels) bool { return slices.Equal(l, d.Labels) }) {
			list = append(list, d.Labels)
		}
	}
	return list, nil
}

// Put implements Source.
func (m *memory) Put(_ context.Context, data []series.Datum) error {
	m.data = append(m.data, data...)
	return nil
}

// measured adds a sample of a server, some seconds after noon.
func (m *memory) measured(metric, instance, role string, second int, value float64) {
	l := series.NewLabels(catalog.Namespace, catalog.RDS, catalog.Metric, metric, catalog.Instance, instance, catalog.Server, "s-"+instance, catalog.Engine, "postgres", catalog.Role, role)
	m.data = append(m.data, series.Datum{Labels: l, Bucket: series.Bucket{
		Start: noon.Unix() + int64(second), Count: 1, Sum: value, Min: value, Max: value, Values: []series.Weighted{{Value: value, Count: 1}},
	}})
}

// world is the service with the SDK's client before it, which speaks CBOR.
type world struct {
	*cloudwatch.Client
	*memory
	url     string
	service service
}

// newWorld has the instances shop and web of two classes and the cluster trio.
func newWorld(t *testing.T) world { return newWorldOf(t) }

func newWorldOf(t testing.TB) world {
	t.Helper()
	kv := store.NewMemory()
	view := store.NewView(kv)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = view.Run(ctx) }) // ends with ctx only
	t.Cleanup(func() { cancel(); wg.Wait() })
	c := control.New(scope.Scope{KV: kv, View: view, Region: "us-east-1", Account: "000000000000", Now: func() time.Time { return noon.Add(time.Hour) }}, control.Config{})
	for _, i := range []struct {
		name, class string
		servers     []kurabe.ServerStatus
	}{
		{"shop", "db.t3.micro", nil}, {"web", "db.t3.small", nil},
		{"trio", "db.t3.small", []kurabe.ServerStatus{{ID: "db-trio", Writer: true}, {ID: kurabe.InstanceID("db-trio").Member(2)}, {ID: kurabe.InstanceID("db-trio").Member(3)}}},
	} {
		now := kurabe.InstanceSettings{EngineVersion: "15.9", Class: i.class, StorageGiB: 20, StorageType: "local", Port: 5432}
		spec := kurabe.InstanceSpec{ID: kurabe.InstanceID("db-" + i.name), Name: i.name, Revision: 1, Engine: kurabe.Postgres, Now: now, Cluster: i.servers != nil}
		status := kurabe.InstanceStatus{ID: spec.ID, SpecRevision: 1, State: kurabe.StateAvailable, Applied: now, Servers: i.servers}
		revision, err := store.NewChange().CreateInstance(spec).PutStatus(status, 0).Commit(ctx, kv)
		if err != nil {
			t.Fatal(err)
		}
		wait, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if err := view.WaitRevision(wait, revision); err != nil {
			t.Fatal(err)
		}
	}
	m := &memory{}
	server := httptest.NewServer(api.New(api.Config{
		Credentials: func(string) (logkey.Secret, bool) { return "secret", true }, Region: "us-east-1", Account: "000000000000",
		Services: []api.Service{API(c, m)}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}))
	t.Cleanup(server.Close)
	return world{cloudwatch.New(cloudwatch.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1, HTTPClient: sdkhttp.Client(),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
	}), m, server.URL, service{c, m}}
}

// wantCode checks an error, by its code and a part of its message.
func wantCode(t *testing.T, err error, code, text string) {
	t.Helper()
	var known smithy.APIError
	if !errors.As(err, &known) || known.ErrorCode() != code || !strings.Contains(known.ErrorMessage(), text) {
		t.Errorf("got %v, want %s %q", err, code, text)
	}
}
