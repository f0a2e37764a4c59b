// Package nameserver answers for the names of endpoints, over UDP and TCP. It is no resolver:
// what is not below the service's own domain it refuses, so a client that has others asks
// those next. What a name leads to is asked of the caller for each question, so an answer is
// as old as the state that this server of the service has seen.
//
// internal/service starts it; nothing else may. It imports no store.
package nameserver
