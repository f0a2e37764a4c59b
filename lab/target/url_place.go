package target

import (
	"context"
	"fmt"
	"strings"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// A study that runs in the user's own database marks the tables that it makes there with
// its name, and makes nothing that bears another mark or none. The note says which
// database that is, so that they go with the study, or with what cleans up after it.
const kindPlace = "place" // of the note: a database of the user's that has the study's tables

// mark is the comment of the study's tables in a database that is not the lab's.
func (t *urlTarget) mark() string { return databasePrefix + t.id }

// fillPlace makes the data in the user's database.
func (t *urlTarget) fillPlace(ctx context.Context, fill Fill) error {
	err := t.withNote(ctx, func(note *dial.Session) error { return note.Exec(ctx, t.noteRow(kindPlace, t.named, t.mark())) })
	if err != nil {
		return fmt.Errorf("write down where the data will be: %w", err)
	}
	marked := t.admin
	marked.Mark = t.mark()
	return fill(ctx, marked)
}

// leavePlaces removes the study's tables from databases of the user's, and says which.
func (t *urlTarget) leavePlaces(ctx context.Context, admin *dial.Session) (names []string, err error) {
	var rows [][]string
	err = t.withNote(ctx, func(note *dial.Session) error {
		rows, err = note.Rows(ctx, "SELECT name FROM "+noteTable+" WHERE kind = '"+kindPlace+"'")
		return err
	})
	for _, row := range rows {
		there, err := t.exists(ctx, admin, row[0])
		if err != nil {
			return names, err
		}
		if !there {
			continue // the user has dropped it
		}
		gone, err := t.leavePlace(ctx, row[0])
		if names = append(names, gone...); err != nil {
			return names, fmt.Errorf("remove the study's tables from database %s: %w", row[0], err)
		}
	}
	return names, err
}

// leavePlace removes what bears the mark in one database.
func (t *urlTarget) leavePlace(ctx context.Context, database string) (names []string, err error) {
	session, err := dial.Open(ctx, t.in(database))
	if err != nil {
		return nil, err
	}
	defer session.Close()
	engine, mark := t.admin.Engine, dial.Literal(t.admin.Engine, t.mark())
	question := "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_COMMENT = " + mark + " ORDER BY 1, 2"
	if engine == study.Postgres {
		question = "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') AND obj_description(c.oid, 'pg_class') = " + mark + " ORDER BY 1, 2"
	}
	rows, err := session.Rows(ctx, question)
	if err != nil {
		return nil, err
	}
	var quoted []string
	for _, row := range rows {
		quoted = append(quoted, dial.Ident(engine, row[0])+"."+dial.Ident(engine, row[1]))
		names = append(names, "table "+database+"."+row[1])
	}
	if len(quoted) > 0 {
		if err := session.Exec(ctx, "DROP TABLE "+strings.Join(quoted, ", ")); err != nil {
			return nil, err
		}
	}
	if engine != study.Postgres {
		return names, nil // what a tool left by half is in a database with the study's name
	}
	return names, session.Exec(ctx, "DROP SCHEMA IF EXISTS "+dial.Ident(engine, t.mark())+" CASCADE")
}

// exists says whether the server has a database.
func (t *urlTarget) exists(ctx context.Context, admin *dial.Session, name string) (bool, error) {
	question := "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = "
	if t.admin.Engine == study.Postgres {
		question = "SELECT datname FROM pg_database WHERE datname = "
	}
	rows, err := admin.Rows(ctx, question+dial.Literal(t.admin.Engine, name))
	return len(rows) > 0, err
}
