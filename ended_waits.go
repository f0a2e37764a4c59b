package kurabe

import "time"

// WaitCount counts commits that ended their wait for a standby before one had answered. They
// are committed at their server nevertheless, and other sessions see them.
type WaitCount struct {
	// Cancelled are those whose statements were cancelled: their clients were answered, with a
	// warning. Ended are those whose sessions were ended, which had no answer any more.
	Cancelled int64 `json:"cancelled,omitempty"`
	Ended     int64 `json:"ended,omitempty"`
}

// Sum is how many they are.
func (c WaitCount) Sum() int64 { return c.Cancelled + c.Ended }

// Plus adds two counts.
func (c WaitCount) Plus(d WaitCount) WaitCount {
	return WaitCount{c.Cancelled + d.Cancelled, c.Ended + d.Ended}
}

// Since is what came after an earlier count. One that has fallen has begun anew.
func (c WaitCount) Since(earlier WaitCount) WaitCount {
	if c.Cancelled < earlier.Cancelled || c.Ended < earlier.Ended {
		return c
	}
	return WaitCount{c.Cancelled - earlier.Cancelled, c.Ended - earlier.Ended}
}

// ServerWaits is what one server tells of them.
type ServerWaits struct {
	WaitCount // since it came into its group
	// Unreplicated: no other server is known to have the newest of them.
	Unreplicated bool `json:"alone,omitempty"`
	// Uncounted: the server was told not to write of them, so there may be more.
	Uncounted bool `json:"unseen,omitempty"`
}

// EndedWaits is what users are told of them.
type EndedWaits struct {
	WaitCount             // since the instance was made
	Announced   WaitCount `json:"told,omitzero"` // those of them that events have told of
	AnnouncedAt time.Time `json:"toldAt,omitzero"`
	// UnreplicatedAt is the server that alone had those which were told last, "" when that is over.
	UnreplicatedAt InstanceID `json:"aloneAt,omitempty"`
	// Uncounted: see ServerWaits, of the primary.
	Uncounted bool `json:"unseen,omitempty"`
}
