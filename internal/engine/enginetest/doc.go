// Package enginetest is the suite that every engine.Driver passes: a real server
// is made from a template, started, used over its endpoint, changed, broken and
// recovered, through the same steps that the agent takes.
//
// It knows no engine: what differs comes in a Setup. The test binary that calls
// Run must begin with proc.ShimMain when proc.IsShim says so.
package enginetest
