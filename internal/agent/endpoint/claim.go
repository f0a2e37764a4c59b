package endpoint

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
	// reader is the reader endpoint of a cluster, which is where the endpoint is, readers those
	// that it leads to; the zero value for none.
	reader  netip.AddrPort
	readers [kurabe.ClusterServers - 1]netip.AddrPort
	open    bool // it takes clients now
	pid     int  // its process, 0: unknown
	// elsewhere: it follows a writer on another host, which has the endpoint. leased: another
	// host may take it over; then it is held while lease says so.
	elsewhere, leased bool
	lease             LeaseState
}

// LeaseState is what is known of the lease of a writer that has one.
type LeaseState int

// Not known: what is there stays as it is.
const (
	LeaseUnknown LeaseState = iota
	LeaseHolds
	LeaseOver
)

// claimOf is nil when the server has nothing to do with an endpoint that others could hold.
func claimOf(a kurabe.Assignment) (*claim, error) {
	if a.Goal != kurabe.GoalRunning || a.Role == nil && a.ListensAt == "" {
		return nil, nil
	}
	c := &claim{generation: a.Generation, holds: a.Writes() && a.ListensAt != "", itself: a.Writes() && a.ListensAt == ""}
	if r := a.Role; r != nil {
		c.epoch, c.grouped, c.leased = r.Epoch, true, r.Leased
		c.elsewhere = r.Duty == kurabe.DutyFollow && r.Source != nil && r.Source.Host != "" && r.Source.Host != a.Host
	}
	if !c.holds {
		return c, nil
	}
	var err error
	if c.endpoint, err = AddrPort(a.Address, a.Port); err == nil {
		c.server, err = AddrPort(a.ListensAt, a.Port)
	}
	if err == nil {
		err = c.claimReaders(a)
	}
	if err != nil {
		return nil, fmt.Errorf("endpoint of %s: %w", a.Name, err)
	}
	return c, nil
}

func (c *claim) claimReaders(a kurabe.Assignment) (err error) {
	if a.ReaderAddress == "" {
		return nil
	}
	if c.reader, err = AddrPort(a.ReaderAddress, a.Port); err != nil || a.Role == nil {
		return err
	}
	for n, address := range a.Role.Readers[:min(len(a.Role.Readers), len(c.readers))] {
		if c.readers[n], err = AddrPort(address, a.Port); err != nil {
			return err
		}
	}
	return nil
}

func AddrPort(address string, port int) (netip.AddrPort, error) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(ip, uint16(port)), nil
}

// held is what is to become of an endpoint that this host can hold.
type held struct {
	keep   bool // it is to be there, or to stay for a while if it is
	linger bool // it is to stay only for whoever writes next
	asItIs bool // it is neither to be begun nor to be given up
	// leased is the writer that it is held for under a lease, "" without one.
	leased  kurabe.InstanceID
	address netip.AddrPort
	route   gateway.Route
	// reader is the reader endpoint, the zero value for none, and readers where it leads to.
	reader  netip.AddrPort
	readers [kurabe.ClusterServers - 1]netip.AddrPort
}

// spread is where the reader endpoint leads to.
func (h held) spread() gateway.Spread {
	s := gateway.Spread{Otherwise: h.route.Writer}
	for _, at := range h.readers {
		if at.IsValid() {
			s.Readers = append(s.Readers, at)
		}
	}
	return s
}

// addresses are those that the host has for it.
func (h held) addresses() []netip.Addr {
	all := []netip.Addr{h.address.Addr()}
	if h.reader.IsValid() {
		all = append(all, h.reader.Addr())
	}
	return all
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
	var whose kurabe.InstanceID
	newest, two, away := epoch, false, false
	for id, c := range claims {
		if c.epoch > newest {
			away = false
		}
		newest = max(newest, c.epoch)
		away = away || c.elsewhere && c.epoch == newest
		if !c.holds && !c.itself {
			continue
		}
		two = writer != nil && (two && c.epoch <= writer.epoch || c.epoch == writer.epoch)
		if writer == nil || c.epoch > writer.epoch {
			writer, whose = &c, id
		}
	}
	nobody := gateway.Route{Epoch: int64(newest)}
	switch {
	case away:
		return held{}
	case writer != nil && writer.leased && writer.lease == LeaseOver:
		return held{} // another host may have it by now
	case writer != nil && writer.leased && writer.holds && writer.lease == LeaseUnknown:
		return held{keep: true, asItIs: true}
	case writer == nil, writer.grouped && writer.epoch < newest, two:
		return held{keep: true, linger: true, route: nobody}
	case writer.itself:
		return held{}
	}
	h := held{keep: true, address: writer.endpoint, route: nobody, reader: writer.reader, readers: writer.readers}
	if writer.leased {
		h.leased = whose
	}
	if writer.open {
		h.route.Writer, h.route.PID = writer.server, writer.pid
	}
	return h
}
