// Package query is "kurabe query": it asks CloudWatch Logs Insights of the service through the
// public API, and prints the rows.
package query
