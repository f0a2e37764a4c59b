package agent

import (
	"net/netip"
	"testing"
	"time"

	"kurabe"
)

// announcing are noted endpoints with an interface, of a host whose server 2 writes under a
// lease.
func announcing(epoch kurabe.Epoch) (*notedEndpoints, *fakeAddresses, kurabe.Assignment) {
	n, f := newNotedEndpoints(), &fakeAddresses{}
	n.addresses = &addresses{of: f, want: map[string][]netip.Addr{}}
	a := member(2, kurabe.DutyWrite, epoch)
	a.Role.Leased = true
	n.claim(a)
	n.lease(a.Instance, a.Role.Epoch, true)
	return n, f, a
}

// goOn lets time go by, and counts what the neighbours were told meanwhile.
func (n *notedEndpoints) goOn(f *fakeAddresses, d time.Duration) int {
	before := len(f.told)
	for end := n.time.Add(d); n.time.Before(end); n.time = n.time.Add(50 * time.Millisecond) {
		n.hold()
	}
	return len(f.told) - before
}

// A host announces an endpoint more than once, and no more from the moment at which it may be
// another host's.
func TestEndpointIsAnnounced(t *testing.T) {
	for name, c := range map[string]struct {
		then func(*notedEndpoints, kurabe.Assignment)
		back func(*notedEndpoints, kurabe.Assignment)
	}{
		"it hands over": {
			then: func(n *notedEndpoints, a kurabe.Assignment) { n.claim(on(member(2, kurabe.DutyYield, 2), a.Port, 2)) },
			back: func(n *notedEndpoints, a kurabe.Assignment) {
				a.Generation = 3
				n.claim(a)
				n.lease(a.Instance, a.Role.Epoch, true)
				n.takes(a.Instance, 3, true, 0)
			},
		},
		"its server has ended": {
			then: func(n *notedEndpoints, a kurabe.Assignment) { n.takes(a.Instance, a.Generation, false, 0) },
			back: func(n *notedEndpoints, a kurabe.Assignment) { n.takes(a.Instance, a.Generation, true, 0) },
		},
		"its lease is over, and nobody has said so": {
			then: func(n *notedEndpoints, a kurabe.Assignment) {
				n.guarded = func(id kurabe.InstanceID) bool { return id != a.Instance }
			},
			back: func(n *notedEndpoints, _ kurabe.Assignment) { n.guarded = nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, f, a := announcing(2)
			if told := n.goOn(f, 200*time.Millisecond); told != 3 { // once with the address
				t.Fatalf("told %d times", told)
			}
			n.takes(a.Instance, a.Generation, true, 0)
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
