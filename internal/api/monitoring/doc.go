// Package monitoring is CloudWatch: the metrics of databases, and those that users put beside
// them. It translates names, dimensions and statistics; it measures and keeps nothing.
//
// Invariants: an unknown metric has no data and is no error; the data points of one request
// are bounded; a metric of AWS/RDS shows the servers that clients speak with, never a standby.
package monitoring
