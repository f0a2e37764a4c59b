// Package gateway holds endpoints that the writer of an instance cannot hold itself: a
// client's bytes go to whoever is the writer of the newest epoch that was told.
//
// Readers is the other kind, that leads to one of several servers, and has no epochs: it is
// told whom it may lead to, and who writes.
//
// It knows no protocol. What an Endpoint adds to one is written down here:
//
//   - A route has an epoch, and a lower one is refused: whoever was deposed cannot be
//     routed to again by somebody who has not heard of it. Within an epoch the writer
//     never changes.
//   - A new epoch ends every session of an older one at once, with a reset, so that no
//     client waits for an answer of a server that may not answer any more, or reads from
//     one that others have left.
//   - Nothing is read from a client before its server is connected, so a client can be
//     held while there is no writer, and a server that was connected under an older epoch
//     be given up, without a byte being lost.
//   - What is held is bounded, in number and in time.
//
// Known limits, where there is no shortcut (shortcut.go), by which the kernel leads clients
// to the writer's own socket. The bytes pass through the process of the agent: when that
// ends, all sessions through its endpoints end with it, while those of a writer that holds
// its endpoint itself go on. And a server sees the gateway's address as that of its client.
//
// Called by internal/agent, which says where each route leads; it decides nothing.
package gateway
