package warden

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"kurabe/internal/volume"
)

// Note is what a warden leaves behind that has ended a server.
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

// noteBytesMax: a process that is left takes eight bytes, and a server has some hundred.
const noteBytesMax = 1 << 20

// LastFence reads the note that a warden of this folder left. It stays until Forget.
func LastFence(c Config) (Note, bool, error) {
	path := c.file(noteName)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Note{}, false, nil
	}
	if err == nil && info.Size() > noteBytesMax {
		err = fmt.Errorf("%d bytes are too many", info.Size())
	}
	var raw []byte
	if err == nil {
		raw, err = os.ReadFile(path)
	}
	var n Note
	if err == nil {
		err = json.Unmarshal(raw, &n)
	}
	if err != nil {
		return Note{}, false, fmt.Errorf("read note of the warden: %w", err)
	}
	return n, true, nil
}

// Forget removes the note, once it has been told.
func Forget(c Config) error {
	if err := os.Remove(c.file(noteName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove note of the warden: %w", err)
	}
	return nil
}
