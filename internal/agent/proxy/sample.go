package proxy

import (
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/metrics/catalog"
	"kurabe/internal/metrics/series"
	"kurabe/internal/proxy"
	"kurabe/internal/proxy/process"
)

// Appender keeps the samples of a moment.
type Appender interface {
	Append(at time.Time, samples []series.Sample) error
}

// units are those of the metrics of proxies.
var units = func() map[string]string {
	m := map[string]string{}
	for _, d := range catalog.Proxies {
		m[d.Name] = d.Unit
	}
	return m
}()

// sampler makes samples of what a proxy has counted from one look to the next.
type sampler struct {
	name, target string
	before       *process.Status
	at           time.Time
	labels       map[string]series.Labels
	once         unit.LogOnce
}

// samples are those between two looks at one process, none at first.
func (s *sampler) samples(a kurabe.ProxyAssignment, now process.Status, at time.Time) (list []series.Sample) {
	before := s.before
	s.before = &now
	if s.name != a.Name || s.target != a.Target {
		s.name, s.target, s.labels = a.Name, a.Target, map[string]series.Labels{}
	}
	if before == nil || before.PID != now.PID || before.Began != now.Began || at.Truncate(time.Second).Equal(s.at) {
		return nil
	}
	s.at = at.Truncate(time.Second)
	all, allBefore := sum(now), sum(*before)
	add := func(values map[string]float64, dimensions ...string) {
		for metric, value := range values {
			list = append(list, series.Sample{Labels: s.label(catalog.RDS, metric, dimensions), Value: value})
		}
	}
	add(clientSide(all, allBefore))
	for _, e := range now.Endpoints {
		for _, b := range before.Endpoints {
			if b.Name == e.Name {
				add(clientSide(e.Counters, b.Counters), catalog.EndpointOf, e.Name)
			}
		}
	}
	servers := serverSide(now, *before, all, allBefore)
	add(servers)
	if a.Target != "" {
		add(servers, catalog.Target, a.Target, catalog.TargetGroup, kurabe.ProxyTargetGroup)
	}
	for reason, n := range all.Pins {
		if reason != "" {
			labels := s.label(catalog.Kurabe, "ProxyPins", []string{catalog.PinReason, string(reason)})
			list = append(list, series.Sample{Labels: labels, Value: float64(n - allBefore.Pins[reason])})
		}
	}
	return list
}

// label is that of a metric with these dimensions beside the proxy's name, sorted by their
// names.
func (s *sampler) label(namespace, metric string, dimensions []string) series.Labels {
	key := metric + "\n" + strings.Join(dimensions, "\n")
	if labels := s.labels[key]; labels != nil {
		return labels
	}
	named := append([]string{catalog.ProxyName, s.name}, dimensions...)
	if len(dimensions) > 0 && dimensions[0] < catalog.ProxyName {
		named = append(append([]string{}, dimensions...), catalog.ProxyName, s.name)
	}
	pairs, names := []string{catalog.Namespace, namespace, catalog.Metric, metric, catalog.Unit, units[metric]}, ""
	for n := 0; n < len(named); n += 2 {
		pairs = append(pairs, catalog.DimensionPrefix+named[n], named[n+1])
		names += named[n] + "\n"
	}
	s.labels[key] = series.NewLabels(append(pairs, catalog.DimensionNames, names)...)
	return s.labels[key]
}

// sum adds the counters of the endpoints up.
func sum(s process.Status) (c proxy.Counters) {
	c.Pins = map[proxy.PinReason]uint64{}
	for _, e := range s.Endpoints {
		o := e.Counters
		c.Clients, c.ClientsTLS, c.InTransaction, c.Pinned = c.Clients+o.Clients, c.ClientsTLS+o.ClientsTLS, c.InTransaction+o.InTransaction, c.Pinned+o.Pinned
		c.ClientsReceived, c.ClientsSucceeded = c.ClientsReceived+o.ClientsReceived, c.ClientsSucceeded+o.ClientsSucceeded
		c.ClientsFailedAuth, c.ClientsClosed = c.ClientsFailedAuth+o.ClientsFailedAuth, c.ClientsClosed+o.ClientsClosed
		c.Queries, c.QueriesTLS, c.ServersTLS = c.Queries+o.Queries, c.QueriesTLS+o.QueriesTLS, c.ServersTLS+o.ServersTLS
		c.ResponseTime, c.DatabaseTime = c.ResponseTime+o.ResponseTime, c.DatabaseTime+o.DatabaseTime
		for reason, n := range o.Pins {
			c.Pins[reason] += n
		}
	}
	return c
}

// since is what a counter has counted. One that has fallen, as when an endpoint went, tells
// nothing.
func since(now, before uint64) float64 {
	if now < before {
		return 0
	}
	return float64(now - before)
}

func clientSide(now, before proxy.Counters) map[string]float64 {
	queries, encrypted := since(now.Queries, before.Queries), since(now.QueriesTLS, before.QueriesTLS)
	values := map[string]float64{
		"ClientConnections": float64(now.Clients), "ClientConnectionsTLS": float64(now.ClientsTLS),
		"ClientConnectionsNoTLS":           float64(now.Clients - now.ClientsTLS),
		"ClientConnectionsReceived":        since(now.ClientsReceived, before.ClientsReceived),
		"ClientConnectionsSetupSucceeded":  since(now.ClientsSucceeded, before.ClientsSucceeded),
		"ClientConnectionsSetupFailedAuth": since(now.ClientsFailedAuth, before.ClientsFailedAuth),
		"ClientConnectionsClosed":          since(now.ClientsClosed, before.ClientsClosed),
		"QueryRequests":                    queries, "QueryRequestsTLS": encrypted, "QueryRequestsNoTLS": queries - encrypted,
	}
	mean(values, "QueryResponseLatency", now.ResponseTime-before.ResponseTime, queries)
	mean(values, "QueryDatabaseResponseLatency", now.DatabaseTime-before.DatabaseTime, queries)
	return values
}

func serverSide(now, before process.Status, all, allBefore proxy.Counters) map[string]float64 {
	p, q := now.Pool, before.Pool
	requests := since(p.Requests, q.Requests)
	values := map[string]float64{
		"DatabaseConnections": float64(p.Servers), "DatabaseConnectionsCurrentlyBorrowed": float64(p.Borrowed),
		"DatabaseConnectionsCurrentlyInTransaction": float64(all.InTransaction), "DatabaseConnectionsCurrentlySessionPinned": float64(all.Pinned),
		"DatabaseConnectionsWithTLS": float64(all.ServersTLS), "MaxDatabaseConnectionsAllowed": float64(now.MaxServers),
		"DatabaseConnectionRequests":        requests,
		"DatabaseConnectionsSetupSucceeded": since(p.Opened, q.Opened),
		"DatabaseConnectionsSetupFailed":    since(p.Failed, q.Failed),
		"AvailabilityPercentage":            0,
	}
	for _, h := range now.Health {
		if h.State == kurabe.TargetAvailable {
			values["AvailabilityPercentage"] = 100
		}
	}
	mean(values, "DatabaseConnectionsBorrowLatency", p.BorrowTime-q.BorrowTime, requests)
	return values
}

// mean adds the mean time in microseconds, if there was anything.
func mean(values map[string]float64, name string, time time.Duration, n float64) {
	if n > 0 && time >= 0 {
		values[name] = float64(time.Microseconds()) / n
	}
}
