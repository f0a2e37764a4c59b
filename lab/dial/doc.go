// Package dial opens sessions of a database server for the lab: where it is, who asks,
// and rows as text for the little that is asked beside the load. Generators that count
// microseconds open their own sessions from the same Server.
package dial
