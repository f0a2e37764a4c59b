package simulated

import (
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

// disk is how much room others leave on a host's disk.
type disk int

const (
	roomy disk = iota
	// nearlyFull: writers can write, and those that grow are to stop.
	nearlyFull
	// fullDisk: nothing can be written, and whatever becomes free is taken.
	fullDisk
)

const (
	gib         = int64(1) << 30
	reserveSize = gib / 4
)

// fill has others take a disk, or leave it.
func (h *host) fill(d disk) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.disk = d
}

func (h *host) room() disk {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.disk
}

func (h *host) isFull() bool { return h.room() == fullDisk }

// free is what is free beside the reserve. It falls, since servers grow.
func (h *host) free() int64 {
	switch h.room() {
	case nearlyFull:
		return reserveSize * 3 / 4
	case fullDisk:
		return 0
	}
	return 100*gib - grown()
}

// usage is what a server takes. It grows by a megabyte a second, and each quarter of an hour
// somebody removes what has become old.
func (h *host) usage(kurabe.InstanceID) (int64, error) { return 1<<20 + grown(), nil }

func grown() int64 {
	const cycle = 15 * time.Minute
	since := time.Duration(time.Now().UnixNano()) % cycle
	return int64(since.Seconds() * (1 << 20))
}

// Reserve is the host's.
func (d *driven) Reserve() (engine.Reserve, error) { return reserve{d.h}, nil }

// reserve is one that others take when it is given up.
type reserve struct{ h *host }

// Bytes implements engine.Reserve.
func (reserve) Bytes() int64 { return reserveSize }

// Held implements engine.Reserve.
func (r reserve) Held() bool {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	return !r.h.spent
}

// Make implements engine.Reserve.
func (r reserve) Make() error {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	r.h.spent = false
	return nil
}

// Free implements engine.Reserve.
func (r reserve) Free() error {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	r.h.spent = true
	return nil
}

// fills has the disk of a machine fill, which takes no time, until it has room again.
func fills(to disk) func(w *world) func() {
	return func(w *world) func() {
		h, _ := w.some()
		if h.room() != roomy {
			return nil
		}
		h.fill(to)
		return func() {
			h.fill(roomy)
			w.filled = time.Now()
		}
	}
}

// leftAgain is how long a disk that was left is no place to go to (internal/plan): clients of disks
// that fill in turn may have to wait.
const leftAgain = time.Minute

// inTurn says whether a fault is one of disks that fill in turn.
func (w *world) inTurn(f fault) bool { return f.fills && time.Since(w.filled) <= leftAgain }
