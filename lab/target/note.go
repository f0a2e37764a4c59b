package target

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// The note is a table in a database of its own: whose the study's databases are, which one
// of the user's has its tables, and what parameters of the whole server were before a
// variant changed them. Each is there before
// the change is made, so whoever comes after a crash can put it back.
const (
	noteTable  = "note"
	kindOwner  = "owner"
	kindWas    = "was"    // a parameter with the value that it had
	kindAbsent = "absent" // one that nobody had set by ALTER SYSTEM
)

// makeNote writes whose the study's databases will be.
func (t *urlTarget) makeNote(ctx context.Context) error {
	admin, err := dial.Open(ctx, t.admin)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err := admin.Exec(ctx, "CREATE DATABASE "+dial.Ident(t.admin.Engine, t.noteName())); err != nil {
		return fmt.Errorf("make the note of the study: %w", err)
	}
	err = t.withNote(ctx, func(note *dial.Session) error {
		return note.Exec(ctx,
			"CREATE TABLE "+noteTable+" (kind varchar(16) NOT NULL, name varchar(128) NOT NULL, value text NOT NULL, PRIMARY KEY (kind, name))",
			t.noteRow(kindOwner, "", t.owner.String()))
	})
	if err != nil {
		closeCtx, cancel := closing(ctx)
		defer cancel()
		_, dropErr := t.drop(closeCtx, admin, t.noteName())
		return fmt.Errorf("make the note of the study: %w", errors.Join(err, dropErr))
	}
	t.noted = true
	return nil
}

func (t *urlTarget) noteRow(kind, name, value string) string {
	quote := func(text string) string { return dial.Literal(t.admin.Engine, text) }
	return fmt.Sprintf("INSERT INTO %s (kind, name, value) VALUES (%s, %s, %s)", noteTable, quote(kind), quote(name), quote(value))
}

func (t *urlTarget) withNote(ctx context.Context, do func(*dial.Session) error) error {
	note, err := dial.Open(ctx, t.in(t.noteName()))
	if err != nil {
		return err
	}
	defer note.Close()
	return do(note)
}

// keepBefore writes down what a parameter of the whole server is.
func (t *urlTarget) keepBefore(ctx context.Context, admin *dial.Session, name string) error {
	kind, value := kindWas, ""
	question := "SELECT @@GLOBAL." + dial.Ident(t.admin.Engine, name)
	if t.admin.Engine == study.Postgres {
		question = `SELECT setting FROM pg_file_settings WHERE sourcefile LIKE '%postgresql.auto.conf' AND name = ` +
			dial.Literal(t.admin.Engine, name) + " ORDER BY seqno DESC LIMIT 1"
	}
	rows, err := admin.Rows(ctx, question)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		kind = kindAbsent
	} else {
		value = rows[0][0]
	}
	return t.withNote(ctx, func(note *dial.Session) error { return note.Exec(ctx, t.noteRow(kind, name, value)) })
}

// putBack gives parameters of the whole server what they had, and says which.
func (t *urlTarget) putBack(ctx context.Context, admin *dial.Session) (names []string, err error) {
	err = t.withNote(ctx, func(note *dial.Session) error {
		rows, err := note.Rows(ctx, "SELECT kind, name, value FROM "+noteTable+" WHERE kind IN ('"+kindWas+"', '"+kindAbsent+"') ORDER BY name")
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := admin.Exec(ctx, t.back(row[0], row[1], row[2])); err != nil {
				return fmt.Errorf("put parameter %s back to %q: %w", row[1], row[2], err)
			}
			names = append(names, row[1])
		}
		if t.admin.Engine == study.Postgres && len(rows) > 0 {
			if _, err := admin.Rows(ctx, "SELECT pg_reload_conf()"); err != nil {
				return fmt.Errorf("have the server read its settings: %w", err)
			}
		}
		// After the parameters: what they were may be no logging at all.
		tables, err := t.putLogTablesBack(ctx, admin, note)
		if err != nil {
			return err
		}
		names = append(names, tables...)
		return note.Exec(ctx, "DELETE FROM "+noteTable+" WHERE kind IN ('"+kindWas+"', '"+kindAbsent+"', '"+kindTable+"')")
	})
	return names, err
}

