// Package metrics renders what is known of the service's databases as a page of OpenMetrics,
// which Prometheus and its like read. It is called by the service for GET /metrics.
//
// It samples nothing and keeps nothing: each page is of the moment, or the last seconds, at which
// it was asked for.
// Invariant: what is not known has no sample, since any number would be taken for true.
package metrics
