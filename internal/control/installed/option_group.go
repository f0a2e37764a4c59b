package installed

import (
	"strings"

	"kurabe"
)

// OptionGroup is the option group of a family. There is one for each, without
// options and always there: an engine loads what its parameters name, so there
// is nothing for an option to switch.
type OptionGroup struct {
	Name   string
	Engine kurabe.EngineName
	Major  string
}

// whyNoOptions is the one reason for which option groups are not changed.
const whyNoOptions = "option groups cannot be changed: engines load what their parameters name"

// OptionGroups lists the option groups by name.
func (c Engines) OptionGroups() []OptionGroup {
	var list []OptionGroup
	seen := map[string]bool{}
	for _, v := range c.Ready() {
		g := OptionGroup{DefaultOptionGroup(v), v.Engine, v.Major()}
		if !seen[g.Name] {
			seen[g.Name] = true
			list = append(list, g)
		}
	}
	return list
}

// OptionGroup returns an option group by its name or ARN.
func (c Engines) OptionGroup(name string) (OptionGroup, error) {
	folded := strings.ToLower(strings.TrimPrefix(name, c.ARN("og", "")))
	for _, g := range c.OptionGroups() {
		if g.Name == folded {
			return g, nil
		}
	}
	return OptionGroup{}, kurabe.Errorf(kurabe.CodeOptionGroupNotFound, kurabe.WordsOptionGroupNotFound, name)
}

// ChangeOptionGroup says why an option group cannot be changed or deleted.
func (c Engines) ChangeOptionGroup(name string) error {
	g, err := c.OptionGroup(name)
	if err != nil {
		return err
	}
	return kurabe.Errorf(kurabe.CodeInvalidOptionGroupState, "The option group %s is a default group; %s", g.Name, whyNoOptions)
}

// CopyOptionGroup says why an option group cannot be copied.
func (c Engines) CopyOptionGroup(source string) error {
	if _, err := c.OptionGroup(source); err != nil {
		return err
	}
	return kurabe.Errorf(kurabe.CodeUnsupported, "%s", whyNoOptions)
}

// DefaultOptionGroup is the name of the option group of a version without
// options, RDS's "default:postgres-15".
func DefaultOptionGroup(v kurabe.EngineVersion) string {
	return "default:" + string(v.Engine) + "-" + strings.ReplaceAll(v.Major(), ".", "-")
}
