// Package replication keeps what repeated looks at one server have shown: whom a primary has
// not heard of, which standby has every commit, how far a follower is behind, whether the
// server answers at all.
//
// It is pure: the time comes with each look. Invariants: only a missing answer makes a server
// stuck, never a refusal, and never the time in which the whole machine stood still. Called by
// agent.
package replication
