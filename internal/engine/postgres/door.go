package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
	"kurabe/internal/ownconn"
)

// The door. Every session of the service in a server begins in enter, and the client programs
// that it has to run in one (pg_basebackup, pg_rewind) get clientOptions; TestTidyDoor forbids
// any other way. What holds of a session with the rights of the superuser:
//
//  1. It is in the service's own database, in which nobody else has an object, a setting or a
//     way to make one. The only others are in the databases of a throw-away copy, on a private
//     server that no client reaches (private.bare, private.databaseConn).
//  2. A name that is not qualified is found in pg_catalog, which is initdb's, or nowhere:
//     neither a schema of a tenant's nor a temporary one comes before it. A function that fits
//     better than the one that is meant lies in a schema that is not looked at.
//  3. No setting of a database, a role or a parameter group rules it: start-up values outrank
//     these. It loads no library for itself, takes no other role, and goes by no hint table.
//  4. In a copy no trigger, rule or event trigger fires, not even those of extensions; it has
//     none of a tenant's settings any more; and nothing is evaluated that a tenant wrote: the
//     statements there read the catalogue and call C functions of the engine's, declared in a
//     schema that the session has just made.
//
// What the service writes in is its own database alone. A statement that has to change
// something in a tenant's, or to read a tenant's table, does not go through here as superuser:
// it needs a role that may do no more than its owner.

// rights are what a session has.
type rights int

const (
	asService rights = iota // the superuser, in the service's own database
	inCopy                  // the superuser, in a database of a throw-away copy
	asClient                // a role without rights
)

// enter opens a session, with the settings of its rights.
func enter(ctx context.Context, i engine.Instance, config *pgx.ConnConfig, r rights) (*pgx.Conn, error) {
	own := config.User == adminRole
	if own == (r == asClient) || own && (config.Database == adminDatabase) != (r == asService) {
		return nil, fmt.Errorf("%s has no way into database %q", config.User, config.Database)
	}
	major := majorOf(i.Version)
	settings := silentSession(major)
	switch r {
	case asClient:
		settings = plainSession(major)
	case inCopy:
		settings["session_replication_role"] = "replica"
	}
	config.RuntimeParams = ownSession(i, settings)
	return pgx.ConnectConfig(ctx, config)
}

