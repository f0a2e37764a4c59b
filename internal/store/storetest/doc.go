// Package storetest is the suite that every store.KV passes. The real one and
// its memory twin both run it, so that what holds over the twin holds over
// etcd.
package storetest
