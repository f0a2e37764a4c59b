package control

import (
	"slices"
	"strings"

	"kurabe"
)

const (
	subnetPrefix = "subnet-"
	minZones     = 2  // that a subnet group covers, as on RDS
	maxSubnets   = 20 // of a group, RDS's quota
)

// placeSubnets gives each subnet its zone.
//
// Kurabe has one flat network, so a subnet is a label that stands for a zone: those of the
// default group, "subnet-ZONE". Another id is that of no subnet, as it would be on RDS, unless
// a group has it: earlier versions gave zones to all ids of EC2's form, and their groups keep
// them.
func (c *Control) placeSubnets(ids []string) ([]kurabe.Subnet, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > maxSubnets {
		return nil, kurabe.Errorf(kurabe.CodeSubnetGroupQuota, "A DB subnet group has at most %d subnets", maxSubnets)
	}
	zones := map[string]string{}
	count := map[string]int{}
	var bad []string
	kept := c.keptSubnets()
	for _, id := range ids {
		zone := strings.TrimPrefix(id, subnetPrefix)
		if zone == id || !slices.Contains(c.Zones, zone) {
			zone = kept[id]
		}
		if zone == "" {
			bad = append(bad, id)
			continue
		}
		zones[id] = zone
		count[zone]++
	}
	if len(bad) > 0 {
		return nil, kurabe.Errorf(kurabe.CodeInvalidSubnet, kurabe.WordsSubnets, strings.Join(bad, ", "))
	}
	if len(count) < minZones {
		covered := "none"
		for zone := range count {
			covered = zone
		}
		return nil, kurabe.Errorf(kurabe.CodeSubnetGroupAZCoverage, kurabe.WordsZonesCovered, covered, minZones)
	}
	list := make([]kurabe.Subnet, len(ids))
	for n, id := range ids {
		list[n] = kurabe.Subnet{ID: id, Zone: zones[id]}
	}
	return list, nil
}

// keptSubnets are the zones of the subnets that groups have, by id.
func (c *Control) keptSubnets() map[string]string {
	kept := map[string]string{}
	for _, g := range c.View.SubnetGroups() {
		for _, s := range g.Value.Subnets {
			kept[s.ID] = s.Zone
		}
	}
	return kept
}

// defaultSubnets has one subnet in each zone.
func (c *Control) defaultSubnets() []kurabe.Subnet {
	list := make([]kurabe.Subnet, len(c.Zones))
	for n, zone := range c.Zones {
		list[n] = kurabe.Subnet{ID: subnetPrefix + zone, Zone: zone}
	}
	return list
}