// plainSession are settings of a session that no parameter group, role or
// database may change: as startup values they outrank all of those. A user may
// have set statement_timeout to a millisecond for good reasons.
func plainSession(major int) map[string]string {
	settings := map[string]string{
		"application_name":                    applicationName,
		"array_nulls":                         "on",
		"client_encoding":                     "UTF8",
		"client_min_messages":                 "warning",
		"datestyle":                           "ISO",
		"default_table_access_method":         "heap",
		"default_tablespace":                  "",
		"default_transaction_deferrable":      "off",
		"default_transaction_isolation":       "read committed",
		"default_transaction_read_only":       "off",
		"idle_in_transaction_session_timeout": "0",
		"local_preload_libraries":             "",
		"lock_timeout":                        "0",
		"quote_all_identifiers":               "off",
		"role":                                "none",
		"search_path":                         "pg_catalog, pg_temp", // Unnamed, pg_temp would come first.
		"standard_conforming_strings":         "on",
		"statement_timeout":                   "0",
		"synchronous_commit":                  "on",
		"timezone":                            "UTC",
		"transform_null_equals":               "off",
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
	maps.Copy(settings, map[string]string{
		"auto_explain.log_min_duration":  "-1",
		"ignore_checksum_failure":        "off",
		"jit":                            "off",
		"log_duration":                   "off",
		"log_min_duration_sample":        "-1",
		"log_min_duration_statement":     "-1",
		"log_min_error_statement":        "panic",
		"log_statement":                  "none",
		"log_statement_stats":            "off",
		"log_transaction_sample_rate":    "0",
		"password_encryption":            "scram-sha-256",
		"pg_hint_plan.enable_hint":       "off",
		"pg_hint_plan.enable_hint_table": "off", // A table that is found by its name alone.
		"pg_stat_statements.track":       "none",
		"pgaudit.log":                    "none",
		"row_security":                   "off",
		"session_preload_libraries":      "",
		"session_replication_role":       "origin",
		"track_activities":               "off",
		"zero_damaged_pages":             "off",
	})
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

// clientOptions are the settings of the service's sessions, in the form in which a client
// program hands them over.
func clientOptions(major int) string {
	escape := strings.NewReplacer(`\`, `\\`, " ", `\ `)
	settings := silentSession(major)
	var options []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if name != "application_name" && name != "client_encoding" { // these are the program's
			options = append(options, "-c "+name+"="+escape.Replace(settings[name]))
		}
	}
	return strings.Join(options, " ")
}

// adminConn opens a session of the service: as rdsadmin, in the service's own
// database, over the admin socket.
func (d *Driver) adminConn(ctx context.Context, i engine.Instance) (*pgx.Conn, error) {
	return d.socketConn(ctx, i, adminDatabase, asService)
}

func (d *Driver) socketConn(ctx context.Context, i engine.Instance, database string, r rights) (*pgx.Conn, error) {
	config, err := sessionConfig("/", i.Port, adminRole)
	if err != nil {
		return nil, err
	}
	config.Database = database
	run := i.Home.RunDir()
	config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return dialSocket(ctx, run, i.Port) }
	conn, err := enter(ctx, i, config, r)
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
	config.Password, config.Fallbacks, config.DialFunc = "", nil, ownconn.Dial
	// Prepared statements would only cost a round trip; each runs once.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	// A watch keeps the one statement that it repeats. Room for a thousand costs 50 KB a session.
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = 4, 0
	return config, nil
}

// bare takes out of a throw-away copy what its clients have set for sessions, lets the service
// into each database that can be entered at all, and says which these are. A database
// that its owner has closed is no less worth a check. What was only prepared holds its locks
// for ever, and is of no use in a copy.
func (p *private) bare(ctx context.Context, conn *pgx.Conn) (databases []string, err error) {
	if !p.copied {
		return nil, errors.New("the data folder is not a temporary copy")
	}
	err = execAll(ctx, conn, []string{
		"DELETE FROM pg_catalog.pg_db_role_setting",
		"UPDATE pg_catalog.pg_database SET datallowconn = true WHERE datconnlimit <> -2 AND datname <> 'template0'",
	})
	if err != nil {
		return nil, fmt.Errorf("take out what clients have set: %w", err)
	}
	p.bared = true
	rows, err := conn.Query(ctx, "SELECT datname::text FROM pg_catalog.pg_database WHERE datallowconn AND datconnlimit <> -2 ORDER BY oid")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// databaseConn opens a session in a database of clients, of a throw-away copy.
func (p *private) databaseConn(ctx context.Context, database string) (*pgx.Conn, error) {
	if !p.copied || !p.bared {
		return nil, fmt.Errorf("database %s is not one of a copy that clients rule no more", database)
	}
	i := p.i
	i.Home, i.Port = p.home(), privatePort
	if database == adminDatabase {
		return p.d.adminConn(ctx, i)
	}
	conn, err := p.d.socketConn(ctx, i, database, inCopy)
	if err != nil {
		return nil, err
	}
	if err := endPrepared(ctx, conn); err != nil {
		closeConn(ctx, conn)
		return nil, fmt.Errorf("roll back prepared transactions: %w", err)
	}
	return conn, nil
}

func endPrepared(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, "SELECT gid FROM pg_catalog.pg_prepared_xacts WHERE database = pg_catalog.current_database()")
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := conn.Exec(ctx, "ROLLBACK PREPARED "+quoteLiteral(name)); err != nil {
			return err
		}
	}
	return nil
}
