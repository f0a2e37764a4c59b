package control

import (
	"slices"
	"strings"

	"kurabe"
)

// InstalledVersion is an engine version that instances can be made of, with the
// versions that one of it may be upgraded to.
type InstalledVersion struct {
	kurabe.EngineVersion
	Upgrades []kurabe.EngineVersion
}

// VersionFilter narrows a list of versions; empty fields match everything.
type VersionFilter struct {
	Engines  []string
	Versions []string // "15.18", or "15" for every version of a major
	Families []string
	// DefaultOnly keeps the version that a create gets which names no version
	// or, when Versions are given, only their major.
	DefaultOnly bool
}

// rdsEngines are RDS's engines that this service does not run: asking for them
// is no mistake, there is just none.
var rdsEngines = []string{
	"aurora-mysql", "aurora-postgresql", "custom-oracle-ee", "custom-oracle-ee-cdb", "custom-oracle-se2", "custom-oracle-se2-cdb",
	"custom-sqlserver-ee", "custom-sqlserver-se", "custom-sqlserver-web", "custom-sqlserver-dev", "db2-ae", "db2-se", "mysql", "oracle-ee",
	"oracle-ee-cdb", "oracle-se2", "oracle-se2-cdb", "sqlserver-ee", "sqlserver-se", "sqlserver-ex", "sqlserver-web", "sqlserver-dev-ee",
}

// CheckEngine refuses a name that is no engine of RDS.
func CheckEngine(name string) error {
	if name == "" || slices.Contains(engines, kurabe.EngineName(name)) || slices.Contains(rdsEngines, name) {
		return nil
	}
	return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Unrecognized engine name: %s", name)
}

// EngineVersions lists the installed versions that match, by engine, oldest
// first.
func (c *Control) EngineVersions(f VersionFilter) []InstalledVersion {
	ready := c.readyVersions()
	var list []InstalledVersion
	for _, v := range ready {
		if !f.matches(v) {
			continue
		}
		installed := InstalledVersion{EngineVersion: v}
		for _, other := range ready {
			if other.Engine == v.Engine && other.Family == v.Family && kurabe.CompareVersions(other.Version, v.Version) > 0 {
				installed.Upgrades = append(installed.Upgrades, other)
			}
		}
		list = append(list, installed)
	}
	if !f.DefaultOnly {
		return list
	}
	return slices.DeleteFunc(list, func(v InstalledVersion) bool {
		if len(f.Versions) > 0 {
			return len(v.Upgrades) > 0 // the newest of a major is its default
		}
		return !v.Default
	})
}

func (f VersionFilter) matches(v kurabe.EngineVersion) bool {
	version := func(wish string) bool { return v.Version == wish || strings.HasPrefix(v.Version, wish+".") }
	return (len(f.Engines) == 0 || slices.Contains(f.Engines, string(v.Engine))) &&
		(len(f.Versions) == 0 || slices.ContainsFunc(f.Versions, version)) &&
		(len(f.Families) == 0 || slices.Contains(f.Families, v.Family))
}

// Description is the version as people call it.
func Description(v kurabe.EngineVersion) string { return EngineTitle(v.Engine) + " " + v.Version }

// EngineTitle is an engine's own name.
func EngineTitle(e kurabe.EngineName) string {
	if e == kurabe.MariaDB {
		return "MariaDB Community Edition"
	}
	return "PostgreSQL"
}
