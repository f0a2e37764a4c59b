// Package failover loses servers of instances and of clusters under a client that writes, beside
// the same losses under Patroni, and prices a second server, a read replica and the endpoint.
//
// Each loss is a record of the raw file, so that a later run goes on with it: see Book.
package failover
