package mariadb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// variable is one row of information_schema.SYSTEM_VARIABLES.
type variable struct {
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

const variablesQuery = `SELECT JSON_OBJECT('name', LOWER(VARIABLE_NAME), 'scope', VARIABLE_SCOPE, 'type', VARIABLE_TYPE,
 'default', DEFAULT_VALUE, 'comment', VARIABLE_COMMENT, 'min', NUMERIC_MIN_VALUE, 'max', NUMERIC_MAX_VALUE,
 'words', ENUM_VALUE_LIST, 'readOnly', READ_ONLY, 'argument', COMMAND_LINE_ARGUMENT)
 FROM information_schema.SYSTEM_VARIABLES %s`

// ReadCatalog implements engine.Driver. It asks a scratch server: bootstrap mode
// has no replication, and crashes on the variables of it.
func (d *Driver) ReadCatalog(ctx context.Context, r engine.TemplateRequest) (kurabe.Catalog, error) {
	w, err := d.makeData(ctx, r)
	if err != nil {
		return kurabe.Catalog{}, fmt.Errorf("read catalogue: %w", err)
	}
	defer w.Remove()
	lines, err := w.answer(ctx, variablesQuery, w.serveOnce)
	if err != nil {
		return kurabe.Catalog{}, fmt.Errorf("read catalogue: %w", err)
	}
	variables := make([]variable, len(lines))
	for n, text := range lines {
		if err := json.Unmarshal([]byte(text), &variables[n]); err != nil {
			return kurabe.Catalog{}, fmt.Errorf("read catalogue: decode %q: %w", text, err)
		}
	}
	return kurabe.Catalog{
		Engine: kurabe.MariaDB, Version: r.Version.Version, Family: r.Version.Family, Parameters: describe(variables), Demands: demands,
	}, nil
}

// serveOnce starts a whole server, out of anybody's reach, which runs the
// statements and ends.
func (w *initializer) serveOnce(ctx context.Context, statements string) error {
	path := filepath.Join(w.Dir, "init.sql")
	// Of one line each: an init file has a statement per line.
	text := strings.ReplaceAll(statements, "\n ", " ") + "SHUTDOWN;\n"
	if err := volume.WriteNew(path, []byte(text), 0o644, nil); err != nil {
		return err
	}
	return w.serve(ctx, "mariadbd --init-file", []string{
		"--init-file=" + w.Seen(path), "--skip-networking", "--socket=", "--pid-file=" + w.Seen(filepath.Join(w.Dir, "mysqld.pid")),
		"--innodb-log-file-size=" + redoBytes, "--innodb-buffer-pool-size=16M",
	}, "")
}

// describe is pure: the engine's rows in the words of the API, with Kurabe's
// rules laid over them.
func describe(variables []variable) []kurabe.Parameter {
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
		if value, ok := system[p.Name]; ok {
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
func isSwitch(v variable) bool {
	return v.Type == "BOOLEAN" || (v.Words != nil && strings.EqualFold(*v.Words, "OFF,ON"))
}

func isInteger(v variable) bool {
	return strings.HasPrefix(v.Type, "INT") || strings.HasPrefix(v.Type, "BIGINT")
}

func dataType(v variable) string {
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
func allowedValues(v variable) string {
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
func numbers(v variable) string {
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

func defaultValue(v variable) string {
	if !isSwitch(v) {
		return *v.Default
	}
	if strings.EqualFold(*v.Default, "ON") {
		return "1"
	}
	return "0"
}
