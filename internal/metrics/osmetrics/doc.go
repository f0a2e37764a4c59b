// Package osmetrics makes and keeps Enhanced Monitoring: pictures of the operating system around
// a server, in the form of RDSOSMetrics.
//
// What is not known of a control group is absent, never zero. What is kept of a server is at most
// bytesMax, of a day.
package osmetrics
