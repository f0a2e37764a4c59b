package endpoint

import (
	"net/netip"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/agent/endpoint/endpointtest"
)

// announcing are noted endpoints with an interface, of a host whose server 2 writes under a
// lease.
func announcing(epoch kurabe.Epoch) (*notedEndpoints, *endpointtest.Network, kurabe.Assignment) {
	n, f := newNotedEndpoints(), &endpointtest.Network{}
	n.Addresses = &Addresses{of: f, want: map[string][]netip.Addr{}}
	a := member(2, kurabe.DutyWrite, epoch)
	a.Role.Leased = true
	n.Claim(a)
	n.Lease(a.Instance, a.Role.Epoch, true)
	return n, f, a
}

// goOn lets time go by, and counts what the neighbours were told meanwhile.
func (n *notedEndpoints) goOn(f *endpointtest.Network, d time.Duration) int {
	before := len(f.Announced)
	for end := n.time.Add(d); n.time.Before(end); n.time = n.time.Add(50 * time.Millisecond) {
		n.hold()
	}
	return len(f.Announced) - before
}

// A host announces an endpoint more than once, and no more from the moment at which it may be
// another host's.
func TestEndpointIsAnnounced(t *testing.T) {
	for name, c := range map[string]struct {
		then func(*notedEndpoints, kurabe.Assignment)
		back func(*notedEndpoints, kurabe.Assignment)
	}{
		"it hands over": {
			then: func(n *notedEndpoints, a kurabe.Assignment) {
				n.Claim(on(member(2, kurabe.DutyStepDown, 2), a.Port, 2))
			},
			back: func(n *notedEndpoints, a kurabe.Assignment) {
				a.Generation = 3
				n.Claim(a)
				n.Lease(a.Instance, a.Role.Epoch, true)
				n.Takes(a.Instance, 3, true, 0)
			},
		},
		"its server has ended": {
			then: func(n *notedEndpoints, a kurabe.Assignment) { n.Takes(a.Instance, a.Generation, false, 0) },
			back: func(n *notedEndpoints, a kurabe.Assignment) { n.Takes(a.Instance, a.Generation, true, 0) },
		},
		"its lease is over, and nobody has said so": {
			then: func(n *notedEndpoints, a kurabe.Assignment) {
				n.Guarded = func(id kurabe.InstanceID) bool { return id != a.Instance }
			},
			back: func(n *notedEndpoints, _ kurabe.Assignment) { n.Guarded = nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, f, a := announcing(2)
			if told := n.goOn(f, 200*time.Millisecond); told != 3 { // once with the address
				t.Fatalf("told %d times", told)
			}
			n.Takes(a.Instance, a.Generation, true, 0)
			if told := n.goOn(f, 400*time.Millisecond); told != 1 {
				t.Fatalf("told %d times", told)
			}
			c.then(n, a)
			if told := n.goOn(f, 3*time.Second); told != 0 {
				t.Errorf("told %d times after that", told)
			}
			c.back(n, a)
			if told := n.goOn(f, 5*time.Second); told != 2 {
				t.Errorf("told %d times when it goes on", told)
			}
		})
	}
}
