//go:build integration

package postgres

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/postgres/parameter"
	"kurabe/internal/engine/postgres/tree"
)

// may are what a master user can do as on RDS; each runs in a session of its
// own, in this order.
var may = []struct{ name, sql string }{
	{"make a login", "CREATE ROLE app LOGIN PASSWORD 'app-password-1'"},
	{"change a login", "ALTER ROLE app CONNECTION LIMIT 7"},
	{"make a database", "CREATE DATABASE other"},
	{"make a schema", "CREATE SCHEMA s AUTHORIZATION master"},
	{"make a table", "CREATE TABLE t (n integer PRIMARY KEY)"},
	{"make a function", "CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT 1'"},
	{"make a procedural function", "CREATE FUNCTION g() RETURNS integer LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'"},
	{"grant the role of logins with a token", "GRANT rds_iam TO app"},
	{"grant the role of replication", "GRANT rds_replication TO app"},
	{"grant the role of passwords", "GRANT rds_password TO app"},
	{"take it back", "REVOKE rds_iam, rds_replication, rds_password FROM app"},
	{"pass on its own role", "GRANT rds_superuser TO app"},
	{"take it back", "REVOKE rds_superuser FROM app"},
	{"pass on monitoring", "GRANT pg_monitor TO app"},
	{"pass on reading", "GRANT pg_read_all_data TO app"},
	{"checkpoint", "CHECKPOINT"},
	{"see other sessions' statements", "SELECT count(query) FROM pg_stat_activity"},
	{"replay without triggers", "SET session_replication_role = replica"},
	{"log its slow statements", "SET log_min_duration_statement = 0"},
	{"log a database's statements", "ALTER DATABASE shop SET log_statement = 'ddl'"},
	{"explain a role's statements", "ALTER ROLE app SET auto_explain.log_min_duration = '1s'"},
	{"lift the limit of temporary files", "SET temp_file_limit = -1"},
	{"publish a table", "CREATE PUBLICATION p FOR TABLE t"},
	{"see the settings", "SELECT count(*) FROM pg_settings WHERE name = 'config_file'"},
	{"vacuum", "VACUUM ANALYZE t"},
}

