package target

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// A variant that logs to tables gets empty ones of its own in place of the server's: what
// it makes of them, another engine or a million rows, would otherwise meet the next trial
// and stay when the study is over. The server's lie beside them under another name and
// keep what is in them.
const (
	logOutput = "log_output"
	logSchema = "mysql"
	kindTable = "table" // of the note: a log table that the study has put aside
)

var logTables = []string{"general_log", "slow_log"}

// asideName is where the server's own table lies meanwhile, madeName what the study's is
// called before and after it stands in for it.
func (t *urlTarget) asideName(table string) string {
	return databasePrefix + t.id + "_" + table + "_aside"
}
func (t *urlTarget) madeName(table string) string {
	return databasePrefix + t.id + "_" + table + "_made"
}

func (t *urlTarget) inLogSchema(table string) string {
	return logSchema + "." + dial.Ident(t.admin.Engine, table)
}

// logsToTables says whether parameters have the server log to tables.
func logsToTables(parameters map[string]string) bool {
	for item := range strings.SplitSeq(parameters[logOutput], ",") {
		if strings.EqualFold(strings.TrimSpace(item), "TABLE") {
			return true
		}
	}
	return false
}

// outputFirst has it said where the log goes before the log is switched on: what the server
// did with it until then may be to write to a table of its owner's.
func outputFirst(names []string) []string {
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case a == logOutput && b != logOutput:
			return -1
		case b == logOutput && a != logOutput:
			return 1
		}
		return 0
	})
	return names
}

// putLogTablesAside is for a variant that logs to tables, by a user who may do it: one who
// may not cannot change the tables either, and leaves rows in them.
func (t *urlTarget) putLogTablesAside(ctx context.Context, admin *dial.Session, parameters map[string]string) error {
	if t.admin.Engine == study.Postgres || !t.all || len(parameters) == 0 {
		return nil
	}
	if _, said := parameters[logOutput]; !said { // then it is what the server has
		parameters = map[string]string{logOutput: t.have[logOutput].value}
	}
	if !logsToTables(parameters) {
		return nil
	}
	for _, table := range logTables {
		err := t.withNote(ctx, func(note *dial.Session) error { return note.Exec(ctx, t.noteRow(kindTable, table, t.asideName(table))) })
		if err != nil {
			return fmt.Errorf("write down where table %s will lie: %w", table, err)
		}
		// The server renames a log table only together with another that takes its place.
		own, aside, made := t.inLogSchema(table), t.inLogSchema(t.asideName(table)), t.inLogSchema(t.madeName(table))
		if err := admin.Exec(ctx, "CREATE TABLE "+made+" LIKE "+own, "RENAME TABLE "+own+" TO "+aside+", "+made+" TO "+own); err != nil {
			return fmt.Errorf("put table %s aside: %w", table, err)
		}
	}
	return nil
}

// putLogTablesBack can be called at any point between, and again.
func (t *urlTarget) putLogTablesBack(ctx context.Context, admin, note *dial.Session) (names []string, err error) {
	rows, err := note.Rows(ctx, "SELECT name FROM "+noteTable+" WHERE kind = '"+kindTable+"' ORDER BY name")
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		table := row[0]
		own, aside, made := t.inLogSchema(table), t.inLogSchema(t.asideName(table)), t.inLogSchema(t.madeName(table))
		there, err := admin.Rows(ctx, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+dial.Literal(t.admin.Engine, logSchema)+
			" AND TABLE_NAME = "+dial.Literal(t.admin.Engine, t.asideName(table)))
		if err == nil && len(there) > 0 {
			err = admin.Exec(ctx, "RENAME TABLE "+own+" TO "+made+", "+aside+" TO "+own)
		}
		if err == nil {
			err = admin.Exec(ctx, "DROP TABLE IF EXISTS "+made)
		}
		if err != nil {
			return nil, fmt.Errorf("put table %s.%s back: %w", logSchema, table, err)
		}
		names = append(names, "table "+logSchema+"."+table)
	}
	return names, nil
}
