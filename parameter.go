package kurabe

import "time"

// ApplyType says when a changed parameter can take effect.
type ApplyType string

// A dynamic parameter takes effect in the running server, a static one at the
// next start.
const (
	ApplyDynamic ApplyType = "dynamic"
	ApplyStatic  ApplyType = "static"
)

// ApplyMethod is what the user asked for when changing a parameter.
type ApplyMethod string

// The methods of ModifyDBParameterGroup.
const (
	ApplyImmediate     ApplyMethod = "immediate"
	ApplyPendingReboot ApplyMethod = "pending-reboot"
)

// ParameterStandbyLost is a parameter of the service's own, which no engine knows: what
// becomes of commits when no standby answers.
const ParameterStandbyLost = "kurabe.standby_lost"

// Its values. Degrade: commits go on alone, as on RDS. Block: they wait as long as it takes.
const (
	StandbyLostDegrade = "degrade"
	StandbyLostBlock   = "block"
)

// ServiceParameters are those that every engine has here and none knows. They are in no
// settings file: the planner obeys them.
func ServiceParameters() []Parameter {
	return []Parameter{{
		Name: ParameterStandbyLost, Type: "string", Allowed: StandbyLostDegrade + "," + StandbyLostBlock, Apply: ApplyDynamic, Modifiable: true,
		Default: StandbyLostDegrade, HasDefault: true, System: true,
		Description: "What becomes of commits when no standby of a Multi-AZ DB instance, or no reader of a DB cluster, answers for about two seconds: " +
			"degrade has them go on with the writer alone; block has them wait until another server has them, however long it takes. " +
			"Of no effect on a DB instance in one zone, and before the standby had every commit for the first time.",
	}}
}

// Parameter is one parameter of an engine version, as the engine itself
// describes it.
type Parameter struct {
	Name    string `json:"name"`
	Type    string `json:"type"`              // boolean, integer, float, string, list (AWS's DataType words)
	Allowed string `json:"allowed,omitempty"` // "1-65535" or "on,off,try" (AWS's AllowedValues)
	// AlsoAllowed are further notations of allowed values that the engine takes, as numbers
	// of an enumeration; AWS does not list them.
	AlsoAllowed string    `json:"alsoAllowed,omitempty"`
	Apply       ApplyType `json:"apply"`
	Modifiable  bool      `json:"modifiable"`
	Default     string    `json:"default,omitempty"` // the engine's built-in value, or Kurabe's formula when System
	HasDefault  bool      `json:"hasDefault"`        // false: no value (AWS omits ParameterValue)
	System      bool      `json:"system"`            // Kurabe sets it (AWS Source "system"), else "engine-default"
	Unit        string    `json:"unit,omitempty"`    // of a bare number: "8kB", "ms", "s"
	Description string    `json:"description,omitempty"`
	// Fixed says why a parameter that the engine could change is not
	// modifiable here.
	Fixed string `json:"fixed,omitempty"`
}

// Catalog is every parameter of one engine version, sorted by name.
type Catalog struct {
	Engine     EngineName  `json:"engine"`
	Version    string      `json:"version"`
	Family     string      `json:"family"`
	Parameters []Parameter `json:"parameters"`
	// Demands are what parameters make the server take; none from a host of before there were any.
	Demands Demands `json:"demands,omitempty"`
}

// Find returns the parameter with that name.
func (c *Catalog) Find(name string) (Parameter, bool) {
	if c == nil {
		return Parameter{}, false
	}
	lo, hi := 0, len(c.Parameters)
	for lo < hi {
		mid := (lo + hi) / 2
		if c.Parameters[mid].Name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(c.Parameters) && c.Parameters[lo].Name == name {
		return c.Parameters[lo], true
	}
	return Parameter{}, false
}

// Resolve is pure: the value of every parameter that is not the engine's own
// default, formulas evaluated. A formula that cannot be evaluated keeps the
// engine's default; the API refuses such formulas before they get here.
func (c *Catalog) Resolve(g *ParameterGroup, v FormulaVars) map[string]string {
	values := map[string]string{}
	for _, p := range c.Parameters {
		raw, set := p.Default, p.System && p.HasDefault
		if g != nil {
			if user, ok := g.Values[p.Name]; ok && p.Modifiable {
				raw, set = user.Value, true
			}
		}
		if !set {
			continue
		}
		if value, err := v.Evaluate(raw); err == nil {
			values[p.Name] = value
		}
	}
	return values
}

// ParameterValue is one parameter that a user set in a group.
type ParameterValue struct {
	Value  string      `json:"value"`
	Method ApplyMethod `json:"method"`
}

// ParameterGroup is a named set of parameter values for one family. The API
// writes it. The groups named "default.FAMILY" always exist, hold no values and
// cannot be changed; they are not stored.
type ParameterGroup struct {
	Name        string                    `json:"name"`
	Family      string                    `json:"family"`
	Description string                    `json:"description"`
	Values      map[string]ParameterValue `json:"values,omitempty"`
	// Later names the parameters that were reset to their default with the
	// method pending-reboot: what is in force stays so until the next start.
	Later     map[string]bool `json:"later,omitempty"`
	Cluster   bool            `json:"cluster,omitempty"` // of DB clusters, and of no instance
	Tags      []Tag           `json:"tags,omitempty"`
	Revision  int64           `json:"revision"`
	CreatedAt time.Time       `json:"createdAt"`
}

// Key is the name by which the group is unique.
func (g *ParameterGroup) Key() string { return NameKey(g.Name, g.Cluster) }

// DefaultGroup is the name of a family's default parameter group.
func DefaultGroup(family string) string { return "default." + family }

// Tag is one key and value; lists of tags keep the order that the user gave.
type Tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}