// mayNot are what would reach out of the database, or up.
var mayNot = []struct{ name, sql string }{
	{"make a superuser", "CREATE ROLE evil SUPERUSER"},
	{"become a superuser", "ALTER ROLE master SUPERUSER"},
	{"make rds_superuser one", "ALTER ROLE rds_superuser SUPERUSER"},
	{"replicate", "ALTER ROLE master REPLICATION"},
	{"bypass row security", "ALTER ROLE master BYPASSRLS"},
	{"join the service's role", "GRANT rdsadmin TO master"},
	{"be the service's role", "SET ROLE rdsadmin"},
	{"log in as the service's role", "SET SESSION AUTHORIZATION rdsadmin"},
	{"give the service's role a password", "ALTER ROLE rdsadmin PASSWORD 'x'"},
	{"plant a setting on the service's role", "ALTER ROLE rdsadmin SET search_path = evil"},
	{"plant a setting on all roles", "ALTER ROLE ALL SET search_path = evil"},
	{"rename the service's role", "ALTER ROLE rdsadmin RENAME TO x"},
	{"drop the service's role", "DROP ROLE rdsadmin"},
	{"get reading of server files", "GRANT pg_read_server_files TO master"},
	{"get writing of server files", "GRANT pg_write_server_files TO master"},
	{"get running of programs", "GRANT pg_execute_server_program TO master"},
	{"make that role again", "CREATE ROLE pg_execute_server_program"},
	{"create a role inside it", "CREATE ROLE evil IN ROLE pg_execute_server_program"},
	{"copy from a program", "COPY t FROM PROGRAM 'echo 1'"},
	{"copy to a program", "COPY t TO PROGRAM 'cat'"},
	{"copy from a file", "COPY t FROM '/etc/passwd'"},
	{"copy to a file", "COPY t TO '/tmp/kurabe-evil'"},
	{"read a file", "SELECT pg_read_file('/etc/passwd')"},
	{"read a binary file", "SELECT pg_read_binary_file('PG_VERSION')"},
	{"list a folder", "SELECT pg_ls_dir('/')"},
	{"stat a file", "SELECT pg_stat_file('/etc/passwd')"},
	{"import a large object", "SELECT lo_import('/etc/passwd')"},
	{"export a large object", "SELECT lo_export(1, '/tmp/kurabe-evil')"},
	{"see the access rules", "SELECT * FROM pg_hba_file_rules"},
	{"read the verifiers", "SELECT rolpassword FROM pg_authid"},
	{"write a catalogue", "UPDATE pg_authid SET rolsuper = true"},
	{"write functions' catalogue", "UPDATE pg_proc SET prosecdef = true"},
	{"change the system", "ALTER SYSTEM SET work_mem = '1GB'"},
	{"call a C function", "CREATE FUNCTION evil(text) RETURNS integer LANGUAGE c AS 'libc.so.6', 'system'"},
	{"call an internal function", "CREATE FUNCTION evil(text) RETURNS text LANGUAGE internal AS 'pg_read_file_all'"},
	{"load a library", "LOAD '/usr/lib/x86_64-linux-gnu/libc.so.6'"},
	{"load a module", "LOAD 'file_fdw'"},
	{"preload a library", "SET session_preload_libraries = 'file_fdw'"},
	{"plant a library", "ALTER DATABASE shop SET session_preload_libraries = 'file_fdw'"},
	{"move the library path", "SET dynamic_library_path = '/tmp'"},
	{"change catalogues", "SET allow_system_table_mods = on"},
	{"hide damage", "SET zero_damaged_pages = on"},
	{"trigger on events", "CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION f()"},
	{"make a language", "CREATE LANGUAGE evil HANDLER plpgsql_call_handler"},
	{"make a base type", "CREATE TYPE evil (INPUT = int4in, OUTPUT = int4out)"},
	{"make an operator class", "CREATE OPERATOR CLASS evil FOR TYPE integer USING btree AS OPERATOR 1 <"},
	{"make a wrapper", "CREATE FOREIGN DATA WRAPPER evil"},
	{"make a tablespace", "CREATE TABLESPACE evil LOCATION '/tmp'"},
	{"publish everything", "CREATE PUBLICATION evil FOR ALL TABLES"},
	{"take a slot", "SELECT pg_create_physical_replication_slot('evil')"},
	{"drop a follower's slot", "SELECT pg_drop_replication_slot('kurabe_member_2')"},
	{"move a follower's slot on", "SELECT pg_replication_slot_advance('kurabe_member_2', '0/1')"},
	{"promote the server", "SELECT pg_promote()"},
	{"hold a follower's replay", "SELECT pg_wal_replay_pause()"},
	{"reload the files", "SELECT pg_reload_conf()"},
	{"rotate the log", "SELECT pg_rotate_logfile()"},
	{"switch the log", "SELECT pg_switch_wal()"},
	{"begin a backup", "SELECT pg_backup_start('evil')"},
	{"end the service's session", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rdsadmin' AND backend_type = 'client backend'"},
	{"clone the service's database", "CREATE DATABASE evil TEMPLATE rdsadmin"},
	{"drop the service's database", "DROP DATABASE rdsadmin"},
	{"plant a setting on the service's database", "ALTER DATABASE rdsadmin SET search_path = evil"},
	{"plant a setting on the template", "ALTER DATABASE template1 SET search_path = evil"},
	{"make a table in pg_catalog", "CREATE TABLE pg_catalog.evil ()"},
	{"drop rds_superuser", "DROP ROLE rds_superuser"},
}

// refusals are the codes that a refusal may have: no right, no such role, a
// reserved name, not in this context, and a role that others depend on.
var refusals = []string{"42501", "42704", "42939", "55P02", "2BP01"}

func TestMasterMay(t *testing.T) {
	enginetest.OnceIsEnough(t)
	b := running(t)
	for _, c := range may {
		if _, err := query(t.Context(), b.Login(), c.sql); err != nil {
			t.Errorf("%s: %s: %v", c.name, c.sql, err)
		}
	}
	t.Run("own the database postgres", func(t *testing.T) {
		login := b.Login()
		login.Database = defaultDatabase
		if _, err := query(t.Context(), login, "CREATE TABLE mine ()"); err != nil {
			t.Error(err)
		}
	})
	t.Run("end other sessions", func(t *testing.T) { endsOthers(t, b) })
	t.Run("create every extension on offer", func(t *testing.T) { createsExtensions(t, b) })
}

func endsOthers(t *testing.T, b *enginetest.Bed) {
	app := b.Login()
	app.User, app.Password = "app", "app-password-1"
	config, err := clientConfig(app)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(context.Background(), conn)
	b.MustQuery(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'")
	if _, err := first(t.Context(), conn, "SELECT pg_sleep(10)"); err == nil {
		t.Error("the session lives on")
	}
}

func createsExtensions(t *testing.T, b *enginetest.Bed) {
	// RDS's list, as far as Debian's contrib still has it.
	offered := `btree_gin btree_gist citext cube dblink dict_int dict_xsyn earthdistance fuzzystrmatch hstore
		intagg intarray isn ltree pgcrypto pgrowlocks pg_trgm plpgsql sslinfo tablefunc unaccent uuid-ossp`
	// And what is in packages of its own, where those are installed.
	for library, names := range map[string]string{
		"plperl": "plperl", "pltcl": "pltcl",
		"postgis-3": "postgis postgis_tiger_geocoder postgis_topology address_standardizer address_standardizer_data_us",
	} {
		if _, err := os.Stat(filepath.Join("/usr/lib/postgresql", b.Version.Major(), "lib", library+".so")); err == nil {
			offered += " " + names
		} else {
			t.Logf("not installed: %s", names)
		}
	}
	for _, name := range strings.Fields(offered) {
		if !slices.Contains(b.Version.Extensions, name) {
			t.Errorf("%s is not on offer", name)
		}
	}
	for _, name := range b.Version.Extensions {
		if slices.Contains(parameter.WithServer, name) {
			continue // its library is not loaded here: TestAudit
		}
		if _, err := query(t.Context(), b.Login(), "CREATE EXTENSION IF NOT EXISTS "+quoteName(name)+" CASCADE"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	usesExtensions(t, b)
	leavesNoRooms(t, b)
}

// extensionUse is what a master user does with an extension.
var extensionUse = map[string][]string{
	"postgis": {
		"INSERT INTO spatial_ref_sys VALUES (990001, 'mine', 1, '', '+proj=longlat +datum=WGS84')",
		"CREATE TABLE place (g geometry(Point, 4326))", "CREATE INDEX ON place USING gist (g)",
		"SELECT ST_AsText(ST_Transform(ST_SetSRID('POINT(2 49)'::geometry, 4326), 3857))",
	},
	"postgis_topology": {
		"SELECT CreateTopology('town', 4326)",
		"SELECT AddTopoGeometryColumn('town', 'public', 'place', 'topo', 'POINT')",
		"SELECT TopoGeo_AddPoint('town', ST_SetSRID('POINT(2 49)'::geometry, 4326))",
		"SELECT DropTopology('town')",
	},
	"postgis_tiger_geocoder":       {"SELECT (tiger.pagc_normalize_address('1 Devonshire Place, Boston, MA 02109')).streetname", "INSERT INTO tiger.state_lookup VALUES (999, 'Nowhere', 'NW', '99')"},
	"address_standardizer_data_us": {"SELECT (standardize_address('us_lex', 'us_gaz', 'us_rules', '1 Devonshire Place', 'Boston, MA 02109')).city"},
	"plperl":                       {"CREATE FUNCTION p() RETURNS integer LANGUAGE plperl AS 'return 1'", "SELECT p()"},
	"pltcl":                        {"CREATE FUNCTION c() RETURNS integer LANGUAGE pltcl AS 'return 1'", "SELECT c()"},
}

func usesExtensions(t *testing.T, b *enginetest.Bed) {
	for _, name := range b.Version.Extensions {
		for _, sql := range extensionUse[name] {
			if _, err := query(t.Context(), b.Login(), sql); err != nil {
				t.Errorf("%s: %s: %v", name, sql, err)
			}
		}
	}
	for _, sql := range []string{
		"SELECT pg_stat_statements_reset()", "SELECT bt_index_check('t_pkey')", "SELECT verify_heapam('t')",
		"SELECT count(*) FROM pg_buffercache", "SELECT pg_relation_size('t') + (pgstattuple('t')).table_len",
		"CREATE SERVER away FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '192.0.2.1')",
		"DROP EXTENSION hstore CASCADE", "DROP EXTENSION pg_stat_statements",
		"CREATE EXTENSION pg_stat_statements VERSION '1.8'", "ALTER EXTENSION pg_stat_statements UPDATE", "SELECT pg_stat_statements_reset()",
	} {
		if _, err := query(t.Context(), b.Login(), sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// leavesNoRooms looks for what scripts may have left behind: schemas, things of
// an extension outside of its schema, a schema that is not the one it was.
func leavesNoRooms(t *testing.T, b *enginetest.Bed) {
	for what, sql := range map[string]string{
		"schemas": "SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE nspname ~ 'aside'",
		"strays": `SELECT string_agg(pg_describe_object(d.classid, d.objid, 0), ', ') FROM pg_depend d
			JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e' AND e.extowner <> 10
			JOIN pg_depend n ON n.classid = d.classid AND n.objid = d.objid AND n.refclassid = 'pg_namespace'::regclass
			WHERE n.refobjid <> e.extnamespace AND e.extname <> 'postgis_tiger_geocoder'`,
		"orphans": "SELECT count(*) FROM pg_depend d WHERE refclassid = 'pg_namespace'::regclass AND refobjid >= 16384 AND NOT EXISTS (SELECT FROM pg_namespace WHERE oid = d.refobjid)",
		"public":  "SELECT oid::bigint - 2200 FROM pg_namespace WHERE nspname = 'public'",
	} {
		if got := b.MustQuery(t, sql); got != "<nil>" && got != "0" {
			t.Errorf("%s: %s", what, got)
		}
	}
}

func TestMasterMayNot(t *testing.T) {
	b := running(t)
	b.MustQuery(t, "CREATE TABLE t (n integer PRIMARY KEY)")
	b.MustQuery(t, "CREATE FUNCTION f() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'")
	b.MustQuery(t, "CREATE EXTENSION dblink")
	// The session that must not be ended.
	admin, err := New(Config{}).adminConn(t.Context(), instanceOf(b))
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(context.Background(), admin)
	for _, c := range mayNot {
		value, err := query(t.Context(), b.Login(), c.sql)
		why := refusal(err)
		t.Logf("%s: %s", c.name, why)
		if err == nil {
			t.Errorf("%s: %s: allowed, and says %q", c.name, c.sql, value)
		} else if code, _, _ := strings.Cut(why, " "); !slices.Contains(refusals, code) {
			t.Errorf("%s: %s: refused for another reason: %s", c.name, c.sql, why)
		}
	}
	t.Run("create a refused extension", func(t *testing.T) { refusesExtensions(t, b) })
	t.Run("come in another way", func(t *testing.T) { refusesWaysIn(t, b) })
	if _, err := first(t.Context(), admin, "SELECT 1"); err != nil {
		t.Errorf("the service's session: %v", err)
	}
	if _, err := os.Stat("/tmp/kurabe-evil"); err == nil {
		t.Error("a file was written")
	}
}

// refusesExtensions tries every extension of the machine that is not on offer.
func refusesExtensions(t *testing.T, b *enginetest.Bed) {
	controls, _ := filepath.Glob("/usr/share/postgresql/" + b.Version.Major() + "/extension/*.control")
	for _, path := range controls {
		// Debian's PostGIS has two names for each; only the one without a number has scripts.
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".control"), "-3")
		if slices.Contains(b.Version.Extensions, name) {
			continue
		}
		if _, known := tree.Refused[name]; !known {
			t.Errorf("%s is neither allowed nor refused for a reason", name)
		}
		if _, err := query(t.Context(), b.Login(), "CREATE EXTENSION "+quoteName(name)+" CASCADE"); err == nil {
			t.Errorf("%s can be created", name)
		}
	}
}

func refusesWaysIn(t *testing.T, b *enginetest.Bed) {
	socket := b.Home().RunDir()
	for _, sql := range []string{
		"SELECT * FROM dblink('host=" + socket + " user=rdsadmin dbname=rdsadmin', 'SELECT 1') AS r(n integer)",
		"SELECT * FROM dblink('host=" + socket + " user=rdsadmin password=x dbname=rdsadmin', 'SELECT 1') AS r(n integer)",
		"SELECT * FROM dblink('host=" + socket + " user=master password=" + b.Password.Reveal() + " dbname=shop', 'SELECT 1') AS r(n integer)",
		"SELECT dblink_connect_u('host=" + socket + " user=rdsadmin')",
	} {
		if value, err := query(t.Context(), b.Login(), sql); err == nil {
			t.Errorf("%s: allowed, and says %q", sql, value)
		}
	}
	service := b.Login()
	service.Database = adminDatabase
	if _, err := query(t.Context(), service, "SELECT 1"); err == nil || !strings.Contains(refusal(err), "42501") {
		t.Errorf("the service's database: %v", err)
	}
	admin := b.Login()
	admin.User = adminRole
	if _, err := query(t.Context(), admin, "SELECT 1"); err == nil || !strings.Contains(refusal(err), "28000") {
		t.Errorf("the service's role: %v", err)
	}
	config, err := clientConfig(b.Login())
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams = map[string]string{"replication": "true"}
	if conn, err := pgx.ConnectConfig(t.Context(), config); err == nil {
		closeConn(t.Context(), conn)
		t.Error("physical replication is open")
	}
}
