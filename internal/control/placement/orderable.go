package placement

import (
	"slices"

	"kurabe"
	"kurabe/internal/control/installed"
)

// Orderable is one combination that CreateDBInstance can make true here.
type Orderable struct {
	Version kurabe.EngineVersion
	Class   kurabe.Class
	Storage kurabe.StorageType
	Zones   []string
	MultiAZ bool // some host can hold a standby too, in another zone
	Cluster bool // hosts can hold the three servers of a cluster
}

// Filter narrows a list; empty fields match everything.
type Filter struct {
	Version installed.Filter
	Class   string
}

// Orderables lists the versions x classes x storage types that some host can
// hold and enforce at all; whether memory is free at the moment is another
// question. A type that throttles needs a host with the io lever.
func (c Places) Orderables(f Filter) []Orderable {
	hosts := c.View.Hosts()
	var list []Orderable
	for _, v := range c.EngineVersions(f.Version) {
		for _, class := range kurabe.Classes() {
			if f.Class != "" && f.Class != class.Name {
				continue
			}
			for _, storage := range kurabe.StorageTypes {
				able := hostsFor(hosts, v.EngineVersion, class, storage)
				if zones := c.zonesOf(able); len(zones) > 0 {
					list = append(list, Orderable{v.EngineVersion, class, storage, zones, holdsStandby(able, class), holdsCluster(able, class.MemoryBytes)})
				}
			}
		}
	}
	return list
}

// hostsFor are the hosts that can hold a combination.
func hostsFor(hosts []kurabe.HostReport, v kurabe.EngineVersion, class kurabe.Class, storage kurabe.StorageType) []kurabe.HostReport {
	return slices.DeleteFunc(slices.Clone(hosts), func(h kurabe.HostReport) bool {
		has := slices.ContainsFunc(h.Engines, func(o kurabe.EngineVersion) bool {
			return o.Engine == v.Engine && o.Version == v.Version && o.Ready
		})
		return !has || class.Unfit(h) != "" || storage.Name != kurabe.DefaultStorageType && !h.Has("io")
	})
}

// zonesOf are the zones of hosts, in the order of c.Zones.
func (c Places) zonesOf(hosts []kurabe.HostReport) []string {
	able := map[string]bool{}
	for _, h := range hosts {
		for _, zone := range h.Zones {
			able[zone] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(c.Zones), func(zone string) bool { return !able[zone] })
}

// holdsStandby says whether one of the hosts has a second zone and memory for two servers, or
// two of them are a pair with memory for one each.
func holdsStandby(hosts []kurabe.HostReport, class kurabe.Class) bool {
	return slices.ContainsFunc(hosts, func(h kurabe.HostReport) bool {
		return slices.ContainsFunc(hosts, func(o kurabe.HostReport) bool {
			if h.Host == o.Host {
				return h.Pairs(o) && memoryOf(class.Name, MultiAZZones) <= h.MemoryBytes
			}
			return h.Pairs(o) && memoryOf(class.Name, 1) <= min(h.MemoryBytes, o.MemoryBytes)
		})
	})
}
