package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// applicationName is how the service's sessions show in pg_stat_activity.
const applicationName = "kurabe"

// plainSession are settings of a session that no parameter group, role or
// database may change: as startup values they outrank all of those. A user may
// have set statement_timeout to a millisecond for good reasons.
func plainSession(major int) map[string]string {
	settings := map[string]string{
		"application_name":                    applicationName,
		"client_encoding":                     "UTF8",
		"client_min_messages":                 "warning",
		"datestyle":                           "ISO",
		"default_table_access_method":         "heap",
		"default_tablespace":                  "",
		"default_transaction_deferrable":      "off",
		"default_transaction_isolation":       "read committed",
		"default_transaction_read_only":       "off",
		"idle_in_transaction_session_timeout": "0",
		"lock_timeout":                        "0",
		"search_path":                         "pg_catalog", // With nothing else on it, no name finds what a client made.
		"standard_conforming_strings":         "on",
		"statement_timeout":                   "0",
		"synchronous_commit":                  "on",
		"timezone":                            "UTC",
	}
	if major >= 14 {
		settings["idle_session_timeout"] = "0"
	}
	if major >= 17 {
		settings["transaction_timeout"] = "0"
	}
	return settings
}

// silentSession keeps a superuser's session out of the logs and the statistics:
// its statements carry verifiers.
func silentSession(major int) map[string]string {
	settings := plainSession(major)
	for name, value := range map[string]string{
		"auto_explain.log_min_duration": "-1",
		"jit":                           "off",
		"log_duration":                  "off",
		"log_min_duration_sample":       "-1",
		"log_min_duration_statement":    "-1",
		"log_min_error_statement":       "panic",
		"log_statement":                 "none",
		"log_statement_stats":           "off",
		"log_transaction_sample_rate":   "0",
		"password_encryption":           "scram-sha-256",
		"pg_stat_statements.track":      "none",
		"pgaudit.log":                   "none",
		"row_security":                  "off",
		"session_replication_role":      "origin",
		"track_activities":              "off",
	} {
		settings[name] = value
	}
	if major >= 17 {
		settings["event_triggers"] = "off" // A login trigger is code.
	}
	return settings
}

// ownSession has the service's own commits wait for no other server. Were a follower gone,
// they would wait for ever, and so would what ends that: the order to go on without it. What
// the service commits it does again in whoever takes over (the password, the master's
// rights, the probe), or it was there before there was a follower.
func ownSession(i engine.Instance, settings map[string]string) map[string]string {
	if i.Role != nil {
		settings["synchronous_commit"] = "local"
	}
	return settings
}

// adminConn opens a session of the service: as rdsadmin, in the service's own
// database, over the admin socket.
func (d *Driver) adminConn(ctx context.Context, i engine.Instance) (*pgx.Conn, error) {
	config, err := sessionConfig("/", i.Port, adminRole)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams = ownSession(i, silentSession(majorOf(i.Version)))
	run := i.Home.RunDir()
	config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return dialSocket(ctx, run, i.Port) }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, connectError(err)
	}
	return conn, nil
}

// sessionConfig starts from a string that names everything which pgx would else
// take from our environment.
func sessionConfig(host string, port int, role string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(fmt.Sprintf(
		"host=%s port=%d user=%s dbname=%s sslmode=disable passfile=/dev/null target_session_attrs=any connect_timeout=0",
		host, port, role, adminDatabase))
	if err != nil {
		return nil, fmt.Errorf("describe session: %w", err)
	}
	config.Password, config.Fallbacks = "", nil
	// Prepared statements would only cost a round trip; each runs once.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return config, nil
}

// dialSocket reaches the server's socket, wherever somebody has put links.
func dialSocket(ctx context.Context, dir string, port int) (net.Conn, error) {
	return volume.DialSocket(ctx, filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d", port)))
}

// connectError tells "not yet" from "wrong".
func connectError(err error) error {
	const cannotConnectNow = "57P03"
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == cannotConnectNow,
		errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%w: %w", engine.ErrNotReady, err)
	}
	return fmt.Errorf("connect: %w", err)
}

// closeConn says goodbye, so that the server does not log a lost connection,
// even when the caller's time is up.
func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}

// withAdmin runs do in one session of the service.
func (d *Driver) withAdmin(ctx context.Context, i engine.Instance, do func(*pgx.Conn) error) error {
	conn, err := d.adminConn(ctx, i)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	return do(conn)
}

// execAll runs statements one by one, each in its own transaction.
func execAll(ctx context.Context, conn *pgx.Conn, statements []string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// tlsFor verifies the server as a careful client does.
func tlsFor(i engine.Instance, caFile string) (*tls.Config, error) {
	roots, err := readRoots(caFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: roots, ServerName: strings.Trim(i.Address, "[]"), MinVersion: tls.VersionTLS12}, nil
}
