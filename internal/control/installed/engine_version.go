package installed

import (
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/control/scope"
)

// Engines are the engines of the hosts of a scope.
type Engines struct{ scope.Scope }

// Version is an engine version that instances can be made of, with the
// versions that one of it may be upgraded to.
type Version struct {
	kurabe.EngineVersion
	Upgrades []kurabe.EngineVersion
}

// Filter narrows a list of versions; empty fields match everything.
type Filter struct {
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
func (c Engines) EngineVersions(f Filter) []Version {
	ready := c.Ready()
	var list []Version
	for _, v := range ready {
		if !f.matches(v) {
			continue
		}
		installed := Version{EngineVersion: v}
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
	return slices.DeleteFunc(list, func(v Version) bool {
		if len(f.Versions) > 0 {
			return len(v.Upgrades) > 0 // the newest of a major is its default
		}
		return !v.Default
	})
}

func (f Filter) matches(v kurabe.EngineVersion) bool {
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

// engines are what this service runs, in the order of lists.
var engines = []kurabe.EngineName{kurabe.MariaDB, kurabe.Postgres}

// Ready are the installed versions that an instance can be made of now,
// by engine and oldest first, as RDS lists them.
func (c Engines) Ready() []kurabe.EngineVersion {
	var list []kurabe.EngineVersion
	for _, engine := range engines {
		for _, v := range slices.Backward(c.Versions(engine)) {
			if v.Ready {
				list = append(list, v)
			}
		}
	}
	return list
}

// Versions are the installed versions over all hosts, newest first.
func (c Engines) Versions(engine kurabe.EngineName) []kurabe.EngineVersion {
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

// EngineVersion finds the installed version that the user means: the default one
// for "", the newest of a major for "15".
func (c Engines) EngineVersion(engine, version string) (kurabe.EngineVersion, error) {
	name := kurabe.EngineName(strings.ToLower(engine))
	if name != kurabe.Postgres && name != kurabe.MariaDB {
		return kurabe.EngineVersion{}, kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsEngine+". Kurabe runs postgres and mariadb.", engine)
	}
	if len(c.View.Hosts()) == 0 {
		return kurabe.EngineVersion{}, kurabe.Errorf(kurabe.CodeUnavailable, "no host has reported yet; try again in a moment")
	}
	installed := c.Versions(name)
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
