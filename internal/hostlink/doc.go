// Package hostlink is how an agent learns what its host must run and keep, and
// says what it sees: assignments are pulled, reports are pushed.
//
// Link is shaped for a network: values go in and out, nothing is shared, every
// call may fail, and a watch may repeat or be cut. Local implements it in one
// process over the store; Remote over the network, with Server at the other end;
// hostlinktest.Faulty wraps any Link and drops, delays and repeats. All pass the
// suite in hostlinktest. Server also knows which hosts are heard.
//
// Of several servers of the service the elected planner's alone answers a host; every
// other one says where that is. So one clock says who is there: a host that was heard at
// a moment may count on it from when it began to speak, and nobody calls it lost sooner
// than silenceMax after that. Home is the link of a server's own agent.
//
// Questions to hosts and their answers (hostread) go the same way, and straight between a host and
// every server that it reaches: reads alone, which need no elected planner (carry.go).
//
// A host is one machine: of two with one certificate the one that has its place is served,
// and the other one when that is lost (place.go).
//
// What must not live here: what an assignment means. A Link does not compare
// generations; the agent refuses a lower one.
package hostlink
