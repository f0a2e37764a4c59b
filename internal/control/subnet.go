package control

import (
	"regexp"
	"slices"
	"strings"

	"kurabe"
)

// awsSubnet is the form of EC2's subnet ids: 8 hex digits of old, 17 today.
var awsSubnet = regexp.MustCompile(`^subnet-([0-9a-f]{8}|[0-9a-f]{17})$`)

const (
	subnetPrefix = "subnet-"
	minZones     = 2  // that a subnet group covers, as on RDS
	maxSubnets   = 20 // of a group, RDS's quota
)

// placeSubnets gives each subnet its zone.
//
// Kurabe has one flat network, so a subnet is a label that stands for a zone.
// The ids "subnet-ZONE" of the default group name theirs. Any other id of EC2's
// form is taken as well, so that configurations written for AWS work unchanged:
// in the order of their text, each takes the zone that has the fewest subnets of
// the list so far, the first of c.Zones among equals. The outcome depends on the
// set of ids alone, and a list covers as many zones as it can: two ids cover two
// zones.
func (c *Control) placeSubnets(ids []string) ([]kurabe.Subnet, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > maxSubnets {
		return nil, kurabe.Errorf(kurabe.CodeSubnetGroupQuota, "A DB subnet group has at most %d subnets", maxSubnets)
	}
	zones := map[string]string{}
	count := map[string]int{}
	var labels, bad []string
	for _, id := range ids {
		zone := strings.TrimPrefix(id, subnetPrefix)
		switch {
		case zone != id && slices.Contains(c.Zones, zone):
			zones[id] = zone
			count[zone]++
		case awsSubnet.MatchString(id):
			labels = append(labels, id)
		default:
			bad = append(bad, id)
		}
	}
	if len(bad) > 0 {
		return nil, kurabe.Errorf(kurabe.CodeInvalidSubnet, "Some input subnets in :[%s] are invalid.", strings.Join(bad, ", "))
	}
	for _, id := range labels {
		zone := slices.MinFunc(c.Zones, func(a, b string) int { return count[a] - count[b] })
		zones[id] = zone
		count[zone]++
	}
	if len(count) < minZones {
		covered := "none"
		for zone := range count {
			covered = zone
		}
		return nil, kurabe.Errorf(kurabe.CodeSubnetGroupAZCoverage, "The DB subnet group doesn't meet Availability Zone (AZ) coverage requirement. Current AZ coverage: %s. Add subnets to cover at least %d AZs.", covered, minZones)
	}
	list := make([]kurabe.Subnet, len(ids))
	for n, id := range ids {
		list[n] = kurabe.Subnet{ID: id, Zone: zones[id]}
	}
	return list, nil
}

// defaultSubnets has one subnet in each zone.
func (c *Control) defaultSubnets() []kurabe.Subnet {
	list := make([]kurabe.Subnet, len(c.Zones))
	for n, zone := range c.Zones {
		list[n] = kurabe.Subnet{ID: subnetPrefix + zone, Zone: zone}
	}
	return list
}
