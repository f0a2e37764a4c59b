package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kurabe"
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

// DefaultOptionGroup is the name of the option group of a version without
// options, RDS's "default:postgres-15".
func DefaultOptionGroup(v kurabe.EngineVersion) string {
	return "default:" + string(v.Engine) + "-" + strings.ReplaceAll(v.Major(), ".", "-")
}

// engineVersions are the installed versions over all hosts, newest first.
func (c *Control) engineVersions(engine kurabe.EngineName) []kurabe.EngineVersion {
	var list []kurabe.EngineVersion
	for _, h := range c.View.Hosts() {
		for _, v := range h.Engines {
			known := slices.ContainsFunc(list, func(o kurabe.EngineVersion) bool { return o.Version == v.Version })
			if v.Engine == engine && !known {
				list = append(list, v)
			}
		}
	}
	slices.SortFunc(list, func(a, b kurabe.EngineVersion) int { return kurabe.CompareVersions(b.Version, a.Version) })
	return list
}

// engineVersion finds the installed version that the user means: the default one
// for "", the newest of a major for "15".
func (c *Control) engineVersion(engine, version string) (kurabe.EngineVersion, error) {
	name := kurabe.EngineName(strings.ToLower(engine))
	if name != kurabe.Postgres && name != kurabe.MariaDB {
		return kurabe.EngineVersion{}, kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsEngine+". Kurabe runs postgres and mariadb.", engine)
	}
	if len(c.View.Hosts()) == 0 {
		return kurabe.EngineVersion{}, kurabe.Errorf(kurabe.CodeUnavailable, "no host has reported yet; try again in a moment")
	}
	installed := c.engineVersions(name)
	for _, v := range installed {
		if version == "" && v.Default || version != "" && (v.Version == version || strings.HasPrefix(v.Version, version+".")) {
			if v.Reason != "" {
				return v, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "%s %s cannot be offered: %s", name, v.Version, v.Reason)
			}
			return v, nil
		}
	}
	var have []string
	for _, v := range installed {
		have = append(have, v.Version)
	}
	if len(have) == 0 {
		return kurabe.EngineVersion{}, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Cannot find any version of %s: no host has it installed", name)
	}
	return kurabe.EngineVersion{}, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsVersion+"; installed: %s", version, name, strings.Join(have, ", "))
}

// checkFit says whether any host can hold the class and enforce the storage
// type at all.
func (c *Control) checkFit(s kurabe.InstanceSettings) error {
	class, ok := kurabe.FindClass(s.Class)
	if !ok {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsClass, s.Class)
	}
	why := "no host has reported yet"
	var storage error
	for _, h := range c.View.Hosts() {
		if why = class.Unfit(h); why != "" {
			continue
		}
		if s.Limits().ReadIOPS == 0 || h.Has("io") {
			return nil
		}
		storage = kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "StorageType %s cannot be honoured: its IOPS cannot be enforced on host %s (%s); StorageType local promises none", s.StorageType, h.Host, h.Detail("io"))
	}
	if storage != nil {
		return storage
	}
	return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "DBInstanceClass %s cannot be honoured: %s", s.Class, why)
}

// checkCapacity says whether a host has the memory for the spec now, for a standby too
// if it wants one. Memory is reserved, not overcommitted, by stopped instances too.
// except is left out: an instance that changes its class or its zones.
func (c *Control) checkCapacity(s kurabe.InstanceSpec, except kurabe.InstanceID) error {
	class, ok := kurabe.FindClass(s.Now.Class)
	if !ok {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsClass, s.Now.Class)
	}
	var total, reserved int64
	for _, h := range c.View.Hosts() {
		total += h.MemoryBytes
	}
	for _, i := range c.View.Instances() {
		if i.ID != except {
			reserved += ReservedBytes(i)
		}
	}
	needs, what := memoryOf(class.Name, servers(s.Now, s.Cluster)), class.Name
	switch {
	case s.Cluster:
		what = fmt.Sprintf("a DB cluster of %d servers of %s", kurabe.ClusterServers, what)
	case s.Now.MultiAZ:
		what += " with a standby"
	}
	if reserved+needs > total {
		return kurabe.Errorf(kurabe.CodeInsufficientCapacity, "%s needs %s of memory; %s of %s are reserved by other DB instances", what,
			kurabe.FormatBytes(needs), kurabe.FormatBytes(reserved), kurabe.FormatBytes(total))
	}
	return nil
}

// ReservedBytes is the memory that an instance holds: the most that it has or waits for.
func ReservedBytes(i *store.Instance) int64 {
	most := memoryOf(i.Spec.Now.Class, servers(i.Spec.Now, i.Spec.Cluster))
	if next := i.Spec.Next; next != nil {
		most = max(most, memoryOf(next.Class, servers(*next, i.Spec.Cluster)))
	}
	if i.Status == nil {
		return most
	}
	have := i.Status.Applied
	most = max(most, memoryOf(have.Class, servers(have, i.Spec.Cluster)))
	if i.Group != nil { // a standby that is no longer wanted takes its memory until it is gone
		most = max(most, memoryOf(have.Class, int64(len(i.Group.Members))))
	}
	return most
}

// requireGroups checks the groups that an instance names, and makes the change
// conflict when one of them goes away meanwhile.
func (c *Control) requireGroups(change *store.Change, s *kurabe.InstanceSpec, v kurabe.EngineVersion) error {
	if s.OptionGroup != DefaultOptionGroup(v) {
		return kurabe.Errorf(kurabe.CodeOptionGroupNotFound, kurabe.WordsOptionGroupNotFound, s.OptionGroup)
	}
	if s.ParameterGroup != kurabe.DefaultGroup(v.Family) {
		key := kurabe.NameKey(s.ParameterGroup, s.Cluster)
		g, err := c.of(s.Cluster).parameterGroup(s.ParameterGroup)
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
