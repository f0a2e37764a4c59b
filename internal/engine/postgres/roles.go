package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/wire/pg/scram"
)

// defaultDatabase exists in every cluster; clients connect to it when they know
// no other name, so the master user owns it.
const defaultDatabase = "postgres"

// EnsureMaster implements engine.Driver.
func (d *Driver) EnsureMaster(ctx context.Context, i engine.Instance) error {
	if err := checkNames(i); err != nil {
		return err
	}
	err := d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		if i.Password.Inherited {
			return execAll(ctx, conn, featureRoleSQL())
		}
		if err := ensureRole(ctx, conn, i); err != nil {
			return err
		}
		if err := ensureDatabase(ctx, conn, i); err != nil {
			return err
		}
		return ownDefaultDatabase(ctx, conn, i.MasterUsername)
	})
	if err != nil {
		return fmt.Errorf("ensure master user: %w", err)
	}
	return nil
}

// SetPassword implements engine.Driver. Like RDS it also gives the master user
// back what it may have lost: this is the way in again after a REVOKE too many.
func (d *Driver) SetPassword(ctx context.Context, i engine.Instance) error {
	if err := checkNames(i); err != nil {
		return err
	}
	err := d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		if noted, err := readPasswordNote(ctx, conn); err != nil || noted == i.Password.Note(i.Instance) {
			return err
		}
		return pgx.BeginFunc(ctx, conn, func(pgx.Tx) error {
			if err := ensureRole(ctx, conn, i); err != nil {
				return err
			}
			_, err := conn.Exec(ctx, fmt.Sprintf("ALTER ROLE %s PASSWORD %s VALID UNTIL 'infinity' CONNECTION LIMIT -1",
				quoteName(i.MasterUsername), quoteLiteral(i.Password.Verifier)))
			if err != nil {
				return err
			}
			if err := liftTimeouts(ctx, conn, i.MasterUsername); err != nil {
				return err
			}
			return writePasswordNote(ctx, conn, i)
		})
	})
	if err != nil {
		return fmt.Errorf("set master password: %w", err)
	}
	return nil
}

// leastTimeout is how long a session of the master user has at least for a statement or
// between two. With less it could not undo the setting itself.
const leastTimeout = time.Second

// timeouts are the settings by which a role can lock itself out.
var timeouts = []string{"idle_in_transaction_session_timeout", "idle_session_timeout", "lock_timeout", "statement_timeout", "transaction_timeout"}

// liftTimeouts takes back those of the role's own settings that end its sessions before they
// can do anything; longer ones are the user's wish.
func liftTimeouts(ctx context.Context, conn *pgx.Conn, role string) error {
	rows, err := conn.Query(ctx, `SELECT coalesce(d.datname, ''), c.setting FROM pg_catalog.pg_db_role_setting s
		JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) s.setrole LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.setdatabase,
		pg_catalog.unnest(s.setconfig) c(setting) WHERE r.rolname OPERATOR(pg_catalog.=) $1`, role)
	if err != nil {
		return err
	}
	type own struct{ database, setting string }
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o own, err error) { return o, row.Scan(&o.database, &o.setting) })
	if err != nil {
		return err
	}
	for _, o := range all {
		name, value, _ := strings.Cut(o.setting, "=")
		if !slices.Contains(timeouts, name) || !locksOut(value) {
			continue
		}
		where := ""
		if o.database != "" {
			where = " IN DATABASE " + quoteName(o.database)
		}
		if _, err := conn.Exec(ctx, "ALTER ROLE "+quoteName(role)+where+" RESET "+name); err != nil {
			return err
		}
	}
	return nil
}

var timeoutForm = regexp.MustCompile(`^\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?\s*$`)

// locksOut says whether a timeout as the engine writes it, in milliseconds without a unit, is
// one that is on and shorter than leastTimeout.
func locksOut(value string) bool {
	m := timeoutForm.FindStringSubmatch(value)
	if m == nil {
		return false
	}
	number, err := strconv.ParseFloat(m[1], 64)
	unit := map[string]time.Duration{
		"us": time.Microsecond, "": time.Millisecond, "ms": time.Millisecond, "s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
	}[m[2]]
	return err == nil && number > 0 && number*float64(unit) < float64(leastTimeout)
}

