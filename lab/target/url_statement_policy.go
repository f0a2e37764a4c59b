package target

import (
	"context"
	"fmt"
	"strings"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// otherDatabases are those that a statement could name. PostgreSQL's sessions reach none
// but their own; whatever a user of MariaDB or MySQL may write to he sees listed.
func (t *urlTarget) otherDatabases(ctx context.Context, session *dial.Session) (map[string]bool, error) {
	others := map[string]bool{}
	if t.admin.Engine == study.Postgres {
		return others, nil
	}
	rows, err := session.Rows(ctx, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
	if err != nil {
		return nil, fmt.Errorf("list the databases: %w", err)
	}
	for _, row := range rows {
		// What information_schema shows nobody can write.
		if name := strings.ToLower(row[0]); name != "information_schema" {
			others[name] = true
		}
	}
	return others, nil
}

// beyondVariant says why a variant needs the user's word: nothing could put back what its
// statements may do.
func (t *urlTarget) beyondVariant(v study.Variant) string {
	change := study.Statements(v.Change, t.admin.Engine)
	if v.Tool != "" {
		for n, text := range change {
			change[n] = "ALTER TABLE {table} " + text // as the tool completes it
		}
	}
	for _, part := range []struct {
		what string
		list []string
	}{{"SQL", statements(v, t.admin.Engine)}, {"change", change}, {"question whether it is changed", study.Statements(v.Changed, t.admin.Engine)}} {
		for _, text := range part.list {
			if why := t.beyond(part.what, text, false); why != "" {
				return why
			}
		}
	}
	return ""
}

// beyondWorkload is beyondVariant for what makes the data, and for the load itself.
func (t *urlTarget) beyondWorkload(w study.Workload) string {
	for _, text := range append(append([]string{}, w.Setup[""]...), w.Setup[t.admin.Engine]...) {
		if why := t.beyond("setup", text, false); why != "" {
			return why
		}
	}
	if w.Script == "" {
		return ""
	}
	return t.beyond("script", w.Script, true)
}

func (t *urlTarget) beyond(what, text string, script bool) string {
	if t.options.WritesAllowed {
		return ""
	}
	why := scope{engine: t.admin.Engine, databases: t.others, split: script}.refuses(text)
	if why == "" {
		return ""
	}
	return fmt.Sprintf("its %s may change more than the study's own database (%s: %s), and nothing could put that back: use a target with the RDS API, or give --i-know-this-writes", what, dial.Brief(strings.TrimSpace(text)), why)
}
