package kurabe

import "time"

// The lease of a writer that a server on another host may replace. Times are of CLOCK_BOOTTIME
// of the host that they are said of, which nobody sets and which counts suspension; clocks of
// two hosts may differ in their rate by a tenth, and in nothing else that matters.
const (
	// LeaseTime is how long a host may serve after it sent the word that the service has
	// answered last.
	LeaseTime = 3500 * time.Millisecond
	// HostLostAfter is the silence after which the service calls a host lost, counted from the
	// last word that it received. By then the lease has ended: LeaseTime and a tenth, and
	// half a second to end the server in.
	HostLostAfter = 4500 * time.Millisecond
	// StandbyLeaseTime is how long a writer may serve after a moment at which its standby followed
	// it: so losing the service alone ends nothing.
	StandbyLeaseTime = 1800 * time.Millisecond
	// OldLeaseWait is how long a standby keeps clients out when it takes over from a writer
	// that is not heard, counted from when it follows no more: StandbyLeaseTime, a tenth, and what
	// it takes to end a server.
	OldLeaseWait = 2300 * time.Millisecond
)
