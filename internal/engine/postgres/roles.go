package postgres

import (
	"fmt"
	"strings"
)

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
