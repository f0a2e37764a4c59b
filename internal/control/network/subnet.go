package network

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/control/scope"
)

// Network is the network of a scope.
type Network struct{ scope.Scope }

// MaxSubnets of a group, RDS's quota.
const MaxSubnets = 20

const (
	subnetPrefix = "subnet-"
	minZones     = 2 // that a subnet group covers, as on RDS
)

// PlaceSubnets gives each subnet its zone.
//
// Kurabe has one flat network, so a subnet is a label that stands for a zone. The subnets are
// those that EC2's API lists; "subnet-ZONE", under which earlier versions showed the default
// ones, is still taken, and listed from then on.
func (c Network) PlaceSubnets(ids []string) ([]kurabe.Subnet, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > MaxSubnets {
		return nil, kurabe.Errorf(kurabe.CodeSubnetGroupQuota, "A DB subnet group has at most %d subnets", MaxSubnets)
	}
	zones := map[string]string{}
	count := map[string]int{}
	var bad []string
	known := map[string]string{}
	for _, zone := range c.Zones {
		known[subnetPrefix+zone] = zone
	}
	for _, s := range c.Subnets() {
		known[s.ID] = s.Zone
	}
	for _, id := range ids {
		zone := known[id]
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

// Subnets lists the default subnet of each zone, then by id those that groups of earlier
// versions have.
func (c Network) Subnets() []kurabe.Subnet {
	list, kept := c.DefaultSubnets(), []kurabe.Subnet(nil)
	for _, g := range c.View.SubnetGroups() {
		for _, s := range g.Value.Subnets {
			if !slices.Contains(list, s) {
				kept = append(kept, s)
			}
		}
	}
	slices.SortFunc(kept, func(a, b kurabe.Subnet) int { return strings.Compare(a.ID, b.ID) })
	return append(list, slices.Compact(kept)...)
}

// DefaultSubnets has one subnet in each zone.
func (c Network) DefaultSubnets() []kurabe.Subnet {
	list := make([]kurabe.Subnet, len(c.Zones))
	for n, zone := range c.Zones {
		list[n] = kurabe.Subnet{ID: c.networkID(subnetPrefix, zone), Zone: zone}
	}
	return list
}

// NetworkID is the one network of the service, as EC2's VpcId.
func (c Network) NetworkID() string { return c.networkID("vpc-", "") }

// SecurityGroupID is the default security group of the network, the only one.
func (c Network) SecurityGroupID() string { return c.networkID("sg-", "") }

// networkID is an id of EC2's form, always the same for an account, a region and a zone.
func (c Network) networkID(prefix, zone string) string {
	const digits = 17
	sum := sha256.Sum256([]byte(strings.Join([]string{c.Account, c.Region, prefix, zone}, "/")))
	return prefix + hex.EncodeToString(sum[:])[:digits]
}
