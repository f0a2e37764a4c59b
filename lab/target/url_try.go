package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// preloaded are extensions that need their library from the server's start: without it
// CREATE EXTENSION fails, or makes what then says and does nothing.
var preloaded = []string{"pgaudit", "pg_stat_statements", "pg_cron", "timescaledb", "citus"}

// available asks PostgreSQL for the extensions that its host has.
func available(ctx context.Context, session *dial.Session, engine string) (map[string]bool, error) {
	names := map[string]bool{}
	if engine != study.Postgres {
		return names, nil
	}
	rows, err := session.Rows(ctx, "SELECT name FROM pg_available_extensions")
	if err != nil {
		return nil, fmt.Errorf("ask for the extensions: %w", err)
	}
	for _, row := range rows {
		names[row[0]] = true
	}
	return names, nil
}

// missingExtension names one that a variant creates and the server cannot have.
func (t *urlTarget) missingExtension(v study.Variant) string {
	for _, name := range extensions(v, t.admin.Engine) {
		switch {
		case !t.available[name]:
			return "the server's host does not have the extension " + name + packageHint(name, t.about.Version, "the server's host")
		case slices.Contains(preloaded, name) && !t.loaded(name):
			return fmt.Sprintf("the extension %[1]s has to be loaded when the server starts: add %[1]s to its shared_preload_libraries and restart it, or use a target with the RDS API", name)
		}
	}
	return ""
}

// trySQL runs a variant's statements in an empty database, so that a mistake in them is
// found before the data is made, and once. What it says of tables and columns counts for
// nothing there: the data would bring them.
func (t *urlTarget) trySQL(ctx context.Context, v study.Variant) (why string, failure error) {
	list := statements(v, t.admin.Engine)
	s := scope{engine: t.admin.Engine, databases: t.others}
	// What reaches further is run when the note can say what to put back.
	if len(list) == 0 || t.inPlace() || slices.ContainsFunc(list, func(text string) bool { return s.refuses(text) != "" }) {
		return "", nil
	}
	refused, err := tryIn(ctx, t.admin, t.own(), list)
	if err != nil {
		return "", fmt.Errorf("try the SQL of variant %s: %w", v.Name, err)
	}
	if refused == nil || ofData(refused) {
		return "", nil
	}
	return "the server refuses its SQL: " + refused.Error(), nil
}

// tryIn runs statements in a database that it makes and drops. refused is what the server
// has against the first one that it does not take.
func tryIn(ctx context.Context, at dial.Server, name string, list []string) (refused, failure error) {
	admin, err := dial.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	quoted := dial.Ident(at.Engine, name)
	if err := admin.Exec(ctx, "CREATE DATABASE "+quoted); err != nil {
		return nil, err
	}
	defer func() {
		closeCtx, cancel := closing(ctx)
		defer cancel()
		failure = errors.Join(failure, admin.Exec(closeCtx, "DROP DATABASE "+quoted))
	}()
	at.Database = name
	session, err := dial.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	err = session.Exec(ctx, list...)
	if code(err) == "" {
		return nil, err // the connection's, or none
	}
	return err, nil
}

// code is the server's of an error, "" of others.
func code(err error) string {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	switch {
	case errors.As(err, &pg):
		return pg.Code
	case errors.As(err, &my):
		return fmt.Sprint(my.Number)
	}
	return ""
}

// ofData says of an error that the data could make it go away: a table, column, key,
// function or schema that is not there.
func ofData(err error) bool {
	return slices.Contains([]string{"42P01", "42703", "42704", "42883", "3F000", "1146", "1054", "1305", "1091", "1072", "1176", "1360"}, code(err))
}

// misspelt says that no server of this kind could read a statement.
func misspelt(err error) bool { return slices.Contains([]string{"42601", "1064"}, code(err)) }

// packageHint says how a host of one's own comes by an extension that built-in studies
// create.
func packageHint(name, version, host string) string {
	form := extensionPackages[name]
	if form == "" {
		return ""
	}
	major, _, _ := strings.Cut(version, ".")
	return fmt.Sprintf(": it is in the Debian package %[1]s (as root on %[2]s: apt-get install %[1]s)", fmt.Sprintf(form, major), host)
}
