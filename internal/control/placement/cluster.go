package placement

import (
	"slices"
	"strings"

	"kurabe"
)

// CheckZones says whether zones that a request names are those that the servers of a cluster
// will be in. Where there are more than three the planner chooses, so none can be asked for.
func (c Places) CheckZones(zones []string) error {
	for _, zone := range zones {
		if !slices.Contains(c.Zones, zone) {
			return kurabe.Errorf(kurabe.CodeInvalidVPCNetworkState, kurabe.WordsZone+" The zones are %s.", zone, strings.Join(c.Zones, ", "))
		}
	}
	if len(zones) == 0 {
		return nil
	}
	given := slices.Sorted(slices.Values(zones))
	switch {
	case len(slices.Compact(slices.Clone(given))) != kurabe.ClusterServers || len(given) != kurabe.ClusterServers:
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "AvailabilityZones must name %d different zones: the servers of a DB cluster are in as many", kurabe.ClusterServers)
	case len(c.Zones) > kurabe.ClusterServers:
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "AvailabilityZones cannot be honoured: the service chooses %d of its zones (%s) by the room in them", kurabe.ClusterServers, strings.Join(c.Zones, ", "))
	}
	return nil
}

// holdsCluster says whether the servers of a cluster find a zone each on some of the hosts,
// which have so many bytes of memory for every one of them.
func holdsCluster(hosts []kurabe.HostReport, bytes int64) bool {
	for _, first := range hosts {
		network := slices.DeleteFunc(slices.Clone(hosts), func(h kurabe.HostReport) bool { return h.Host != first.Host && !h.Pairs(first) })
		var zones []string
		for _, h := range network {
			zones = append(zones, h.Zones...)
		}
		slices.Sort(zones)
		if placeServers(network, slices.Compact(zones), map[kurabe.HostID]int64{}, bytes, kurabe.ClusterServers) {
			return true
		}
	}
	return false
}

// placeServers says whether so many servers find a place, each in another one of the zones.
// There are few zones, so all ways are tried.
func placeServers(hosts []kurabe.HostReport, zones []string, held map[kurabe.HostID]int64, bytes int64, servers int) bool {
	if servers == 0 {
		return true
	}
	if len(zones) < servers {
		return false
	}
	for _, h := range hosts {
		if !slices.Contains(h.Zones, zones[0]) || held[h.Host]+bytes > h.MemoryBytes {
			continue
		}
		held[h.Host] += bytes
		if placeServers(hosts, zones[1:], held, bytes, servers-1) {
			return true
		}
		held[h.Host] -= bytes
	}
	return placeServers(hosts, zones[1:], held, bytes, servers)
}
