//go:build integration

package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/proc"
)

// engineUser is the account that engines run as: initdb refuses root.
func engineUser(t *testing.T) *proc.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skipf("no account for the engine: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &proc.Credential{UID: uid, GID: gid}
}

// reachable is a folder that the engine's account can enter, unlike TempDir's.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kurabe-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func setup(t *testing.T, root string) enginetest.Setup {
	t.Helper()
	return enginetest.Setup{
		Engine: kurabe.Postgres, Driver: New(Config{Root: filepath.Join(reachable(t), "trees")}), Verifier: Verifier,
		User: engineUser(t), Root: root,
		Settings: map[string]string{
			"shared_buffers": "4096", "max_connections": "20", "shared_preload_libraries": "pg_stat_statements",
			"lc_monetary": "C", "timezone": "UTC", forceSSL: "0",
		},
		Dynamic:    enginetest.Setting{Name: "work_mem", Value: "12345", Shown: "12345kB"},
		Impossible: enginetest.Setting{Name: "shared_buffers", Value: "1073741823"},
		Query:      query,
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
	b := enginetest.NewBed(t, setup(t, reachable(t)))
	b.Satisfy(t)
	return b
}

func instanceOf(b *enginetest.Bed) engine.Instance {
	return engine.Instance{Assignment: b.Want, Home: b.Home(), Version: b.Version, User: b.User, SeenDir: b.Home().Dir}
}

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
