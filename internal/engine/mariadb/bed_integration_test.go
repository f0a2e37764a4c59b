//go:build integration

package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
)

// guardPath is where `make build` puts the plugin.
func guardPath(t *testing.T) string {
	t.Helper()
	for _, path := range []string{os.Getenv("KURABE_GUARD"), "../../../bin/kurabe_guard.so"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skip("kurabe_guard.so is not built")
	return ""
}

func setup(t *testing.T, root string) enginetest.Setup {
	t.Helper()
	return enginetest.Setup{
		Engine: kurabe.MariaDB, Driver: New(Config{Guard: guardPath(t)}), Verifier: door.Verifier,
		User: enginetest.Account(t, "mysql"), Root: root,
		Settings: map[string]string{
			"innodb_buffer_pool_size": "33554432", "max_connections": "20", "innodb_log_file_size": "134217728",
			"tls_version": "TLSv1.2,TLSv1.3",
		},
		Dynamic:    enginetest.Setting{Name: "long_query_time", Value: "2.5", Shown: "2.5"},
		Impossible: enginetest.Setting{Name: "optimizer_switch", Value: "no_such_switch=on"},
		Query:      query,
		LeftSQL:    "SELECT count(*) FROM mysql.global_priv WHERE User LIKE 'rdsbackup%'",
		ShowSQL:    func(name string) string { return "SELECT @@GLOBAL." + name },
	}
}

// open is a client's connection pool.
func open(l enginetest.Login) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = l.User, l.Password.Reveal(), l.Database
	config.Net, config.Addr, config.Logger = "tcp", door.Endpoint(engine.Instance{Assignment: kurabe.Assignment{Address: l.Address, Port: l.Port}}), door.Silent{}
	config.AllowAllFiles = true
	if l.CAFile != "" {
		verified, err := tlsFor(engine.Instance{Assignment: kurabe.Assignment{Address: l.Address}}, l.CAFile)
		if err != nil {
			return nil, err
		}
		config.TLS = verified
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func query(ctx context.Context, l enginetest.Login, statement string) (string, error) {
	db, err := open(l)
	if err != nil {
		return "", err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return first(ctx, conn, statement)
}

// first returns the first value of the first row, "" for none.
func first(ctx context.Context, conn *sql.Conn, statement string) (string, error) {
	rows, err := conn.QueryContext(ctx, statement)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil || !rows.Next() {
		return "", errors.Join(err, rows.Err())
	}
	values := make([]sql.NullString, max(1, len(columns)))
	targets := make([]any, len(columns))
	for n := range columns {
		targets[n] = &values[n]
	}
	if err := rows.Scan(targets...); err != nil {
		return "", err
	}
	return values[0].String, rows.Err()
}

// inside runs statements in a session of the service's own and returns the rows
// of the last.
func inside(t *testing.T, b *enginetest.Bed, statements ...string) [][]string {
	t.Helper()
	var rows [][]string
	err := guard.With(t.Context(), b.Instance(), func(a *guard.Session) (err error) {
		for _, s := range statements {
			if rows, err = a.Query(t.Context(), s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
