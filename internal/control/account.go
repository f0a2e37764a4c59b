package control

import (
	"kurabe/internal/control/eventsub"
	"kurabe/internal/control/network"
	"kurabe/internal/control/parameter"
)

// maxAllocatedGiB is what maxInstances of the largest storage come to. Storage is
// a cap that each instance is held to, not a reservation.
const maxAllocatedGiB = int64(maxInstances) * 65536

// Quota is a bound of the service and how much of it is used, under RDS's name.
type Quota struct {
	Name      string
	Used, Max int64
}

// Quotas lists the bounds that hold here. What this service does not have is
// bounded by zero.
func (c *Control) Quotas() []Quota {
	var storage int64
	var instances, clusters int64
	for _, i := range c.View.Instances() {
		if i.Spec.Cluster {
			clusters++
		} else {
			instances++
		}
		storage += int64(c.read(i).Settings().StorageGiB)
	}
	most := 0
	for _, g := range c.View.SubnetGroups() {
		most = max(most, len(g.Value.Subnets))
	}
	return []Quota{
		{"DBInstances", instances, maxInstances},
		{"ReservedDBInstances", 0, 0},
		{"AllocatedStorage", storage, maxAllocatedGiB},
		{"DBSecurityGroups", 0, 0},
		{"AuthorizationsPerDBSecurityGroup", 0, 0},
		{"DBParameterGroups", int64(len(c.of(false).OwnGroups())), parameter.MaxGroups},
		{"ManualSnapshots", 0, 0},
		{"EventSubscriptions", int64(len(c.View.EventSubscriptions())), eventsub.MaxSubscriptions},
		{"DBSubnetGroups", int64(len(c.View.SubnetGroups())), network.MaxSubnetGroups},
		{"OptionGroups", 0, 0},
		{"SubnetsPerDBSubnetGroup", int64(most), network.MaxSubnets},
		{"ReadReplicasPerMaster", 0, 0},
		{"DBClusters", clusters, maxInstances},
		{"DBClusterParameterGroups", int64(len(c.Clusters().OwnGroups())), parameter.MaxGroups},
		{"DBClusterRoles", 0, 0},
		{"DBInstanceRoles", 0, 0},
		{"ManualClusterSnapshots", 0, 0},
		{"CustomEndpointsPerDBCluster", 0, 0},
	}
}
