// Package proxy has the use cases of DB proxies: it checks and writes what users ask for. A proxy
// is one record with its endpoints, its target group and its target; what hosts make of it is
// planned elsewhere.
package proxy
