// Package scope is the base of all use cases: whose resources a request is about, the store
// that has them, and the clock. It decides nothing of any resource.
package scope