// NotePassword implements engine.Driver.
func (d *Driver) NotePassword(ctx context.Context, i engine.Instance) error {
	return d.withAdmin(ctx, i, func(conn *pgx.Conn) error { return writePasswordNote(ctx, conn, i) })
}

// passwordTable has one row that names the newest master password which was set in this data
// (kurabe.Password.Note). It lies where no client may enter, and goes with the data.
const passwordTable = probeSchema + ".master_password"

// writePasswordNote makes the table too: data folders of before it do not have it.
func writePasswordNote(ctx context.Context, conn *pgx.Conn, i engine.Instance) error {
	err := execAll(ctx, conn, []string{
		"CREATE TABLE IF NOT EXISTS " + passwordTable + " (one boolean PRIMARY KEY DEFAULT true CHECK (one), note text NOT NULL)",
		"INSERT INTO " + passwordTable + " AS p (one, note) VALUES (true, " + quoteLiteral(i.Password.Note(i.Instance)) + ") ON CONFLICT (one) DO UPDATE SET note = excluded.note",
	})
	if err != nil {
		return fmt.Errorf("note the master password: %w", err)
	}
	return nil
}

// readPasswordNote returns "" of data in which none was noted. It asks for the table first: an
// error would stand in the log that users read.
func readPasswordNote(ctx context.Context, conn *pgx.Conn) (note string, err error) {
	var there bool
	err = conn.QueryRow(ctx, "SELECT pg_catalog.to_regclass("+quoteLiteral(passwordTable)+") IS NOT NULL").Scan(&there)
	if err == nil && there {
		err = conn.QueryRow(ctx, "SELECT note FROM "+passwordTable).Scan(&note)
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("read the note of the master password: %w", err)
	}
	return note, nil
}

// checkNames asserts what the control room has promised: a reserved name here
// would hand the service's own role to a user.
func checkNames(i engine.Instance) error {
	switch {
	case i.MasterUsername == "" || kurabe.ReservedUser(kurabe.Postgres, i.MasterUsername):
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "MasterUsername %s cannot be used as it is a reserved word used by the engine", i.MasterUsername)
	case kurabe.ReservedDatabase(kurabe.Postgres, i.DatabaseName):
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "DBName %s cannot be used as it is a reserved word used by the engine", i.DatabaseName)
	case !scram.IsVerifier(i.Password.Verifier):
		return errors.New("the password of the assignment is not a SCRAM-SHA-256 verifier")
	}
	return nil
}

// ensureRole makes the service's roles and the master user. The password is
// part of the statement that creates it, so there is no moment without one.
func ensureRole(ctx context.Context, conn *pgx.Conn, i engine.Instance) error {
	if err := execAll(ctx, conn, roleSQL(majorOf(i.Version))); err != nil {
		return fmt.Errorf("make roles: %w", err)
	}
	name := quoteName(i.MasterUsername)
	const rights = "LOGIN CREATEDB CREATEROLE INHERIT NOSUPERUSER NOREPLICATION NOBYPASSRLS"
	exists, err := exists(ctx, conn, "SELECT FROM pg_catalog.pg_roles WHERE rolname = $1", i.MasterUsername)
	if err != nil {
		return err
	}
	statement := fmt.Sprintf("ALTER ROLE %s %s", name, rights)
	if !exists {
		statement = fmt.Sprintf("CREATE ROLE %s %s PASSWORD %s", name, rights, quoteLiteral(i.Password.Verifier))
	}
	return execAll(ctx, conn, []string{
		statement,
		// The option lets it make further rds_superuser members, as on RDS.
		fmt.Sprintf("GRANT %s TO %s WITH ADMIN OPTION", superuserRole, name),
	})
}