// back is the statement that puts one parameter back.
func (t *urlTarget) back(kind, name, value string) string {
	switch {
	case t.admin.Engine != study.Postgres:
		return fmt.Sprintf("SET GLOBAL %s = %s", dial.Ident(t.admin.Engine, name), mysqlValue(value))
	case kind == kindAbsent:
		return "ALTER SYSTEM RESET " + name
	}
	return fmt.Sprintf("ALTER SYSTEM SET %s = %s", name, postgresValue(name, value))
}

// ownName is a database of a study: the id, then what it is for.
var ownName = regexp.MustCompile(`^` + databasePrefix + `([0-9a-f]{10})(|` + goldenSuffix + `|` + noteSuffix + `)$`)

// CleanURL removes the databases of studies that died before they could, puts back what
// they had changed of the server, and says what it did, and what it kept and why.
func CleanURL(ctx context.Context, address string, o Options) (said []string, failure error) {
	server, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	if err := findPassword(&server, o.PasswordFile); err != nil {
		return nil, err
	}
	me, err := newURL(ctx, server, o)
	if err != nil {
		return nil, err
	}
	admin, err := dial.Open(ctx, me.admin)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	question := "SHOW DATABASES"
	if me.admin.Engine == study.Postgres {
		question = "SELECT datname FROM pg_database"
	}
	rows, err := admin.Rows(ctx, question)
	if err != nil {
		return nil, fmt.Errorf("list the databases: %w", err)
	}
	studies := map[string]map[string]bool{} // by id, then suffix
	for _, row := range rows {
		if m := ownName.FindStringSubmatch(row[0]); m != nil {
			if studies[m[1]] == nil {
				studies[m[1]] = map[string]bool{}
			}
			studies[m[1]][m[2]] = true
		}
	}
	for _, id := range sortedKeys(studies) {
		done, err := me.cleanStudy(ctx, admin, id, studies[id][noteSuffix])
		said = append(said, done...)
		if err != nil {
			return said, fmt.Errorf("remove what study %s left: %w", id, err)
		}
	}
	return said, nil
}

// cleanStudy removes one study's databases.
func (t *urlTarget) cleanStudy(ctx context.Context, admin *dial.Session, id string, noted bool) ([]string, error) {
	other := *t
	other.id = id
	whose := ""
	if noted {
		err := other.withNote(ctx, func(note *dial.Session) error {
			rows, err := note.Rows(ctx, "SELECT value FROM "+noteTable+" WHERE kind = '"+kindOwner+"'")
			if err == nil && len(rows) == 1 {
				whose = rows[0][0]
			}
			return err
		})
		if err != nil && !t.options.Others {
			return []string{fmt.Sprintf("kept databases %s%s*: their note cannot be read (%v)", databasePrefix, id, err)}, nil
		}
	}
	if why := keep(whose, t.owner, t.options.Others); why != "" {
		return []string{fmt.Sprintf("kept databases %s%s*: %s", databasePrefix, id, why)}, nil
	}
	var said []string
	if whose != "" {
		names, err := other.putBack(ctx, admin)
		if err != nil {
			return nil, err
		}
		if len(names) > 0 {
			said = append(said, "put back "+strings.Join(names, ", "))
		}
		left, err := other.leavePlaces(ctx, admin)
		for _, name := range left {
			said = append(said, "removed "+name)
		}
		if err != nil {
			return said, err
		}
	}
	for _, suffix := range []string{"", goldenSuffix, noteSuffix} {
		name := databasePrefix + id + suffix
		gone, err := other.drop(ctx, admin, name)
		if err != nil {
			return said, err
		}
		if gone {
			said = append(said, "removed database "+name)
		}
	}
	return said, nil
}
