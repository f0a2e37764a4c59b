package service

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"kurabe"
	"kurabe/internal/agent/endpoint"
	"kurabe/internal/netaddr"
	"kurabe/internal/volume"
)

// hostFile is what a host decides once, at its first start.
type hostFile struct {
	ID          kurabe.HostID `json:"id"`
	AddressPool string        `json:"addressPool"`
}

// loadHostFile reads DATA/host.json, or makes it. pool, when not empty, takes
// the place of the pool kept there.
func loadHostFile(data, pool string) (hostFile, error) {
	path := filepath.Join(data, "host.json")
	var h hostFile
	raw, err := os.ReadFile(path)
	switch {
	case err == nil:
		if err := json.Unmarshal(raw, &h); err != nil || h.ID == "" {
			return h, fmt.Errorf("%s cannot be read (%v); restore it from a backup: the databases of this host are known by the id in it", path, err)
		}
	case errors.Is(err, fs.ErrNotExist):
		var b [5]byte
		rand.Read(b[:]) // never fails
		h.ID = kurabe.HostID("host-" + hex.EncodeToString(b[:4]))
		// Services beside each other on one machine must not fight for endpoints:
		// each takes a /24 at random, and leaves an address that is taken.
		h.AddressPool = fmt.Sprintf("127.66.%d.0/24", b[4])
	default:
		return h, fmt.Errorf("read %s: %w", path, err)
	}
	if pool != "" {
		h.AddressPool = pool
	}
	if err := checkPool(h.AddressPool); err != nil {
		return h, err
	}
	encoded, err := json.Marshal(h)
	if err != nil {
		return h, err
	}
	if string(encoded) == string(raw) {
		return h, nil
	}
	return h, volume.AtomicWrite(path, encoded, 0o600)
}

// checkPool refuses what can be no pool: without room for an endpoint, or so large that it
// cannot be this host's alone.
func checkPool(text string) error {
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil || prefix != prefix.Masked():
		return fmt.Errorf("invalid --address-pool %q; examples: 127.66.0.0/16, 10.0.0.64/27", text)
	case prefix.Bits() < 8 || prefix.Addr().BitLen()-prefix.Bits() < 2:
		return fmt.Errorf("--address-pool %q: a pool has 2 to 2^24 addresses beside its first and last", text)
	case !prefix.Addr().Is4():
		return fmt.Errorf("--address-pool %q: endpoints have addresses of IPv4", text)
	}
	return nil
}

// addresses makes the endpoints' addresses ones of this machine, nil where they are.
func (h hostFile) addresses() (endpoint.Network, error) {
	prefix, err := netip.ParsePrefix(h.AddressPool)
	if err != nil {
		return nil, err
	}
	pool, err := netaddr.Open(prefix)
	if err != nil {
		return nil, fmt.Errorf("--address-pool %s: %w", h.AddressPool, err)
	}
	if pool == nil {
		return nil, nil
	}
	return movable{pool, prefix}, nil
}

// network is the one that the pool is a part of, and this machine's address there; "" without one
// that others could be in.
func (h hostFile) network() (network, own string) {
	prefix, err := netip.ParsePrefix(h.AddressPool)
	if err != nil {
		return "", ""
	}
	if pool, err := netaddr.Open(prefix); err == nil && pool != nil {
		return pool.Network().String(), pool.Own().String()
	}
	return "", ""
}

// movable holds endpoints that come from other hosts' pools beside those of its own.
type movable struct {
	*netaddr.Pool
	own netip.Prefix
}

// Hold implements endpoint.Network.
func (m movable) Hold(a netip.Addr) error {
	if m.own.Contains(a) {
		return m.Pool.Hold(a)
	}
	return m.HoldMoving(a)
}

// Drop implements endpoint.Network.
func (m movable) Drop(a netip.Addr) error {
	if m.own.Contains(a) {
		return m.Pool.Drop(a)
	}
	return m.DropMoving(a)
}

// Held implements endpoint.Network.
func (m movable) Held() ([]netip.Addr, error) {
	own, err := m.Pool.Held()
	if err != nil {
		return nil, err
	}
	moving, err := m.Moving()
	return append(own, moving...), err
}

// Announce implements endpoint.Network.
func (m movable) Announce(a netip.Addr) error { return netaddr.Announce(a) }
