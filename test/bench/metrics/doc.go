// Package metrics measures the price of the metrics: of idle instances, and for clients under
// load. The service is stopped by a signal for the measurements without: servers go on without
// it, and nobody samples them.
package metrics
