package warden

import (
	"encoding/json"
	"net/netip"
	"time"

	"kurabe/internal/volume"
)

// Note is what a warden leaves behind that has ended a server, for people.
type Note struct {
	Reason   string    `json:"reason"`
	Until    int64     `json:"until"`    // end of the lease, CLOCK_BOOTTIME
	Boottime int64     `json:"boottime"` // when the fence began
	BootID   string    `json:"boot_id"`  // what both of them count from
	At       time.Time `json:"at"`       // the same moment on the wall

	Killed     int   `json:"killed"`  // processes
	DeadMillis int64 `json:"dead_ms"` // until those that were found first had ended

	// What could not be ended within a minute, because the kernel holds it.
	Left          []int        `json:"left,omitempty"`
	LeftAddresses []netip.Addr `json:"left_addresses,omitempty"`
	Error         string       `json:"error,omitempty"`
}

const noteMode = 0o600

func (n Note) write(c Config) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return volume.AtomicWrite(c.file(noteName), raw, noteMode)
}
