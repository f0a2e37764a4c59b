package drill

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"kurabe"
)

// Fault is what a host does to one process of its own for a drill: it kills it (the zero
// value), freezes it, or has what the process and its peers say to each other be lost.
type Fault struct {
	Action Action        `json:"action,omitempty"` // Kill, Freeze or Cut; "" is Kill
	For    time.Duration `json:"for,omitempty"`    // of Freeze and Cut
	// Peers are, of Cut, where those listen whom the process is to reach no more.
	Peers []netip.Addr `json:"peers,omitempty"`
}

// peersMax bounds whom a process is cut off from: a cluster has two others.
const peersMax = 16

// Lasts: it has a time, and an end.
func (f Fault) Lasts() bool { return f.Action == Freeze || f.Action == Cut }

// Check refuses what no drill asks for.
func (f Fault) Check() error {
	wrong := func(format string, args ...any) error {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, format, args...)
	}
	switch {
	case f.Action != "" && f.Action != Kill && !f.Lasts():
		return wrong("unknown fault %.80q; a host can kill, freeze or cut", f.Action)
	case f.Lasts() && (f.For < FreezeMin || f.For > FreezeMax):
		return wrong("%v is not between %v and %v", f.For, FreezeMin, FreezeMax)
	case !f.Lasts() && f.For != 0:
		return wrong("a kill takes no duration (%v)", f.For)
	case f.Action != Cut && len(f.Peers) > 0:
		return wrong("only a cut takes peers")
	case f.Action == Cut && (len(f.Peers) == 0 || len(f.Peers) > peersMax):
		return wrong("a cut takes 1 to %[2]d peers, not %[1]d", len(f.Peers), peersMax)
	case slices.ContainsFunc(f.Peers, func(a netip.Addr) bool { return !a.Is4() }):
		return wrong("only peers with IPv4 addresses can be cut off")
	}
	return nil
}

// Is says whether two are the same.
func (f Fault) Is(other Fault) bool {
	return f.Lasts() == other.Lasts() && (!f.Lasts() || f.Action == other.Action) && f.For == other.For && slices.Equal(f.Peers, other.Peers)
}

// Done says what is done to a server, as in "it is killed".
func (f Fault) Done() string {
	switch f.Action {
	case Freeze:
		return fmt.Sprintf("frozen for %v", f.For)
	case Cut:
		return fmt.Sprintf("cut off from %s for %v", f.others(), f.For)
	}
	return "killed"
}

// did says what was done to a process, as in "the host has killed process 7".
func (f Fault) did(pid int) string {
	switch f.Action {
	case Freeze:
		return fmt.Sprintf("frozen process %d and its children", pid)
	case Cut:
		return fmt.Sprintf("cut process %d off from %s", pid, f.others())
	}
	return fmt.Sprintf("killed process %d", pid)
}

func (f Fault) others() string {
	if len(f.Peers) == 1 {
		return "another server"
	}
	return fmt.Sprintf("%d other servers", len(f.Peers))
}
