// Package load makes the load of a trial and counts what clients see: an own generator
// for PostgreSQL, MariaDB and MySQL, and pgbench and sysbench as two that others wrote.
//
// The invariants of the own generator, and what breaks without them:
//
//   - No coordinated omission. Arrivals of open load are points in time, computed from
//     the seed and the rate alone; an answer's time counts from that point. A server
//     that stalls delays the arrivals of the stall, and each of them shows it. Otherwise
//     a stall of a second among a thousand requests is one slow request.
//   - Nothing vanishes. Offered = answered + failed + skipped, in every phase. A request
//     belongs to the phase in which it was due, also when its answer comes in a later
//     one: the writers that a change blocks to its end belong to the change.
//   - Same seed, same arrivals and same keys, whichever client serves an arrival.
//     Variants of a block are compared request by request.
//   - Clients of a thread end one after the other, as pgbench's do: one whose answer is there
//     by the time it has asked goes on, and passes at the end of its transaction. In turns
//     all would end as late as the last, which p95 shows; without the pass one whose answers
//     are always there would shut the others out.
//   - Recording does not contend: a worker writes to memory of its own and takes the
//     common lock once per recorderSamples values.
//
// Workers pull: one that is free takes the next arrival and sleeps until it is due. So
// there is no dispatcher to hand it on, and the queue is the part of the schedule that
// is due and not taken. Sleep is the kernel's: where latency is asked for the limit of a
// thread's wait (ppoll) without its slack, where throughput is a timer (timerfd) in Go's
// network poller; Go's own timers may fire a millisecond late in an idle process.
// BenchmarkAlarm measures how late, and each result says so (lag_p99_ms).
//
// Called by run. It creates no server and changes no setting.
package load
