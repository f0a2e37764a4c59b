package parameter

import (
	"kurabe/internal/control/scope"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kurabe"
)

// maxParameterValue bounds one value in bytes; a group's values together must
// fit into one record of the store.
const maxParameterValue = 4096

// rangeRule is AllowedValues of a range: "1-65535", "-1-2147483647", "0-1.5e3".
var rangeRule = regexp.MustCompile(`^(-?[0-9.]+(?:[eE][+-]?[0-9]+)?)-(-?[0-9.]+(?:[eE][+-]?[0-9]+)?)$`)

// booleanWords are what either engine reads as a boolean.
var booleanWords = []string{"0", "1", "on", "off", "true", "false"}

// formulaWorld is a setting in which a formula must give an allowed value.
type formulaWorld struct {
	class string
	vars  kurabe.FormulaVars
}

// formulaWorlds are the classes that some host can hold; without a host, all.
func (c Groups) formulaWorlds(engine kurabe.EngineName) []formulaWorld {
	var worlds []formulaWorld
	hosts := c.View.Hosts()
	for _, class := range kurabe.Classes() {
		w := formulaWorld{class.Name, kurabe.FormulaVars{
			MemoryBytes: class.MemoryBytes, CPUs: max(class.CPUs, 1), StorageBytes: kurabe.DefaultStorageGiB * kurabe.GiB, Port: engine.DefaultPort(),
		}}
		fit := slices.IndexFunc(hosts, func(h kurabe.HostReport) bool { return class.Unfit(h) == "" })
		if fit >= 0 && class.CPUs == 0 {
			w.vars.CPUs = hosts[fit].CPUs
		}
		if fit >= 0 || len(hosts) == 0 {
			worlds = append(worlds, w)
		}
	}
	return worlds
}

// checkParameterValue says why a parameter cannot have a value, nil when it can.
// A formula must hold for every one of the worlds.
func checkParameterValue(p kurabe.Parameter, value string, worlds []formulaWorld) error {
	switch {
	case len(value) > maxParameterValue:
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid parameter value for: %s it is longer than %d bytes", p.Name, maxParameterValue)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid parameter value for: %s it holds a control character", p.Name)
	case !kurabe.IsFormula(value):
		return notAllowed(p, value, value)
	case p.Type != "integer" && p.Type != "float":
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid parameter value: %s for: %s a value that begins like a formula needs a numeric parameter", value, p.Name)
	}
	for _, w := range worlds {
		result, err := w.vars.Evaluate(value)
		if err != nil {
			return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid parameter value: %s for: %s %s", value, p.Name, err)
		}
		if err := notAllowed(p, result, value+" (which is "+result+" for class "+w.class+")"); err != nil {
			return err
		}
	}
	return nil
}

// notAllowed returns RDS's error when a plain value is not allowed.
func notAllowed(p kurabe.Parameter, value, shown string) error {
	if allowsValue(p, value) {
		return nil
	}
	allowed := p.Allowed
	if allowed == "" {
		allowed = "any " + p.Type
	}
	return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid parameter value: %s for: %s allowed values are: %s", shown, p.Name, allowed)
}

// allowsValue checks type and allowed values. Words are compared without regard
// to case, as both engines do.
func allowsValue(p kurabe.Parameter, value string) bool {
	switch p.Type {
	case "boolean":
		return scope.HasFold(booleanWords, value) || allowsItem(p.Allowed, value)
	case "integer":
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			if _, err := strconv.ParseUint(value, 10, 64); err != nil {
				return false
			}
		}
		return allowsItem(p.Allowed, value)
	case "float":
		if x, err := strconv.ParseFloat(value, 64); err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
		return allowsItem(p.Allowed, value)
	case "list":
		for item := range strings.SplitSeq(value, ",") {
			if value != "" && !allowsItem(p.Allowed, strings.TrimSpace(item)) {
				return false
			}
		}
		return true
	}
	return allowsItem(p.Allowed, value) || p.AlsoAllowed != "" && allowsItem(p.AlsoAllowed, value)
}

// allowsItem compares with AllowedValues: a list of words and ranges, ""
// standing for anything.
func allowsItem(allowed, value string) bool {
	if allowed == "" {
		return true
	}
	for item := range strings.SplitSeq(allowed, ",") {
		item = strings.TrimSpace(item)
		if strings.EqualFold(item, value) || inRange(item, value) {
			return true
		}
	}
	return false
}

func inRange(item, value string) bool {
	m := rangeRule.FindStringSubmatch(item)
	if m == nil {
		return false
	}
	// Whole numbers beyond 2^53 are not exact as floats; nothing is allowed up
	// to such a bound and refused just above it.
	x, err := strconv.ParseFloat(value, 64)
	low, errLow := strconv.ParseFloat(m[1], 64)
	high, errHigh := strconv.ParseFloat(m[2], 64)
	return err == nil && errLow == nil && errHigh == nil && low <= x && x <= high
}
