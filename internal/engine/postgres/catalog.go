package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// ReadCatalog implements engine.Driver. It asks a scratch server with every
// offered module loaded, so that the modules' parameters are in it too.
func (d *Driver) ReadCatalog(ctx context.Context, r engine.TemplateRequest) (kurabe.Catalog, error) {
	modules, err := installedModules(r.Version)
	if err != nil {
		return kurabe.Catalog{}, fmt.Errorf("read catalogue: %w", err)
	}
	rows, err := readSettings(ctx, r, modules)
	if err != nil {
		return kurabe.Catalog{}, fmt.Errorf("read catalogue: %w", err)
	}
	return kurabe.Catalog{
		Engine: kurabe.Postgres, Version: r.Version.Version, Family: r.Version.Family,
		Parameters: describe(rows, offer{modules: modules, extensions: r.Version.Extensions}), Demands: demands,
	}, nil
}

// installedModules are the modules on offer whose library exists.
func installedModules(v kurabe.EngineVersion) ([]string, error) {
	lib := filepath.Join(filepath.Dir(v.BinDir), "lib")
	if _, err := os.Stat(lib); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(modules), func(name string) bool {
		_, err := os.Stat(filepath.Join(lib, name+".so"))
		return err != nil
	}), nil
}

// offer is what of the version limits the values of parameters.
type offer struct {
	modules    []string
	extensions []string
}

