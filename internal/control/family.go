package control

import (
	"slices"
	"strings"

	"kurabe"
)

// engines are what this service runs, in the order of lists.
var engines = []kurabe.EngineName{kurabe.MariaDB, kurabe.Postgres}

// readyVersions are the installed versions that an instance can be made of now,
// by engine and oldest first, as RDS lists them.
func (c *Control) readyVersions() []kurabe.EngineVersion {
	var list []kurabe.EngineVersion
	for _, engine := range engines {
		for _, v := range slices.Backward(c.engineVersions(engine)) {
			if v.Ready {
				list = append(list, v)
			}
		}
	}
	return list
}

// catalog returns the parameters of a family: those of the newest of its
// installed versions.
func (c *Control) catalog(family string) (*kurabe.Catalog, bool) {
	var newest *kurabe.Catalog
	for _, cat := range c.View.Catalogs() {
		if cat.Family == family && (newest == nil || kurabe.CompareVersions(cat.Version, newest.Version) > 0) {
			newest = cat
		}
	}
	return newest, newest != nil
}

// families lists the families that have a catalog, by name.
func (c *Control) families() []string {
	var list []string
	for _, cat := range c.View.Catalogs() {
		list = append(list, cat.Family)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// requireFamily returns the catalog of a family that a user named.
func (c *Control) requireFamily(family string) (*kurabe.Catalog, error) {
	folded := strings.ToLower(family)
	if cat, ok := c.catalog(folded); ok {
		return cat, nil
	}
	have := strings.Join(c.families(), ", ")
	if have == "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsFamily+": no engine has been found yet", family)
	}
	return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsFamily+"; installed: %s", family, have)
}
