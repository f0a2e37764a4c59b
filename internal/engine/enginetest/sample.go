package enginetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/metrics/sample"
)

// sampledSessions are so many sessions of clients.
const sampledSessions = 5

// samples counts sessions of clients and none of the service's, and counters only grow.
func samples(t *testing.T, b *Bed) {
	s, err := b.Lifecycle.OpenSampler(t.Context(), b.Want)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other, err := b.Lifecycle.OpenWatch(t.Context(), b.Want)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	before := await(t, s, 0)
	sleep := map[kurabe.EngineName]string{kurabe.Postgres: "SELECT pg_sleep(600)", kurabe.MariaDB: "SELECT SLEEP(600)"}[b.Engine]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var sessions sync.WaitGroup
	for range sampledSessions {
		sessions.Go(func() { _, _ = b.Query(ctx, b.Login(), sleep) })
	}
	now := await(t, s, sampledSessions)
	for n, v := range before {
		if v.Kind != sample.Gauge && (n >= len(now) || now[n].Metric != v.Metric || now[n].Value < v.Value) {
			t.Errorf("%+v, then %+v", v, now)
		}
	}
	cancel()
	sessions.Wait()
	await(t, s, 0)
}

// await samples until there are so many sessions of clients.
func await(t *testing.T, s engine.Sampler, sessions float64) []sample.Value {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		values, err := s.Sample(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if values[0].Metric == "DatabaseConnections" && values[0].Value == sessions {
			return values
		}
		if time.Now().After(end) {
			t.Fatalf("not %v sessions: %+v", sessions, values)
		}
	}
}
