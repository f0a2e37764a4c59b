package parameter

import (
	"maps"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/control/installed"
)

// Groups are the parameter groups of a scope.
type Groups struct{ installed.Engines }

// The sources of a parameter's value, in RDS's words.
const (
	SourceUser          = "user"
	SourceSystem        = "system"
	SourceEngineDefault = "engine-default"
)

// Parameter is one parameter as a group shows it: Value is verbatim what
// the user gave, or the service's formula, or the engine's default.
type Parameter struct {
	kurabe.Parameter
	Value    string
	HasValue bool
	Source   string
	Method   kurabe.ApplyMethod
}

// Parameters lists the parameters of a group by name; source "" takes all.
func (c Groups) Parameters(group, source string) ([]Parameter, error) {
	g, err := c.ParameterGroup(group)
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"", SourceUser, SourceSystem, SourceEngineDefault}, source) {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid source %s: valid sources are user, system and engine-default", source)
	}
	cat, _ := c.Catalog(g.Family)
	list := groupParameters(cat, g.Values)
	if source == "" {
		return list, nil
	}
	return slices.DeleteFunc(list, func(p Parameter) bool { return p.Source != source }), nil
}

// FamilyParameters lists the parameters of a family as its default group has them.
func (c Groups) FamilyParameters(family string) ([]Parameter, error) {
	cat, err := c.RequireFamily(family)
	if err != nil {
		return nil, err
	}
	return groupParameters(cat, nil), nil
}

const unknownToAll = "no installed version knows it"

// groupParameters lays a group's values over a catalog. A value that the catalog
// does not know (it was set for a version that is gone) is shown too, so that it
// can be seen and reset. cat may be nil.
func groupParameters(cat *kurabe.Catalog, values map[string]kurabe.ParameterValue) []Parameter {
	var list []Parameter
	if cat != nil {
		list = make([]Parameter, 0, len(cat.Parameters))
		for _, p := range cat.Parameters {
			list = append(list, groupParameter(p, values))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, known := cat.Find(name); !known {
			unknown := kurabe.Parameter{Name: name, Type: "string", Apply: kurabe.ApplyStatic, Fixed: unknownToAll}
			list = append(list, groupParameter(unknown, values))
		}
	}
	slices.SortFunc(list, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func groupParameter(p kurabe.Parameter, values map[string]kurabe.ParameterValue) Parameter {
	// RDS shows pending-reboot for everything that no user has set.
	out := Parameter{Parameter: p, Value: p.Default, HasValue: p.HasDefault, Source: SourceEngineDefault, Method: kurabe.ApplyPendingReboot}
	if p.System {
		out.Source = SourceSystem
	}
	// A value of a parameter that has been closed since is of no effect, so it is not shown as one.
	if user, ok := values[p.Name]; ok && (p.Modifiable || p.Fixed == unknownToAll) {
		out.Value, out.HasValue, out.Source, out.Method = user.Value, true, SourceUser, user.Method
	}
	return out
}
