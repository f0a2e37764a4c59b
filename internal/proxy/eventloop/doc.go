// Package eventloop moves bytes between many connections on one thread: an epoll loop, the
// connections that it owns, their buffers, and TLS without a goroutine for each connection.
//
// It knows no protocol. A Handler is given what arrived and says how much of it is done; the
// rest is kept and given again together with what comes next. Everything that belongs to a
// loop (its connections, their handlers and whatever those share) is touched on the loop's
// thread only, so that none of it needs a lock; others reach it by Loop.Do.
//
// What it holds to:
//   - A connection that is idle holds no buffer.
//   - Nothing is allocated for a message that fits the loop's buffers.
//   - Write never blocks and never refuses: a handler that sees Full pauses whatever feeds
//     the connection, and Drained tells it to go on. So what waits is bounded by
//     FullBytes and one reading.
//   - A connection takes its turn: one reading of at most readBytes each time around.
//   - Closed is called exactly once, never from inside Write, Pause, Resume or Close.
//
// Called by internal/proxy and its protocols.
package eventloop
