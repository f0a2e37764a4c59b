//go:build integration

package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/postgres/parameter"
	"kurabe/internal/wire/pg/scram"
)

func setup(t *testing.T, root string) enginetest.Setup {
	t.Helper()
	return enginetest.Setup{
		Engine: kurabe.Postgres, Driver: New(Config{Root: enginetest.Shared(t, "trees")}), Verifier: scram.Verifier,
		User: enginetest.Account(t, "postgres"), Root: root,
		Settings: map[string]string{
			"shared_buffers": "4096", "max_connections": "20", "shared_preload_libraries": "pg_stat_statements",
			"lc_monetary": "C", "timezone": "UTC", parameter.ForceSSL: "0",
		},
		Dynamic:    enginetest.Setting{Name: "work_mem", Value: "12345", Shown: "12345kB"},
		Impossible: enginetest.Setting{Name: "shared_buffers", Value: "1073741823"},
		Query:      query,
		LeftSQL:    "SELECT count(*) FROM pg_replication_slots",
		ShowSQL:    func(name string) string { return "SHOW " + name },
	}
}

// clientConfig is what an ordinary client brings.
func clientConfig(l enginetest.Login) (*pgx.ConnConfig, error) {
	config, err := sessionConfig(l.Address, l.Port, l.User)
	if err != nil {
		return nil, err
	}
	config.Password, config.Database = l.Password.Reveal(), l.Database
	if l.CAFile != "" {
		roots, err := readRoots(l.CAFile)
		if err != nil {
			return nil, err
		}
		config.TLSConfig = &tls.Config{RootCAs: roots, ServerName: l.Address}
	}
	return config, nil
}

func query(ctx context.Context, l enginetest.Login, statement string) (string, error) {
	config, err := clientConfig(l)
	if err != nil {
		return "", err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", err
	}
	defer closeConn(ctx, conn)
	return first(ctx, conn, statement)
}

func first(ctx context.Context, conn *pgx.Conn, statement string) (string, error) {
	rows, err := conn.Query(ctx, statement)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	value := ""
	if rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return "", err
		}
		if len(values) > 0 {
			value = fmt.Sprint(values[0])
		}
	}
	rows.Close()
	return value, rows.Err()
}

// running is an instance that serves.
func running(t *testing.T) *enginetest.Bed {
	t.Helper()
	return enginetest.Serving(t, setup(t, enginetest.Reachable(t)))
}

func instanceOf(b *enginetest.Bed) engine.Instance { return b.Instance() }

// refusal is an error of the server, or none.
func refusal(err error) string {
	if err == nil {
		return ""
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code + " " + pg.Message
	}
	return err.Error()
}

func portText(b *enginetest.Bed) string { return strconv.Itoa(b.Want.Port) }

// masterIn is a session of the master user in a database that is named as SQL writes it.
func masterIn(t *testing.T, b *enginetest.Bed, database string) *pgx.Conn {
	t.Helper()
	config, err := clientConfig(b.Login())
	if err != nil {
		t.Fatal(err)
	}
	config.Database = strings.ReplaceAll(strings.Trim(database, `"`), `""`, `"`)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
