package proxy

import (
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/series"
	"kurabe/internal/proxy"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/proxy/process"
)

// find returns the sample of a metric with just these dimensions, in pairs, sorted.
func find(list []series.Sample, metric string, dimensions ...string) (float64, bool) {
	names := ""
	for n := 0; n < len(dimensions); n += 2 {
		names += dimensions[n] + "\n"
	}
next:
	for _, s := range list {
		if s.Labels.Get(catalog.Metric) != metric || s.Labels.Get(catalog.DimensionNames) != names {
			continue
		}
		for n := 0; n < len(dimensions); n += 2 {
			if s.Labels.Get(catalog.DimensionPrefix+dimensions[n]) != dimensions[n+1] {
				continue next
			}
		}
		return s.Value, true
	}
	return 0, false
}

// TestSamples: counters become what they counted in the second, by the sets of dimensions; another
// process begins anew.
func TestSamples(t *testing.T) {
	a := kurabe.ProxyAssignment{Name: "p", Target: "db:shop"}
	at := time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)
	look := func(pid int, queries uint64, response time.Duration) process.Status {
		counters := proxy.Counters{Clients: 3, ClientsTLS: 1, Queries: queries, ResponseTime: response, Pins: map[proxy.PinReason]uint64{proxy.PinListen: queries}}
		return process.Status{
			PID: pid, MaxServers: 50, Pool: pool.Stats{Servers: 2, Requests: queries},
			Endpoints: []process.EndpointStatus{{Name: "default", Counters: counters}, {Name: "ro", Counters: counters}},
			Health:    []process.Health{{State: kurabe.TargetAvailable}},
		}
	}
	var s sampler
	if list := s.samples(a, look(1, 10, 0), at); len(list) != 0 {
		t.Errorf("at first: %v", list)
	}
	list := s.samples(a, look(1, 14, 4*time.Millisecond), at.Add(time.Second))
	for _, c := range []struct {
		metric     string
		want       float64
		dimensions []string
	}{
		{"QueryRequests", 8, []string{"ProxyName", "p"}},
		{"QueryRequests", 4, []string{"EndpointName", "ro", "ProxyName", "p"}},
		{"QueryResponseLatency", 1000, []string{"ProxyName", "p"}},
		{"ClientConnections", 6, []string{"ProxyName", "p"}},
		{"ClientConnectionsNoTLS", 4, []string{"ProxyName", "p"}},
		{"DatabaseConnections", 2, []string{"ProxyName", "p"}},
		{"DatabaseConnectionRequests", 4, []string{"ProxyName", "p", "Target", "db:shop", "TargetGroup", "default"}},
		{"AvailabilityPercentage", 100, []string{"ProxyName", "p"}},
		{"MaxDatabaseConnectionsAllowed", 50, []string{"ProxyName", "p"}},
		{"ProxyPins", 8, []string{"ProxyName", "p", "Reason", "listen"}},
	} {
		if got, ok := find(list, c.metric, c.dimensions...); !ok || got != c.want {
			t.Errorf("%s %v is %v, there: %v; want %v", c.metric, c.dimensions, got, ok, c.want)
		}
	}
	for _, one := range list {
		if one.Labels.Get(catalog.Unit) == "" {
			t.Errorf("%v has no unit", one.Labels)
		}
	}
	if _, ok := find(s.samples(a, look(1, 14, 4*time.Millisecond), at.Add(2*time.Second)), "QueryResponseLatency", "ProxyName", "p"); ok {
		t.Error("a latency without a query")
	}
	if list := s.samples(a, look(2, 3, 0), at.Add(3*time.Second)); len(list) != 0 {
		t.Errorf("another process: %v", list)
	}
}
