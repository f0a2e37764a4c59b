package placement

import (
	"testing"

	"kurabe"
)

func TestHoldsCluster(t *testing.T) {
	host := func(id kurabe.HostID, network string, gib int64, zones ...string) kurabe.HostReport {
		return kurabe.HostReport{Host: id, Zones: zones, Network: network, AddressPool: network, MemoryBytes: gib * kurabe.GiB}
	}
	const net, other = "10.0.0.0/24", "10.0.1.0/24"
	for _, c := range []struct {
		name  string
		hosts []kurabe.HostReport
		want  bool
	}{
		{"one host", []kurabe.HostReport{host("a", net, 3, "1", "2", "3")}, true},
		{"one host without the memory", []kurabe.HostReport{host("a", net, 2, "1", "2", "3")}, false},
		{"one host with two zones", []kurabe.HostReport{host("a", net, 9, "1", "2")}, false},
		{"three hosts", []kurabe.HostReport{host("a", net, 1, "1"), host("b", net, 1, "2"), host("c", net, 1, "3")}, true},
		{"three hosts in two zones", []kurabe.HostReport{host("a", net, 9, "1"), host("b", net, 9, "2"), host("c", net, 9, "2")}, false},
		{"three hosts in two networks", []kurabe.HostReport{host("a", net, 9, "1"), host("b", net, 9, "2"), host("c", other, 9, "3")}, false},
		{"the small one takes the zone that only it has", []kurabe.HostReport{host("a", net, 2, "1", "2"), host("b", net, 1, "2", "3")}, true},
		{"four zones", []kurabe.HostReport{host("a", net, 1, "1"), host("b", net, 0, "2"), host("c", net, 1, "3"), host("d", net, 1, "4")}, true},
	} {
		if got := holdsCluster(c.hosts, kurabe.GiB); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
