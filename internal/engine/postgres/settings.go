package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

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
