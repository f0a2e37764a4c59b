package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/control/installed"
	"kurabe/internal/store"
)

const hour = time.Hour

func clock(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(d/time.Hour), int(d%time.Hour/time.Minute))
}

func nameOr(s *string, otherwise string) string {
	if s == nil || *s == "" {
		return otherwise
	}
	return strings.ToLower(*s)
}

func intOr(n *int, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return *n
}

// requireGroups checks the groups that an instance names, and makes the change
// conflict when one of them goes away meanwhile.
func (c *Control) requireGroups(change *store.Change, s *kurabe.InstanceSpec, v kurabe.EngineVersion) error {
	if s.OptionGroup != installed.DefaultOptionGroup(v) {
		return kurabe.Errorf(kurabe.CodeOptionGroupNotFound, kurabe.WordsOptionGroupNotFound, s.OptionGroup)
	}
	if s.ParameterGroup != kurabe.DefaultGroup(v.Family) {
		key := kurabe.NameKey(s.ParameterGroup, s.Cluster)
		g, err := c.of(s.Cluster).Record(s.ParameterGroup)
		switch {
		case err != nil && s.Cluster:
			return kurabe.Errorf(kurabe.CodeClusterGroupNotFound, kurabe.WordsClusterGroupNotFound, s.ParameterGroup)
		case err != nil:
			return err
		}
		if g.Value.Family != v.Family {
			return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsGroupFamily, g.Value.Name, g.Value.Family, v.Family)
		}
		change.RequireParameterGroup(key, g.ModRevision)
	}
	if err := c.RequireMembership(change, s.SecurityGroups); err != nil {
		return err
	}
	group, err := c.SubnetGroup(s.SubnetGroup)
	if err != nil {
		return err
	}
	if stored, ok := c.View.SubnetGroup(s.SubnetGroup); ok {
		change.RequireSubnetGroup(s.SubnetGroup, stored.ModRevision)
	}
	if s.Cluster {
		if zones := zonesOfSubnets(group.Subnets); len(zones) < kurabe.ClusterServers {
			return kurabe.Errorf(kurabe.CodeSubnetGroupAZCoverage, "DB Subnet Group %s doesn't meet availability zone coverage requirement: a DB cluster has servers in %d zones, and it covers %s.", group.Name, kurabe.ClusterServers, strings.Join(zones, ", "))
		}
	}
	inGroup := func(subnet kurabe.Subnet) bool { return subnet.Zone == s.Zone }
	if s.Zone != "" && !slices.ContainsFunc(group.Subnets, inGroup) {
		return kurabe.Errorf(kurabe.CodeInvalidVPCNetworkState, "DB Subnet Group %s has no subnet in availability zone %s", group.Name, s.Zone)
	}
	return nil
}

// setMaxStorage sets the bound of storage autoscaling. 0 turns it off, and so does
// the storage that there is: RDS's way to say it, and Terraform's.
func setMaxStorage(s *kurabe.InstanceSpec, gib *int) error {
	if gib == nil {
		return nil
	}
	if *gib == s.Now.StorageGiB {
		s.MaxStorageGiB = 0
		return nil
	}
	if *gib != 0 && float64(*gib) < float64(s.Now.StorageGiB)*maxStorageGrowthFactor {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsMaxStorage)
	}
	s.MaxStorageGiB = *gib
	return nil
}

// StorageChoice is a storage type that an instance may change to, from the size
// that it has.
type StorageChoice struct {
	Type   kurabe.StorageType
	MinGiB int
}

// StorageChoices lists the storage an instance can be modified to. Storage never
// shrinks.
func (c *Control) StorageChoices(name string) ([]StorageChoice, error) {
	stored, err := c.find(name)
	if err != nil {
		return nil, err
	}
	i := c.read(stored)
	if i.Spec.Deleting != nil {
		return nil, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "Instance %s is already being deleted.", i.Name)
	}
	have := i.Settings()
	io := slices.ContainsFunc(c.View.Hosts(), func(h kurabe.HostReport) bool {
		return h.Has("io") && (i.Status.Host == "" || i.Status.Host == h.Host)
	})
	var list []StorageChoice
	for _, t := range kurabe.StorageTypes {
		if t.Name == kurabe.DefaultStorageType || io {
			list = append(list, StorageChoice{t, max(have.StorageGiB, t.MinGiB)})
		}
	}
	return list, nil
}

// zonesOfSubnets are the zones that subnets cover, sorted.
func zonesOfSubnets(subnets []kurabe.Subnet) []string {
	var zones []string
	for _, s := range subnets {
		zones = append(zones, s.Zone)
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}
