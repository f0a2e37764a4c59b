package process

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/proxy/pool"
)

// Health is how the newest login at a server went.
type Health struct {
	Address     netip.AddrPort           `json:"address"`
	State       kurabe.ProxyHealth       `json:"state"`
	Reason      kurabe.ProxyHealthReason `json:"reason,omitempty"`
	Description string                   `json:"description,omitempty"`
	At          time.Time                `json:"at"`
}

const (
	// probeEvery is how often a server is tried that works, probeAgain one that does not.
	probeEvery = 10 * time.Second
	probeAgain = time.Second
	probeTime  = 5 * time.Second
	// probeUsersMax bounds the users with which a login is tried before the server counts as
	// one that refuses them.
	probeUsersMax = 4
	// descriptionMax bounds a server's own words.
	descriptionMax = 300
)

// note keeps how a login went.
func (o *opener) note(address netip.AddrPort, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.health[address] = judge(address, err, time.Now().UTC())
}

// judge says in RDS's words what an error of a login means.
func judge(address netip.AddrPort, err error, now time.Time) Health {
	h := Health{Address: address, State: kurabe.TargetAvailable, At: now}
	if err == nil {
		return h
	}
	h.State, h.Reason, h.Description = kurabe.TargetUnavailable, kurabe.TargetConnectionFailed, err.Error()
	h.Description = h.Description[:min(len(h.Description), descriptionMax)]
	var dial *net.OpError
	var refused *pool.Refused
	switch {
	case errors.As(err, &refused):
		h.Reason = kurabe.TargetAuthFailure
	case errors.As(err, &dial) && dial.Op == "dial":
		h.Reason = kurabe.TargetUnreachable
	}
	return h
}

// probe logs in at the servers of the route now and then, so that their health is known while
// no client needs a connection.
func (o *opener) probe(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(probeAgain):
		}
		servers := o.servers()
		o.mu.Lock()
		maps.DeleteFunc(o.health, func(a netip.AddrPort, _ Health) bool { return !slices.Contains(servers, a) })
		known := maps.Clone(o.health)
		o.mu.Unlock()
		for _, address := range servers {
			h, tried := known[address]
			if !tried || h.State != kurabe.TargetAvailable || time.Since(h.At) >= probeEvery {
				o.note(address, o.login(address))
			}
		}
	}
}

// servers are those of the route.
func (o *opener) servers() []netip.AddrPort {
	r := o.route.Load()
	all := slices.Clone(r.Readers)
	if r.Writer.IsValid() && !slices.Contains(all, r.Writer) {
		all = append(all, r.Writer)
	}
	return all
}

// errNoUser is why nobody can log in.
var errNoUser = &pool.Refused{Err: errors.New("the proxy has no registered credentials")}

// login tries the first users until one is let in.
func (o *opener) login(address netip.AddrPort) error {
	settings := o.settings.Load()
	failure := error(errNoUser)
	for n, name := range slices.Sorted(maps.Keys(settings.Users)) {
		if n == probeUsersMax {
			break
		}
		opened, err := o.mine.Open(pool.Key{Database: o.speaks.database, User: name}, address, time.Now().Add(probeTime))
		if err == nil {
			o.speaks.leave(opened)
			return nil
		}
		failure = err
		if refused := (*pool.Refused)(nil); !errors.As(err, &refused) {
			break
		}
	}
	return failure
}

// told lists what is known, by address.
func (o *opener) told() []Health {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.SortedFunc(maps.Values(o.health), func(a, b Health) int { return a.Address.Compare(b.Address) })
}
