package agent

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/endpoint/endpointtest"
)

// leasedElsewhere is a leased primary that listens behind its endpoint.
func leasedElsewhere(generation kurabe.Generation, epoch kurabe.Epoch) kurabe.Assignment {
	a := leasedWriter(generation, 0)
	a.ListensAt, a.Role.Epoch = "127.66.0.3", epoch
	return a
}

// inLeasedEndpoint has one whose endpoint is held on an interface.
func inLeasedEndpoint(t *testing.T, test func(b *bed, endpoint netip.Addr)) {
	t.Helper()
	inGroup(t, func(b *bed) {
		b.leases = &testLeases{b: b, began: time.Now(), grants: true, wanted: map[kurabe.InstanceID]kurabe.Epoch{}}
		b.network = &endpointtest.Network{}
		b.startWriter()
		b.send(leasedElsewhere(3, 1))
		time.Sleep(time.Second)
		synctest.Wait()
		endpoint := netip.MustParseAddr(leasedElsewhere(3, 1).Address)
		if !slices.Contains(b.network.Here, endpoint) || b.endpoints() != 1 {
			b.Fatalf("%d endpoints, at %v", b.endpoints(), b.network.Here)
		}
		test(b, endpoint)
	})
}

// endpoints counts those that were opened.
func (b *bed) endpoints() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held)
}

// A guard has ended the lease and taken the address, and before anybody here has looked there
// is an order for the next epoch, with a lease of its own.
func TestAddressIsTakenBackUnderTheNextLease(t *testing.T) {
	inLeasedEndpoint(t, func(b *bed, endpoint netip.Addr) {
		b.leases.mu.Lock()
		guard := b.leases.guard
		b.leases.mu.Unlock()
		guard.timer.Stop()
		guard.gone()
		b.network.Here = nil
		b.send(leasedElsewhere(4, 2))
		time.Sleep(2 * leaseEvery)
		synctest.Wait()
		if !slices.Contains(b.network.Here, endpoint) {
			b.Errorf("clients find nobody at %v: %v is held", endpoint, b.network.Here)
		}
	})
}

// An order puts the endpoint back to what it knows of itself, while the lease goes on.
func TestEndpointKnowsItsLeaseAgain(t *testing.T) {
	inLeasedEndpoint(t, func(b *bed, endpoint netip.Addr) {
		b.agent.endpoints.Drop("db-1")
		synctest.Wait()
		if slices.Contains(b.network.Here, endpoint) {
			b.Fatalf("it is held for nobody: %v", b.network.Here)
		}
		b.agent.endpoints.Claim(leasedElsewhere(3, 1))
		time.Sleep(2 * leaseEvery)
		synctest.Wait()
		if !slices.Contains(b.network.Here, endpoint) || b.endpoints() != 2 {
			b.Errorf("%d endpoints, at %v", b.endpoints(), b.network.Here)
		}
		// What is known of another epoch's lease is no word of this one's.
		b.agent.endpoints.Lease("db-1", 2, false)
		synctest.Wait()
		if !slices.Contains(b.network.Here, endpoint) || b.endpoints() != 2 {
			b.Errorf("%d endpoints, at %v", b.endpoints(), b.network.Here)
		}
	})
}