// ensureDatabase cannot be in a transaction: CREATE DATABASE refuses one. Cut
// off, it leaves no database or a whole one. template0: where the folder is a restored one, a
// tenant may have objects in template1, or a session that holds it.
func ensureDatabase(ctx context.Context, conn *pgx.Conn, i engine.Instance) error {
	if i.DatabaseName == "" || i.DatabaseName == defaultDatabase {
		return nil
	}
	found, err := exists(ctx, conn, "SELECT FROM pg_catalog.pg_database WHERE datname = $1", i.DatabaseName)
	if err != nil || found {
		return err
	}
	_, err = conn.Exec(ctx, fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE template0", quoteName(i.DatabaseName), quoteName(i.MasterUsername)))
	return err
}

// ownDefaultDatabase gives the database postgres away once: what a user has
// given on stays where it is.
func ownDefaultDatabase(ctx context.Context, conn *pgx.Conn, master string) error {
	ours, err := exists(ctx, conn, `SELECT FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.oid = d.datdba
		WHERE d.datname = $1 AND r.rolname = $2`, defaultDatabase, adminRole)
	if err != nil || !ours {
		return err
	}
	_, err = conn.Exec(ctx, fmt.Sprintf("ALTER DATABASE %s OWNER TO %s", quoteName(defaultDatabase), quoteName(master)))
	return err
}

func exists(ctx context.Context, conn *pgx.Conn, query string, args ...any) (bool, error) {
	var found bool
	err := conn.QueryRow(ctx, "SELECT EXISTS ("+query+")", args...).Scan(&found)
	return found, err
}

// The names of the service's own.
const (
	adminRole     = "rdsadmin"      // the superuser; logs in over the admin socket only
	adminDatabase = "rdsadmin"      // where the service's sessions live; no client may enter
	superuserRole = "rds_superuser" // what a master user is a member of
	probeSchema   = "service"
)

// lent are the predefined roles that rds_superuser holds and may pass on.
var lent = []string{"pg_monitor", "pg_signal_backend", "pg_checkpoint", "pg_use_reserved_connections", "pg_create_subscription", "pg_maintain"}

// passed are those that it may pass on but does not itself have: holding them
// would let a master user read every role's tables by default.
var passed = []string{"pg_read_all_data", "pg_write_all_data"}

// fileRoles give access to the server's files and programs. Up to PostgreSQL 15
// a role with CREATEROLE may make itself a member of any role that is not a
// superuser, so there they must not exist: the server checks membership in
// their fixed numbers, which then nobody can have, and the prefix pg_ keeps
// anybody from making them again. See DESIGN.md.
var fileRoles = []string{"pg_read_server_files", "pg_write_server_files", "pg_execute_server_program"}

const fileRolesMajorMax = 15

// featureRoles are roles that RDS has and scripts name. None of them has any right.
//
//   - rds_iam: its members log in with a token on RDS. Nobody does here.
//   - rds_replication: its members replicate on RDS.
//   - rds_password: with rds.restrict_password_commands on RDS, who may set passwords.
var featureRoles = []string{"rds_iam", "rds_replication", "rds_password"}

// featureRoleSQL makes those that are missing. rds_superuser may pass them on, and is no
// member itself: a member of rds_iam has no password on RDS.
func featureRoleSQL() []string {
	return []string{fmt.Sprintf(`DO $kurabe$
DECLARE r text;
BEGIN
	FOR r IN SELECT n FROM pg_catalog.unnest(%s) n WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = n) LOOP
		EXECUTE pg_catalog.format('CREATE ROLE %%I NOLOGIN', r);
	END LOOP;
END $kurabe$`, textArray(featureRoles))}
}

// settable are the superuser's parameters that rds_superuser may set for a
// session, role or database, where the server has grantable parameters (15).
// None of them loads a library, runs a function, reads a file or turns off a
// check of data or privilege.
var settable = []string{
	"auto_explain.log_analyze", "auto_explain.log_buffers", "auto_explain.log_format", "auto_explain.log_level",
	"auto_explain.log_min_duration", "auto_explain.log_nested_statements", "auto_explain.log_parameter_max_length",
	"auto_explain.log_settings", "auto_explain.log_timing", "auto_explain.log_triggers", "auto_explain.log_verbose",
	"auto_explain.log_wal", "auto_explain.sample_rate",
	"commit_delay", "compute_query_id", "deadlock_timeout", "lc_messages", "log_duration", "log_error_verbosity",
	"log_executor_stats", "log_lock_failures", "log_lock_waits", "log_min_duration_sample", "log_min_duration_statement",
	"log_min_error_statement", "log_min_messages", "log_parameter_max_length", "log_parser_stats", "log_planner_stats",
	"log_replication_commands", "log_statement", "log_statement_sample_rate", "log_statement_stats", "log_temp_files",
	"log_transaction_sample_rate",
	"pg_stat_statements.track", "pg_stat_statements.track_planning", "pg_stat_statements.track_utility",
	"pgaudit.log", "pgaudit.log_catalog", "pgaudit.log_client", "pgaudit.log_level", "pgaudit.log_parameter",
	"pgaudit.log_relation", "pgaudit.log_rows", "pgaudit.log_statement", "pgaudit.log_statement_once", "pgaudit.role",
	"plpgsql.variable_conflict", "session_replication_role", "temp_file_limit", "track_activities",
	"track_cost_delay_timing", "track_counts", "track_functions", "track_io_timing", "track_wal_io_timing", "wal_compression",
}

// roleSQL makes the service's roles and takes away what must not exist. It may
// run again at any time and heals what a master user renamed or revoked.
func roleSQL(major int) []string {
	statements := []string{fmt.Sprintf(`DO $kurabe$
DECLARE r text;
BEGIN
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'rds_superuser') THEN
		CREATE ROLE rds_superuser NOLOGIN;
	END IF;
	FOR r IN SELECT rolname FROM pg_catalog.pg_roles WHERE rolname = ANY (%s) LOOP
		EXECUTE pg_catalog.format('GRANT %%I TO rds_superuser WITH ADMIN OPTION', r);
	END LOOP;
END $kurabe$`, textArray(lent))}
	statements = append(statements, featureRoleSQL()...)
	if major <= fileRolesMajorMax {
		return append(append(statements, fileRoleSQL()...), settableSQL(major)...)
	}
	statements = append(statements, fmt.Sprintf(`DO $kurabe$
DECLARE r text;
BEGIN
	FOR r IN SELECT rolname FROM pg_catalog.pg_roles WHERE rolname = ANY (%s) LOOP
		EXECUTE pg_catalog.format('GRANT %%I TO rds_superuser WITH ADMIN TRUE, INHERIT FALSE, SET FALSE', r);
	END LOOP;
END $kurabe$`, textArray(passed)))
	return append(statements, settableSQL(major)...)
}

func fileRoleSQL() []string {
	return []string{
		fmt.Sprintf(`DELETE FROM pg_catalog.pg_auth_members WHERE roleid IN (SELECT oid FROM pg_catalog.pg_authid WHERE rolname = ANY (%s))`, textArray(fileRoles)),
		fmt.Sprintf(`DELETE FROM pg_catalog.pg_authid WHERE rolname = ANY (%s)`, textArray(fileRoles)),
	}
}

func settableSQL(major int) []string {
	const grantableMajorMin = 15
	if major < grantableMajorMin {
		return nil
	}
	// A module's parameter is not in the view until it is loaded, but can be
	// granted before: the server only checks that the name could be one.
	return []string{fmt.Sprintf(`DO $kurabe$
DECLARE p text;
BEGIN
	FOR p IN SELECT n FROM pg_catalog.unnest(%s) n
		WHERE n LIKE '%%.%%' OR EXISTS (SELECT FROM pg_catalog.pg_settings s WHERE s.name = n AND s.context IN ('superuser', 'superuser-backend'))
	LOOP
		EXECUTE pg_catalog.format('GRANT SET ON PARAMETER %%s TO rds_superuser', p);
	END LOOP;
END $kurabe$`, textArray(settable))}
}

// adminDatabaseSQL makes the service's own database. TEMPLATE template0: no
// object that anybody put into template1 may be in it.
func adminDatabaseSQL() []string {
	return []string{
		"CREATE DATABASE rdsadmin TEMPLATE template0",
		"REVOKE ALL ON DATABASE rdsadmin FROM PUBLIC",
	}
}

// probeTableSQL runs in the service's database: what a probe writes to, and the
// note of the role it made, by which a later probe cleans up after a crash.
func probeTableSQL() []string {
	return []string{
		"DROP SCHEMA public CASCADE",
		"CREATE SCHEMA service",
		"CREATE TABLE service.probe (role name PRIMARY KEY, wrote_at timestamptz)",
	}
}

// textArray writes a list of our own constants as an SQL array.
func textArray(list []string) string {
	return "ARRAY['" + strings.Join(list, "', '") + "']::text[]"
}
