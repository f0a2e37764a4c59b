package load

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// anyMark is how a run of the lab marks what it made.
var anyMark = regexp.MustCompile(`^kurabe_lab_[0-9a-f]{10}$`)

// found is a table that is there.
type found struct {
	table
	right bool   // it has as many rows as it should
	mark  string // its comment
}

// find looks for tables as the load's statements would: in PostgreSQL through the whole
// search path, where DROP TABLE finds them too.
func find(ctx context.Context, session *dial.Session, engine string, tables []table) ([]found, error) {
	var all []found
	for _, t := range tables {
		name := dial.Literal(engine, t.name)
		question := "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = " + name
		if engine == study.Postgres {
			question = "SELECT coalesce(obj_description(to_regclass(" + name + "), 'pg_class'), '') WHERE to_regclass(" + name + ") IS NOT NULL"
		}
		rows, err := session.Rows(ctx, question)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			continue
		}
		f := found{table: t, right: t.grows, mark: rows[0][0]}
		if !t.grows {
			count, err := session.Rows(ctx, "SELECT count(*) FROM "+t.name)
			if err != nil {
				return nil, err
			}
			f.right = len(count) == 1 && count[0][0] == fmt.Sprint(t.rows)
		}
		all = append(all, f)
	}
	return all, nil
}

// clearTables says whether all tables are there as they should be. If not it removes those that
// are there: all of them in a database of the lab's, and in another one those that this
// run made. A table that it did not make stays as it is, and the run is refused.
func clearTables(ctx context.Context, session *dial.Session, s dial.Server, tables []table) (there bool, err error) {
	all, err := find(ctx, session, s.Engine, tables)
	if err != nil {
		return false, err
	}
	there = len(all) == len(tables)
	for _, f := range all {
		there = there && f.right
		if s.Mark != "" && f.mark != s.Mark && anyMark.MatchString(f.mark) { // which takes it away when it ends
			return false, fmt.Errorf("table %s of database %s belongs to another run of the lab (%s): let that run end, or remove what it left with kurabe lab clean", f.name, s.Database, f.mark)
		}
	}
	if there {
		return true, nil
	}
	for _, f := range all {
		if s.Mark == "" || f.mark == s.Mark {
			continue
		}
		return false, fmt.Errorf("table %s of database %s would have to be made again with %d rows, and this run did not make it: it is left as it is; name another database in the URL, none at all, or rename the table", f.name, s.Database, f.rows)
	}
	for _, f := range all {
		if err := session.Exec(ctx, "DROP TABLE "+f.name); err != nil {
			return false, err
		}
	}
	return false, nil
}

// createMarked is the statement that makes a table and says in the same moment whose it
// is: what a run that dies leaves can be told from the user's.
func (t table) createMarked(s dial.Server) string {
	text := t.create(s.Engine)
	switch {
	case s.Mark == "":
		return text
	case s.Engine == study.Postgres: // two statements in one message are one transaction
		return text + "; COMMENT ON TABLE " + t.name + " IS " + dial.Literal(s.Engine, s.Mark)
	}
	return text + " COMMENT=" + dial.Literal(s.Engine, s.Mark)
}

// workshop is where a tool makes its tables when the database is not the lab's: a schema
// of it, or a database beside it, named by the mark. The tool's own DROP TABLE finds
// nothing else there, and what it made by half is known by its place. The tables move
// when they are complete and marked.
type workshop struct {
	dial.Server // for the tool
	home        dial.Server
	env         []string
}

func openWorkshop(ctx context.Context, session *dial.Session, s dial.Server) (*workshop, error) {
	w := &workshop{Server: s, home: s}
	if s.Mark == "" {
		return w, nil
	}
	// PostgreSQL's word for it is MariaDB's for a database.
	if err := session.Exec(ctx, "CREATE SCHEMA "+dial.Ident(s.Engine, s.Mark)); err != nil {
		return nil, fmt.Errorf("make a place for the data: %w", err)
	}
	if s.Engine == study.Postgres {
		w.env = []string{"PGOPTIONS=-c search_path=" + s.Mark}
	} else {
		w.Database = s.Mark
	}
	return w, nil
}

// deliver moves the tables to where they belong; one that has come there meanwhile is in
// the way, and an error.
func (w *workshop) deliver(ctx context.Context, session *dial.Session, tables []table) error {
	if w.home.Mark == "" {
		return nil
	}
	engine, place, mark := w.home.Engine, dial.Ident(w.home.Engine, w.home.Mark), dial.Literal(w.home.Engine, w.home.Mark)
	home := dial.Ident(engine, w.home.Database)
	if engine == study.Postgres {
		rows, err := session.Rows(ctx, "SELECT quote_ident(current_schema())")
		if err != nil || len(rows) != 1 {
			return fmt.Errorf("ask for the schema: %v, %w", rows, err)
		}
		home = rows[0][0]
	}
	var all []string
	for _, t := range tables {
		if engine == study.Postgres {
			all = append(all, "COMMENT ON TABLE "+place+"."+t.name+" IS "+mark, "ALTER TABLE "+place+"."+t.name+" SET SCHEMA "+home)
		} else {
			all = append(all, "ALTER TABLE "+place+"."+t.name+" COMMENT="+mark, "RENAME TABLE "+place+"."+t.name+" TO "+home+"."+t.name)
		}
	}
	all = append(all, "DROP SCHEMA "+place)
	if engine == study.Postgres {
		all = []string{strings.Join(all, "; ")} // one transaction
	}
	if err := session.Exec(ctx, all...); err != nil {
		return fmt.Errorf("put the data in its place: %w", err)
	}
	return nil
}
