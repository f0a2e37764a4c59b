package agent

import (
	"fmt"
	"net/netip"

	"kurabe"
	"kurabe/internal/gateway"
)

// claim is what the assignment of one server means for the endpoint of its instance.
type claim struct {
	generation kurabe.Generation
	// holds: it is the writer's and listens elsewhere. itself: it is the writer's and
	// listens at the endpoint. Neither: it writes no more, or not yet.
	holds, itself bool
	epoch         kurabe.Epoch
	grouped       bool           // it has an epoch
	endpoint      netip.AddrPort // that clients connect to
	server        netip.AddrPort // where it listens
	open          bool           // it takes clients now
	pid           int            // its process, 0: unknown
}

// claimOf is nil when the server has nothing to do with an endpoint that others could hold.
func claimOf(a kurabe.Assignment) (*claim, error) {
	if a.Goal != kurabe.GoalRunning || a.Role == nil && a.ListensAt == "" {
		return nil, nil
	}
	c := &claim{generation: a.Generation, holds: a.Writes() && a.ListensAt != "", itself: a.Writes() && a.ListensAt == ""}
	if a.Role != nil {
		c.epoch, c.grouped = a.Role.Epoch, true
	}
	if !c.holds {
		return c, nil
	}
	var err error
	if c.endpoint, err = addrPort(a.Address, a.Port); err == nil {
		c.server, err = addrPort(a.ListensAt, a.Port)
	}
	if err != nil {
		return nil, fmt.Errorf("endpoint of %s: %w", a.Name, err)
	}
	return c, nil
}

func addrPort(address string, port int) (netip.AddrPort, error) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(ip, uint16(port)), nil
}

// held is what is to become of an endpoint that this host can hold.
type held struct {
	keep    bool // it is to be there, or to stay for a while if it is
	linger  bool // it is to stay only for whoever writes next
	address netip.AddrPort
	route   gateway.Route
}

// wantHeld decides by the claims of all servers of an instance here. epoch is the highest
// one that was followed.
//
// A server that was deposed may hear of it after others, so the newest epoch counts,
// whoever tells of it; and while its writer is unknown here, clients wait.
func wantHeld(claims map[kurabe.InstanceID]claim, epoch kurabe.Epoch) held {
	if len(claims) == 0 {
		return held{}
	}
	var writer *claim
	newest, two := epoch, false
	for _, c := range claims {
		newest = max(newest, c.epoch)
		if !c.holds && !c.itself {
			continue
		}
		two = writer != nil && (two && c.epoch <= writer.epoch || c.epoch == writer.epoch)
		if writer == nil || c.epoch > writer.epoch {
			writer = &c
		}
	}
	nobody := gateway.Route{Epoch: int64(newest)}
	switch {
	case writer == nil, writer.grouped && writer.epoch < newest, two:
		return held{keep: true, linger: true, route: nobody}
	case writer.itself:
		return held{}
	}
	h := held{keep: true, address: writer.endpoint, route: nobody}
	if writer.open {
		h.route.Writer, h.route.PID = writer.server, writer.pid
	}
	return h
}
