// Package osmetrics makes Enhanced Monitoring: pictures of the operating system around a server, in
// the form of RDSOSMetrics.
//
// What is not known of a control group is absent, never zero.
package osmetrics
