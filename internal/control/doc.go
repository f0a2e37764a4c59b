// Package control holds the use cases of the service: what each request means,
// what is valid, which specs it writes, and the read models that Describe
// requests are answered from.
//
// It speaks Kurabe's own nouns; AWS's names stop at internal/api. It writes
// specs only (and the events of a write, in the same transaction) and reads
// everything from the store's view; it never calls an agent. A request returns
// when its spec is stored and this process's view shows it, so a caller reads
// its own writes.
//
// Called by internal/api alone.
package control
