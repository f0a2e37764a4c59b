package endpoint

import (
	"net/netip"
	"time"

	"kurabe"
)

// announcements are when, after it is held, the neighbours are told where an endpoint is:
// more than once, since a word can be lost.
var announcements = []time.Duration{0, 100 * time.Millisecond, 500 * time.Millisecond, 1200 * time.Millisecond, 3 * time.Second}

// announce tells the neighbours where an endpoint is, and when it is to be told again; 0: when
// something changes, or never.
func (e *Table) announce(owner kurabe.InstanceID, h *heldEndpoint, want held, now time.Time) (again time.Duration) {
	if want.route.Writer.IsValid() {
		h.led = kurabe.Epoch(want.route.Epoch)
	}
	if e.Addresses.of == nil || h.announced == len(announcements) || gone(h, want) {
		return 0
	}
	if rest := h.since.Add(announcements[h.announced]).Sub(now); rest > 0 {
		return rest
	}
	if want.leased != "" && e.Guarded != nil && !e.Guarded(want.leased) {
		return retryPause // either it goes on, or somebody says in a moment that it is over
	}
	for _, at := range []netip.AddrPort{h.address, h.readersAt} {
		if !at.IsValid() {
			continue
		}
		if err := e.Addresses.of.Announce(at.Addr()); err != nil {
			e.trouble(owner, h, err)
		}
	}
	if h.announced++; h.announced == len(announcements) {
		return 0
	}
	return max(time.Millisecond, h.since.Add(announcements[h.announced]).Sub(now))
}

// gone says whether the writer of an endpoint has handed over or has ended, so that the
// endpoint may be another host's before this one hears of it. What is announced after the
// other host has said that it has it would lead clients back to here, where nobody answers:
// they lose a second with the first SYN.
func gone(h *heldEndpoint, want held) bool {
	return want.linger || !want.route.Writer.IsValid() && h.led > 0 && h.led == kurabe.Epoch(want.route.Epoch)
}
