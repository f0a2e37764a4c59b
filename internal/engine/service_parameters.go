package engine

import (
	"cmp"
	"maps"
	"slices"

	"kurabe"
)

// withOwn adds the parameters that the service has beside an engine's.
func withOwn(c kurabe.Catalog) kurabe.Catalog {
	c.Parameters = append(slices.Clone(c.Parameters), kurabe.ServiceParameters()...)
	slices.SortFunc(c.Parameters, func(a, b kurabe.Parameter) int { return cmp.Compare(a.Name, b.Name) })
	return c
}

// enginesOnly are settings without those that no engine knows.
func enginesOnly(settings map[string]string) map[string]string {
	own := func(name string, _ string) bool {
		return slices.ContainsFunc(kurabe.ServiceParameters(), func(p kurabe.Parameter) bool { return p.Name == name })
	}
	settings = maps.Clone(settings)
	maps.DeleteFunc(settings, own)
	return settings
}