// describe is pure: the engine's rows in the words of the API, with Kurabe's
// rules laid over them.
func describe(rows []setting, o offer) []kurabe.Parameter {
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
func switchWords(row setting) string {
	words := strings.Split(allowedValues(row), ",")
	if dataType(row) == "string" && slices.Contains(words, "on") && slices.Contains(words, "off") {
		return "1,0,true,false,yes,no"
	}
	return ""
}

func applyRules(p *kurabe.Parameter, row setting, o offer) {
	p.Fixed = fixedReason(row)
	p.Modifiable = p.Fixed == ""
	if value, ok := system[p.Name]; ok {
		p.Default, p.HasDefault, p.System = value, true, true
	}
	if value, ok := narrowed[p.Name]; ok && p.Modifiable {
		p.Allowed, p.AlsoAllowed = value, ""
	}
	if preloads[p.Name] {
		p.Type, p.Allowed = "list", strings.Join(o.modules, ",")
	}
	if p.Name == "session_preload_libraries" {
		later := slices.DeleteFunc(slices.Clone(o.modules), func(name string) bool { return slices.Contains(withServer, name) })
		p.Allowed = strings.Join(later, ",")
	}
	if p.Name == "shared_preload_libraries" && slices.Contains(o.modules, defaultModule) {
		p.Default, p.HasDefault, p.System = defaultModule, true, true
	}
	if p.Name == "wal_compression" && slices.Contains(row.Enum, pageCompression) {
		p.Default, p.HasDefault, p.System = pageCompression, true, true
	}
}

func dataType(row setting) string {
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
func allowedValues(row setting) string {
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

func defaultValue(row setting) string {
	if row.VarType != "bool" {
		return *row.Boot
	}
	if *row.Boot == "on" {
		return "1"
	}
	return "0"
}

// setting is one row of pg_settings.
type setting struct {
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

// readSettings makes a cluster, asks it and throws it away.
func readSettings(ctx context.Context, r engine.TemplateRequest, modules []string) ([]setting, error) {
	w, err := openInitializer(r)
	if err != nil {
		return nil, err
	}
	defer w.Remove()
	if err := w.initdb(ctx, defaultLocale); err != nil {
		return nil, err
	}
	const answer = "settings.json"
	err = w.singleUser(ctx, single{
		database: "postgres",
		settings: []string{"shared_preload_libraries=" + strings.Join(modules, ",")},
		statements: []string{fmt.Sprintf(`COPY (SELECT pg_catalog.row_to_json(s) FROM (
	SELECT name, unit, category, short_desc, context, vartype, min_val, max_val, enumvals, boot_val
	FROM pg_catalog.pg_settings) s) TO %s`, quoteLiteral(w.Seen(filepath.Join(w.Dir, answer))))},
	})
	if err != nil {
		return nil, err
	}
	raw, err := volume.ReadFile(filepath.Join(w.Dir, answer))
	if err != nil {
		return nil, err
	}
	return decodeSettings(raw)
}

// decodeSettings reads lines of JSON in COPY's text format, which doubles each
// backslash; JSON has no other character that COPY would change.
func decodeSettings(raw []byte) ([]setting, error) {
	var rows []setting
	for line := range bytes.Lines(raw) {
		var row setting
		if err := json.Unmarshal(bytes.ReplaceAll(line, []byte(`\\`), []byte(`\`)), &row); err != nil {
			return nil, fmt.Errorf("decode %q: %w", line, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// What a server takes for each, about: `postgres -C shared_memory_size` of 15 with other values
// of one parameter gives it.
const (
	kiB        = 1 << 10
	blockBytes = 8 << 10
	// backendBytes is what shared memory holds of one backend, connBytes the least that a
	// session has of its own.
	backendBytes = 8 << 10
	connBytes    = 128 << 10
	lockBytes    = 416 // a LOCK, two PROCLOCKs and their hash entries
	predBytes    = 272
	statBytes    = 1 << 10 // of pg_stat_statements, without its texts
)

// otherBackends are those that max_connections does not count: auxiliary processes, and the
// replication senders that the service gives.
const otherBackends = 20

// backends are the parameters that say how many of them there are.
var backends = []string{"max_connections", "max_prepared_transactions", "max_worker_processes", "autovacuum_max_workers"}

// demands are what parameters make the server take, at the start or as a bound of a session.
// Numbers without a unit in a settings file: in the unit of pg_settings.
var demands = kurabe.Demands{
	"shared_buffers":                 {Resource: kurabe.Memory, Bytes: blockBytes, Default: 16384},
	"wal_buffers":                    {Resource: kurabe.Memory, Bytes: blockBytes, Default: 2048},
	"max_connections":                {Resource: kurabe.Memory, Bytes: connBytes, Default: 100, Alone: true},
	"max_prepared_transactions":      {Resource: kurabe.Memory, Bytes: backendBytes},
	"max_worker_processes":           {Resource: kurabe.Memory, Bytes: backendBytes, Default: 8},
	"autovacuum_max_workers":         {Resource: kurabe.Memory, Bytes: backendBytes, Default: 3},
	"autovacuum_worker_slots":        {Resource: kurabe.Memory, Bytes: backendBytes, Default: 16},
	"max_locks_per_transaction":      {Resource: kurabe.Memory, Bytes: lockBytes, Default: 64, Times: backends, Plus: otherBackends},
	"max_pred_locks_per_transaction": {Resource: kurabe.Memory, Bytes: predBytes, Default: 64, Times: backends, Plus: otherBackends},
	"track_activity_query_size":      {Resource: kurabe.Memory, Bytes: 1, Default: 1024, Times: backends, Plus: otherBackends},
	"pg_stat_statements.max":         {Resource: kurabe.Memory, Bytes: statBytes, Default: 5000},
	"wal_decode_buffer_size":         {Resource: kurabe.Memory, Bytes: 1, Default: 524288},
	"commit_timestamp_buffers":       {Resource: kurabe.Memory, Bytes: blockBytes},
	"multixact_member_buffers":       {Resource: kurabe.Memory, Bytes: blockBytes, Default: 32},
	"multixact_offset_buffers":       {Resource: kurabe.Memory, Bytes: blockBytes, Default: 16},
	"notify_buffers":                 {Resource: kurabe.Memory, Bytes: blockBytes, Default: 16},
	"serializable_buffers":           {Resource: kurabe.Memory, Bytes: blockBytes, Default: 32},
	"subtransaction_buffers":         {Resource: kurabe.Memory, Bytes: blockBytes},
	"transaction_buffers":            {Resource: kurabe.Memory, Bytes: blockBytes},
	"io_max_concurrency":             {Resource: kurabe.Memory, Bytes: 2 * kiB, Times: backends, Plus: otherBackends},

	"autovacuum_work_mem":       {Resource: kurabe.Memory, Bytes: kiB, Alone: true},
	"gin_pending_list_limit":    {Resource: kurabe.Memory, Bytes: kiB, Alone: true},
	"logical_decoding_work_mem": {Resource: kurabe.Memory, Bytes: kiB, Alone: true},
	"maintenance_work_mem":      {Resource: kurabe.Memory, Bytes: kiB, Alone: true},
	"temp_buffers":              {Resource: kurabe.Memory, Bytes: blockBytes, Alone: true},
	"vacuum_buffer_usage_limit": {Resource: kurabe.Memory, Bytes: kiB, Alone: true},
	"work_mem":                  {Resource: kurabe.Memory, Bytes: kiB, Alone: true},

	"max_wal_size": {Resource: kurabe.Disk, Bytes: 1 << 20, Alone: true},
	"min_wal_size": {Resource: kurabe.Disk, Bytes: 1 << 20, Alone: true},
}

// Demands implements engine.Demander.
func (d *Driver) Demands() kurabe.Demands { return demands }
