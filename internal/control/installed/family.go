package installed

import (
	"slices"
	"strings"

	"kurabe"
)

// Catalog returns the parameters of a family: those of the newest of its
// installed versions.
func (c Engines) Catalog(family string) (*kurabe.Catalog, bool) {
	var newest *kurabe.Catalog
	for _, cat := range c.View.Catalogs() {
		if cat.Family == family && (newest == nil || kurabe.CompareVersions(cat.Version, newest.Version) > 0) {
			newest = cat
		}
	}
	return newest, newest != nil
}

// Families lists the families that have a catalog, by name.
func (c Engines) Families() []string {
	var list []string
	for _, cat := range c.View.Catalogs() {
		list = append(list, cat.Family)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// RequireFamily returns the catalog of a family that a user named.
func (c Engines) RequireFamily(family string) (*kurabe.Catalog, error) {
	folded := strings.ToLower(family)
	if cat, ok := c.Catalog(folded); ok {
		return cat, nil
	}
	have := strings.Join(c.Families(), ", ")
	if have == "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsFamily+": no engine has been found yet", family)
	}
	return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsFamily+"; installed: %s", family, have)
}
