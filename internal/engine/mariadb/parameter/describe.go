package parameter

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"kurabe"
)

// Variable is one row of information_schema.SYSTEM_VARIABLES.
type Variable struct {
	Name     string  `json:"name"`
	Scope    string  `json:"scope"` // GLOBAL, SESSION (also global), SESSION ONLY
	Type     string  `json:"type"`
	Default  *string `json:"default"`
	Comment  string  `json:"comment"`
	Min      *string `json:"min"`
	Max      *string `json:"max"`
	Words    *string `json:"words"`
	ReadOnly string  `json:"readOnly"`
	// Argument is null when no option of the server sets the variable.
	Argument *string `json:"argument"`
}

// Describe is pure: the engine's rows in the words of the API, with Kurabe's
// rules laid over them.
func Describe(variables []Variable) []kurabe.Parameter {
	parameters := make([]kurabe.Parameter, 0, len(variables))
	for _, v := range variables {
		p := kurabe.Parameter{
			Name: v.Name, Type: dataType(v), Allowed: allowedValues(v), AlsoAllowed: numbers(v), Apply: kurabe.ApplyDynamic,
			Description: v.Comment, Fixed: fixedReason(v),
		}
		if v.ReadOnly == "YES" {
			p.Apply = kurabe.ApplyStatic
		}
		if v.Default != nil && !unset[v.Name] {
			p.Default, p.HasDefault = defaultValue(v), true
		}
		if value, ok := System[p.Name]; ok {
			p.Default, p.HasDefault, p.System = value, true, true
		}
		if value, ok := narrowed[p.Name]; ok {
			p.Allowed, p.AlsoAllowed = value, ""
		}
		p.Modifiable = p.Fixed == ""
		parameters = append(parameters, p)
	}
	// Find searches by bytes, so bytes are the order.
	slices.SortFunc(parameters, func(a, b kurabe.Parameter) int { return cmp.Compare(a.Name, b.Name) })
	return parameters
}

// isSwitch says whether a variable has no values but off and on. Some of them
// are enumerations to the server.
func isSwitch(v Variable) bool {
	return v.Type == "BOOLEAN" || (v.Words != nil && strings.EqualFold(*v.Words, "OFF,ON"))
}

func isInteger(v Variable) bool {
	return strings.HasPrefix(v.Type, "INT") || strings.HasPrefix(v.Type, "BIGINT")
}

func dataType(v Variable) string {
	switch {
	case isSwitch(v):
		return "boolean"
	case isInteger(v):
		return "integer"
	case v.Type == "DOUBLE":
		return "float"
	case v.Type == "SET", v.Type == "FLAGSET":
		return "list"
	}
	return "string"
}

// allowedValues are AWS's words: a range with a dash, a list with commas, and 0
// and 1 for what the server also takes as OFF and ON.
func allowedValues(v Variable) string {
	switch {
	case isSwitch(v):
		return "0,1"
	case isInteger(v) || v.Type == "DOUBLE":
		if v.Min == nil || v.Max == nil {
			return ""
		}
		return plain(*v.Min) + "-" + plain(*v.Max)
	case v.Type == "FLAGSET":
		// Its items are NAME=on, NAME=off and NAME=default.
		return ""
	case v.Words != nil:
		return *v.Words
	}
	return ""
}

// numbers are those of an enumeration's words, which the server counts from 0 and takes too.
func numbers(v Variable) string {
	if v.Type != "ENUM" || v.Words == nil || isSwitch(v) {
		return ""
	}
	all := make([]string, 1+strings.Count(*v.Words, ","))
	for n := range all {
		all[n] = strconv.Itoa(n)
	}
	return strings.Join(all, ",")
}

// plain writes a bound without an exponent, which AWS never has.
func plain(bound string) string {
	value, err := strconv.ParseFloat(bound, 64)
	if err != nil || !strings.ContainsAny(bound, "eE.") {
		return bound
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

func defaultValue(v Variable) string {
	if !isSwitch(v) {
		return *v.Default
	}
	if strings.EqualFold(*v.Default, "ON") {
		return "1"
	}
	return "0"
}

const VariablesQuery = `SELECT JSON_OBJECT('name', LOWER(VARIABLE_NAME), 'scope', VARIABLE_SCOPE, 'type', VARIABLE_TYPE,
 'default', DEFAULT_VALUE, 'comment', VARIABLE_COMMENT, 'min', NUMERIC_MIN_VALUE, 'max', NUMERIC_MAX_VALUE,
 'words', ENUM_VALUE_LIST, 'readOnly', READ_ONLY, 'argument', COMMAND_LINE_ARGUMENT)
 FROM information_schema.SYSTEM_VARIABLES %s`
