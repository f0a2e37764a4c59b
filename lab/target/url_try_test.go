package target

import (
	"context"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// A slip of the pen ends the study before there is data; what the data or a parameter
// would bring does not.
func TestSQLThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		refused error
		want    string
	}{
		"fine":                  {nil, ""},
		"a slip of the pen":     {&pgconn.PgError{Code: "42601", Message: `syntax error at or near "CRATE"`}, "variant typo: the server cannot read its SQL"},
		"no such table yet":     {&pgconn.PgError{Code: "42P01", Message: "no such table"}, ""},
		"a library not loaded":  {&pgconn.PgError{Code: "55000", Message: "must be loaded"}, ""},
		"MariaDB's word for it": {&mysql.MySQLError{Number: 1064, Message: "You have an error"}, "cannot read its SQL"},
	} {
		t.Run(name, func(t *testing.T) {
			on := newTarget(t, newFake())
			tried := 0
			on.try = func(_ context.Context, _ dial.Server, database string, list []string) (error, error) {
				if !ownName.MatchString(database) || list[0] != "CRATE INDEX x" {
					t.Errorf("%q in %s", list, database)
				}
				tried++
				return c.refused, nil
			}
			filled := false
			s := &study.Study{Variants: []study.Variant{{Name: "none"}, {Name: "typo", SQL: map[string][]string{"": {"CRATE INDEX x"}}}}}
			err := on.Prepare(t.Context(), s, func(context.Context, dial.Server) error { filled = true; return nil })
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if filled != (c.want == "") || tried != 1 {
				t.Errorf("data made: %v; tried %d times", filled, tried)
			}
			must(t, on.Close(t.Context()))
		})
	}
}

func TestMissingExtensionOfAServer(t *testing.T) {
	u := &urlTarget{available: map[string]bool{"pg_trgm": true, "pg_stat_statements": true}, about: About{Version: "15.4"}}
	u.admin.Engine = study.Postgres
	creates := func(name string) study.Variant {
		return study.Variant{SQL: map[string][]string{study.Postgres: {"CREATE EXTENSION IF NOT EXISTS " + name}}}
	}
	for name, want := range map[string]string{
		"pg_trgm":            "",
		"pgaudit":            "does not have the extension pgaudit: it is in the Debian package postgresql-15-pgaudit",
		"vector":             "does not have the extension vector",
		"pg_stat_statements": "add pg_stat_statements to its shared_preload_libraries",
	} {
		if why := u.missingExtension(creates(name)); !strings.Contains(why, want) || (why == "") != (want == "") {
			t.Errorf("%s: %q", name, why)
		}
	}
	u.have = map[string]setting{"shared_preload_libraries": {value: "auto_explain, pg_stat_statements"}}
	if why := u.missingExtension(creates("pg_stat_statements")); why != "" {
		t.Errorf("one that is loaded: %q", why)
	}
	u.admin.Engine = study.MariaDB
	if why := u.missingExtension(creates("pgaudit")); why != "" {
		t.Errorf("another engine's SQL: %q", why)
	}
}
