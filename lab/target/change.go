package target

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// applied is how a variant's parameters become true by SQL.
type applied struct {
	database map[string]string // of the study's own database
	server   map[string]string // of the whole server, to be put back
}

// plan sorts a variant's parameters, or says why one cannot be had.
func (t *urlTarget) plan(ctx context.Context, session *dial.Session, v study.Variant) (applied, string) {
	a := applied{database: map[string]string{}, server: map[string]string{}}
	for _, name := range sortedKeys(v.Parameters) {
		value := v.Parameters[name]
		have, known := findSetting(t.have, name)
		var why string
		switch {
		case formula(value):
			why = "its value is a formula of a class, and a server behind a URL has none"
		case !known && strings.Contains(name, "."):
			why = "the server has not loaded what it belongs to"
		case !known:
			why = "the server knows no such parameter"
		case equal(have, name, value) && restarts(have):
			// It is true already, and a restart is not needed to make it so.
		case t.admin.Engine == study.Postgres:
			why = t.planPostgres(a, name, value, have)
		default:
			variable := t.variable(name)
			if why = t.tryGlobal(ctx, session, variable); why == "" {
				a.server[variable] = value
			}
		}
		if why != "" {
			return applied{}, fmt.Sprintf("parameter %s: %s", name, why)
		}
	}
	return a, ""
}

// restarts says that PostgreSQL takes a parameter at its start only.
func restarts(s setting) bool { return s.context == "postmaster" || s.context == "internal" }

// planPostgres chooses the narrowest place in which a parameter can be set.
func (t *urlTarget) planPostgres(a applied, name, value string, have setting) string {
	switch have.context {
	case "postmaster":
		return fmt.Sprintf("it is %q, and changing it takes a restart of a server that is not ours: set it to %q yourself, or use a target with the RDS API", have.shown, value)
	case "internal":
		return "the server lets nobody set it"
	case "user", "superuser":
		switch {
		case have.context == "superuser" && !t.super:
			return "only a superuser may set it, and " + t.admin.User + " is none"
		case t.inPlace():
			return "it would stay set in database " + t.named + ", which is not the lab's: leave the database out of the URL, or use a target with the RDS API"
		}
		a.database[name] = value
		return ""
	}
	if !t.super {
		return "it is set for the whole server, which only a superuser may, and " + t.admin.User + " is none"
	}
	a.server[name] = value
	return ""
}

// The server's errors about a variable.
const (
	unknownVariable  = 1193
	readOnlyVariable = 1238
	accessDenied     = 1227
)

// tryGlobal sets a variable to what it is: that takes the same rights as a change, and
// a variable that only a start can set refuses it.
func (t *urlTarget) tryGlobal(ctx context.Context, session *dial.Session, variable string) string {
	quoted := dial.Ident(t.admin.Engine, variable)
	err := session.Exec(ctx, fmt.Sprintf("SET GLOBAL %s = @@GLOBAL.%s", quoted, quoted))
	var answer *mysql.MySQLError
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &answer):
		return err.Error()
	case answer.Number == readOnlyVariable:
		return "changing it takes a restart of a server that is not ours: use a target with the RDS API"
	case answer.Number == accessDenied:
		return "user " + t.admin.User + " may not change variables of the whole server"
	case answer.Number == unknownVariable:
		return "the server knows no such parameter"
	}
	return "the server refuses to set it: " + answer.Message
}

// variable is the engine's name of a parameter.
func (t *urlTarget) variable(name string) string {
	name = strings.ToLower(name)
	if _, ok := t.have[name]; !ok && aliases[name] != "" {
		name = aliases[name]
	}
	return name
}

// apply makes a variant's parameters true. What is the server's is written down first.
func (t *urlTarget) apply(ctx context.Context, session *dial.Session, a applied) error {
	for _, name := range sortedKeys(a.database) {
		text := fmt.Sprintf("ALTER DATABASE %s SET %s = %s", dial.Ident(t.admin.Engine, t.own()), name, postgresValue(name, a.database[name]))
		if err := session.Exec(ctx, text); err != nil {
			return fmt.Errorf("set parameter %s: %w", name, err)
		}
	}
	if err := t.putLogTablesAside(ctx, session, a.server); err != nil {
		return err
	}
	for _, name := range outputFirst(sortedKeys(a.server)) {
		if err := t.keepBefore(ctx, session, name); err != nil {
			return fmt.Errorf("write down what parameter %s was: %w", name, err)
		}
		text := fmt.Sprintf("SET GLOBAL %s = %s", dial.Ident(t.admin.Engine, name), mysqlValue(a.server[name]))
		if t.admin.Engine == study.Postgres {
			text = fmt.Sprintf("ALTER SYSTEM SET %s = %s", name, postgresValue(name, a.server[name]))
		}
		if err := session.Exec(ctx, text); err != nil {
			return fmt.Errorf("set parameter %s: %w", name, err)
		}
	}
	if t.admin.Engine == study.Postgres && len(a.server) > 0 {
		if _, err := session.Rows(ctx, "SELECT pg_reload_conf()"); err != nil {
			return fmt.Errorf("have the server read its settings: %w", err)
		}
	}
	return nil
}

// quotedList says whose value PostgreSQL keeps as a list of quoted names: given as one
// string they would be one name.
func quotedList(name string) bool {
	return strings.HasSuffix(name, "_preload_libraries") || name == "search_path" || name == "temp_tablespaces" || name == "unix_socket_directories"
}

func postgresValue(name, value string) string {
	if !quotedList(strings.ToLower(name)) || value == "" {
		return dial.Literal(study.Postgres, value)
	}
	var quoted []string
	for item := range strings.SplitSeq(value, ",") {
		quoted = append(quoted, dial.Literal(study.Postgres, strings.Trim(strings.TrimSpace(item), `"`)))
	}
	return strings.Join(quoted, ", ")
}

// mysqlValue quotes a value, but for numbers, which must not be. They are written without
// the units of option files, which a statement does not know.
func mysqlValue(value string) string {
	if value != "" && strings.Trim(value, "0123456789") == "" {
		return value
	}
	if n, ok := quantity(value, ""); ok && !math.IsInf(n, 0) && !math.IsNaN(n) {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return dial.Literal(study.MariaDB, value)
}
