// Package tokenize takes the values out of statements, so that those that differ in nothing else
// are one, and what is kept or logged of them holds no secret. It is pure.
//
// Called by internal/load, and by the proxy when it logs statements.
package tokenize
