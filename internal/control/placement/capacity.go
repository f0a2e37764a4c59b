package placement

import (
	"fmt"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/store"
)

// MultiAZZones is how many zones a Multi-AZ instance is in, with a server in each.
const MultiAZZones = 2

// CheckFit says whether any host can hold the class and enforce the storage
// type at all.
func (c Places) CheckFit(s kurabe.InstanceSettings) error {
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

// CheckCapacity says whether a host has the memory for the spec now, for a standby too
// if it wants one. Memory is reserved, not overcommitted, by stopped instances too.
// except is left out: an instance that changes its class or its zones.
func (c Places) CheckCapacity(s kurabe.InstanceSpec, except kurabe.InstanceID) error {
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

// servers is how many servers settings ask for, of an instance or of a cluster.
func servers(s kurabe.InstanceSettings, cluster bool) int64 {
	switch {
	case cluster:
		return kurabe.ClusterServers
	case s.MultiAZ:
		return MultiAZZones
	}
	return 1
}

// memoryOf is the memory that so many servers of a class reserve, 0 for a class that is
// not known.
func memoryOf(class string, count int64) int64 {
	c, _ := kurabe.FindClass(class)
	return c.MemoryBytes * count
}

// CheckMultiAZ says whether any host can have a standby of an instance, if its settings
// ask for one, or there are zones for all servers of a cluster. Whether memory is free for it
// at the moment is another question.
func (c Places) CheckMultiAZ(s kurabe.InstanceSettings, cluster bool) error {
	if !s.MultiAZ {
		return nil
	}
	class, ok := kurabe.FindClass(s.Class)
	able := slices.DeleteFunc(c.View.Hosts(), func(h kurabe.HostReport) bool { return !ok || class.Unfit(h) != "" })
	if cluster && !holdsCluster(able, 0) {
		return kurabe.Errorf(kurabe.CodeInsufficientCapacity, "A DB cluster of %s cannot be made: its %d servers need as many availability zones, on hosts that can hold the class and reach each other; the service was started with the zones %s", s.Class, kurabe.ClusterServers, strings.Join(c.Zones, ", "))
	}
	if !pairs(able) {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "MultiAZ cannot be honoured: no host that can hold %s has a second zone, or reaches another host in one; the service was started with the zones %s", s.Class, strings.Join(c.Zones, ", "))
	}
	return nil
}

// pairs says whether a pair can be on some of these hosts.
func pairs(hosts []kurabe.HostReport) bool {
	return slices.ContainsFunc(hosts, func(h kurabe.HostReport) bool { return slices.ContainsFunc(hosts, h.Pairs) })
}
