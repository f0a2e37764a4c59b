// Package drill rehearses the loss of a server: it kills, freezes or cuts off servers of an
// instance that has several, or asks for a failover, while a client writes numbered rows, and tells
// what the client saw and who decided what.
//
// It decides nothing itself and touches no record of the service. It sees the service by
// what the service tells (interface Service), the database by its endpoint, and processes
// by the records of the host it runs on. Called by the command kurabe drill. Invariants:
//
//   - A process is signalled only as the one of its record: pid, start time, boot. One of
//     another host is struck by the agent there (Permits), which was asked for that process
//     not long before, and does it once.
//   - What was frozen goes on: by the drill when the time is up or it is interrupted, by a
//     guard (GuardMain), which is a process of its own, when the drill has died. A cut ends in
//     the kernel (netcut). On another host the agent is in the drill's place, and ends either
//     when it hears nothing of the drill for HoldTime.
//   - The database keeps nothing of it: all is in one schema, dropped at the end. One that
//     a killed drill left is dropped by the next, and only when the drill that its comment
//     names has ended.
package drill
