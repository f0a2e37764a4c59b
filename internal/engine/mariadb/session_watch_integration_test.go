//go:build integration

package mariadb

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/engine/mariadb/sqltext"
)

// looking runs statements that read users' tables, which no session of the service's may,
// at a server that may let no client in: an account with the name of one that looks does it
// (LookPrefix), and is taken away again. It returns the rows of the last.
func looking(t *testing.T, b *enginetest.Bed, statements ...string) [][]string {
	t.Helper()
	const name, password = role.LookPrefix + "test", "Look-at-it-1"
	inside(t, b, "CREATE OR REPLACE USER "+sqltext.Account(name)+" IDENTIFIED BY '"+password+"'", "GRANT SELECT, PROCESS, BINLOG MONITOR ON *.* TO "+sqltext.Account(name))
	defer inside(t, b, dropUser(name))
	i := b.Instance()
	i.Address = i.Listens()
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr, config.Logger = name, password, "tcp", door.Endpoint(i), door.Silent{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var rows [][]string
	for _, s := range statements {
		if rows, err = plainRows(t.Context(), conn, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return rows
}

func plainRows(ctx context.Context, conn *sql.Conn, statement string) ([][]string, error) {
	rows, err := conn.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all [][]string
	for rows.Next() {
		values, targets, row := make([]sql.NullString, len(columns)), make([]any, len(columns)), make([]string, len(columns))
		for n := range values {
			targets[n] = &values[n]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, fmt.Errorf("read a row: %w", err)
		}
		for n, v := range values {
			row[n] = v.String
		}
		all = append(all, row)
	}
	return all, rows.Err()
}
