package parameter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kurabe"
)

// Setting is one row of pg_settings.
type Setting struct {
	Name     string   `json:"name"`
	Unit     string   `json:"unit"`
	Category string   `json:"category"`
	Short    string   `json:"short_desc"`
	Context  string   `json:"context"`
	VarType  string   `json:"vartype"`
	Min      string   `json:"min_val"`
	Max      string   `json:"max_val"`
	Enum     []string `json:"enumvals"`
	Boot     *string  `json:"boot_val"`
}

// DecodeSettings reads lines of JSON in COPY's text format, which doubles each
// backslash; JSON has no other character that COPY would change.
func DecodeSettings(raw []byte) ([]Setting, error) {
	var rows []Setting
	for line := range bytes.Lines(raw) {
		var row Setting
		if err := json.Unmarshal(bytes.ReplaceAll(line, []byte(`\\`), []byte(`\`)), &row); err != nil {
			return nil, fmt.Errorf("decode %q: %w", line, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Offer is what of the version limits the values of parameters.
type Offer struct {
	Modules    []string
	Extensions []string
}

// Describe is pure: the engine's rows in the words of the API, with Kurabe's
// rules laid over them.
func Describe(rows []Setting, o Offer) []kurabe.Parameter {
	parameters := ownParameters(o)
	for _, row := range rows {
		// The engine has TimeZone and DateStyle but does not mind the case; AWS
		// has small letters throughout.
		p := kurabe.Parameter{
			Name: strings.ToLower(row.Name), Type: dataType(row), Allowed: allowedValues(row), AlsoAllowed: switchWords(row), Apply: kurabe.ApplyDynamic,
			Unit: row.Unit, Description: row.Short,
		}
		if row.Context == "postmaster" {
			p.Apply = kurabe.ApplyStatic
		}
		if row.Boot != nil {
			p.Default, p.HasDefault = defaultValue(row), true
		}
		applyRules(&p, row, o)
		parameters = append(parameters, p)
	}
	// Find searches by bytes, so bytes are the order.
	slices.SortFunc(parameters, func(a, b kurabe.Parameter) int { return cmp.Compare(a.Name, b.Name) })
	return parameters
}

// switchWords are the other notations of on and off, which the engine takes of an enumeration
// that has both, and does not tell of.
func switchWords(row Setting) string {
	words := strings.Split(allowedValues(row), ",")
	if dataType(row) == "string" && slices.Contains(words, "on") && slices.Contains(words, "off") {
		return "1,0,true,false,yes,no"
	}
	return ""
}

func applyRules(p *kurabe.Parameter, row Setting, o Offer) {
	p.Fixed = fixedReason(row)
	p.Modifiable = p.Fixed == ""
	if value, ok := system[p.Name]; ok {
		p.Default, p.HasDefault, p.System = value, true, true
	}
	if value, ok := narrowed[p.Name]; ok && p.Modifiable {
		p.Allowed, p.AlsoAllowed = value, ""
	}
	if preloads[p.Name] {
		p.Type, p.Allowed = "list", strings.Join(o.Modules, ",")
	}
	if p.Name == "session_preload_libraries" {
		later := slices.DeleteFunc(slices.Clone(o.Modules), func(name string) bool { return slices.Contains(WithServer, name) })
		p.Allowed = strings.Join(later, ",")
	}
	if p.Name == "shared_preload_libraries" && slices.Contains(o.Modules, defaultModule) {
		p.Default, p.HasDefault, p.System = defaultModule, true, true
	}
	if p.Name == "wal_compression" && slices.Contains(row.Enum, pageCompression) {
		p.Default, p.HasDefault, p.System = pageCompression, true, true
	}
}

func dataType(row Setting) string {
	switch row.VarType {
	case "bool":
		return "boolean"
	case "integer":
		return "integer"
	case "real":
		return "float"
	}
	return "string"
}

// allowedValues are AWS's words: a range with a dash, a list with commas, and 0
// and 1 for what the engine also takes as off and on.
func allowedValues(row Setting) string {
	switch row.VarType {
	case "bool":
		return "0,1"
	case "integer", "real":
		return plain(row.Min) + "-" + plain(row.Max)
	}
	return strings.Join(row.Enum, ",")
}

// plain writes a bound without an exponent, which AWS never has: PostgreSQL
// gives 1.79769e+308 as the largest float.
func plain(bound string) string {
	if !strings.ContainsAny(bound, "eE") {
		return bound
	}
	value, err := strconv.ParseFloat(bound, 64)
	if err != nil {
		return bound
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

func defaultValue(row Setting) string {
	if row.VarType != "bool" {
		return *row.Boot
	}
	if *row.Boot == "on" {
		return "1"
	}
	return "0"
}
