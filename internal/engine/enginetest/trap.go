package enginetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Trap is a file that says that code of a tenant's has run with the rights of a superuser.
type Trap struct{ path string }

// NewTrap makes one that is not sprung. The engine's account may write it.
func NewTrap(t testing.TB) Trap {
	t.Helper()
	dir, err := os.MkdirTemp("", "kurabe-trap-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return Trap{filepath.Join(dir, "proof")}
}

// Sprung says which traps have been, "" for none.
func (p Trap) Sprung(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(p.path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "; ")
}

// MustRest demands that no trap was sprung, after an operation of the service.
func (p Trap) MustRest(t testing.TB, operation string) {
	t.Helper()
	if sprung := p.Sprung(t); sprung != "" {
		t.Fatalf("%s ran code of a tenant's: %s", operation, sprung)
	}
}

// PostgresSQL plants hostile objects of each kind in the schemas of one database, as its
// owner. Each of them, when a superuser comes by it, writes its name into the file.
func (p Trap) PostgresSQL() []string {
	return slices.Concat(p.proofs(), falseChecks(), falseNames("public"), falseNames("evil"), falseCatalogue("public"), falseCatalogue("evil"),
		falseService(), hostileTables(), hostileIndexes())
}

// proofs are what all else calls.
func (p Trap) proofs() []string {
	return []string{
		"CREATE SCHEMA evil",
		`CREATE FUNCTION evil.proof(what text) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog AS $f$
		BEGIN
			IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
				EXECUTE format('COPY (SELECT %L) TO PROGRAM %L', what || ' as ' || current_user, 'cat >> ` + p.path + `');
			END IF;
			RETURN what;
		END $f$`,
		// What an index takes; it may call what it must not be.
		`CREATE FUNCTION evil.still(what text, value text) RETURNS text IMMUTABLE LANGUAGE plpgsql SET search_path = pg_catalog AS $f$
		BEGIN PERFORM evil.proof(what); RETURN value; END $f$`,
		`CREATE FUNCTION evil.fire() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM evil.proof('trigger ' || TG_NAME); RETURN NEW; END $f$`,
	}
}

// falseChecks fit better than amcheck's own functions.
func falseChecks() []string {
	list := []string{"CREATE EXTENSION amcheck SCHEMA evil"}
	for _, f := range []string{
		"bt_index_check(index oid)", "bt_index_check(index oid, heapallindexed boolean)",
		"bt_index_parent_check(index oid)", "bt_index_parent_check(index oid, heapallindexed boolean)",
		"bt_index_parent_check(index oid, heapallindexed boolean, rootdescend boolean)",
	} {
		list = append(list, "CREATE FUNCTION evil."+f+" RETURNS void LANGUAGE plpgsql AS $f$ BEGIN PERFORM evil.proof('amcheck''s "+f+"'); END $f$")
	}
	return append(list, `CREATE FUNCTION evil.verify_heapam(relation oid, on_error_stop boolean DEFAULT false, check_toast boolean DEFAULT false, skip text DEFAULT 'none',
		startblock bigint DEFAULT NULL, endblock bigint DEFAULT NULL, OUT blkno bigint, OUT offnum integer, OUT attnum integer, OUT msg text) RETURNS SETOF record
		LANGUAGE plpgsql AS $f$ BEGIN PERFORM evil.proof('amcheck''s verify_heapam'); END $f$`)
}

// falseNames are functions, operators and types whose names the service or its tools use.
func falseNames(schema string) []string {
	var list []string
	for _, f := range []struct{ head, returns, value string }{
		{"format(text, name)", "text", "$1"}, {"format(text, text)", "text", "$1"}, {"unnest(text[])", "SETOF text", "$1[1]"},
		{"current_setting(text)", "text", "$1"}, {"set_config(text, text, boolean)", "text", "$2"}, {"lower(text)", "text", "$1"},
		{"pg_walfile_name(pg_lsn)", "text", "''"}, {"pg_is_in_recovery()", "boolean", "false"}, {"pg_backup_stop(boolean)", "text", "''"},
		{"clock_timestamp()", "timestamptz", "pg_catalog.now()"}, {"now()", "timestamptz", "pg_catalog.clock_timestamp()"},
		{"count(oid)", "bigint", "1::bigint"}, {"quote_ident(text)", "text", "$1"}, {"pg_relation_size(oid)", "bigint", "0::bigint"},
		{"pg_reload_conf()", "boolean", "true"}, {"starts_with(text, text)", "boolean", "true"}, {"version()", "text", "''"},
	} {
		list = append(list, "CREATE FUNCTION "+schema+"."+f.head+" RETURNS "+f.returns+" LANGUAGE sql AS $f$ SELECT evil.proof('"+schema+"."+f.head+"'); SELECT "+f.value+" $f$")
	}
	for _, operator := range []string{"=", "<>", ">", "~", "^@"} {
		for n, side := range []string{"name", "text", "oid", `"char"`, "integer", "boolean", "bigint", "smallint"} {
			compare := schema + ".compare" + string(rune('a'+n))
			list = append(list,
				"CREATE OR REPLACE FUNCTION "+compare+"("+side+", "+side+") RETURNS boolean LANGUAGE sql AS $f$ SELECT evil.proof('"+schema+" operator'); SELECT true $f$",
				"CREATE OPERATOR "+schema+"."+operator+" (LEFTARG = "+side+", RIGHTARG = "+side+", FUNCTION = "+compare+")")
		}
	}
	for _, name := range []string{"regclass", "text", "oid", "pg_lsn", "timestamptz", "bool"} {
		list = append(list, "CREATE DOMAIN "+schema+"."+name+" AS pg_catalog.text CHECK (evil.proof('"+schema+" domain "+name+"') IS NOT NULL)")
	}
	return list
}

// falseCatalogue are views by the names of the catalogue's tables.
func falseCatalogue(schema string) []string {
	var list []string
	for _, name := range []string{"pg_class", "pg_database", "pg_roles", "pg_settings", "pg_namespace", "pg_index", "pg_extension", "pg_am", "pg_replication_slots"} {
		list = append(list, "CREATE VIEW "+schema+"."+name+" AS SELECT *, evil.proof('"+schema+"."+name+"') AS proof FROM pg_catalog."+name)
	}
	return list
}

// falseService are the service's own tables, and those that modules look for by name.
func falseService() []string {
	return []string{
		"CREATE SCHEMA service", "CREATE SCHEMA rdsadmin", "CREATE SCHEMA hint_plan",
		"CREATE VIEW service.probe AS SELECT 'rdsprobe_0'::pg_catalog.name AS role, pg_catalog.now() AS wrote_at, evil.proof('service.probe') AS proof",
		"CREATE VIEW service.marker AS SELECT true AS one, pg_catalog.now() AS at, evil.proof('service.marker') AS proof",
		"CREATE VIEW hint_plan.hints AS SELECT 1 AS id, evil.proof('hint_plan.hints') AS hints, ''::pg_catalog.text AS norm_query_string, ''::pg_catalog.text AS application_name",
	}
}

// hostileTables have code at each door of a table.
func hostileTables() []string {
	return []string{
		"CREATE DOMAIN evil.field AS pg_catalog.text CHECK (evil.proof('domain') IS NOT NULL)",
		"CREATE TYPE evil.pair AS (a evil.field, b integer)",
		"CREATE FUNCTION evil.cast(evil.pair) RETURNS pg_catalog.text LANGUAGE sql AS $f$ SELECT evil.proof('cast') $f$",
		"CREATE CAST (evil.pair AS pg_catalog.text) WITH FUNCTION evil.cast(evil.pair) AS IMPLICIT",
		`CREATE TABLE evil.t (n serial PRIMARY KEY, a pg_catalog.text DEFAULT evil.proof('default'), f evil.field, p evil.pair,
			g pg_catalog.text GENERATED ALWAYS AS (evil.still('generated', 'x')) STORED, CHECK (evil.proof('check') IS NOT NULL))`,
		"CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON evil.t FOR EACH ROW EXECUTE FUNCTION evil.fire()",
		"ALTER TABLE evil.t ENABLE ALWAYS TRIGGER fire",
		"CREATE TRIGGER emptied BEFORE TRUNCATE ON evil.t EXECUTE FUNCTION evil.fire()",
		"CREATE CONSTRAINT TRIGGER later AFTER INSERT ON evil.t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION evil.fire()",
		"CREATE RULE told AS ON DELETE TO evil.t DO ALSO SELECT evil.proof('rule')",
		"ALTER TABLE evil.t ENABLE ROW LEVEL SECURITY", "ALTER TABLE evil.t FORCE ROW LEVEL SECURITY",
		"CREATE POLICY seen ON evil.t USING (evil.proof('policy') IS NOT NULL) WITH CHECK (true)",
		"INSERT INTO evil.t (f, p) SELECT 'x', ('(y,' || n || ')')::evil.pair FROM pg_catalog.generate_series(1, 300) n",
		"CREATE TABLE evil.parts (n integer, a pg_catalog.text) PARTITION BY RANGE (evil.still('partition', a))",
		"CREATE TABLE evil.part PARTITION OF evil.parts DEFAULT",
		"INSERT INTO evil.parts VALUES (1, 'x')",
		"CREATE MATERIALIZED VIEW evil.kept AS SELECT evil.proof('materialized view') AS a",
		"CREATE TYPE evil.span AS RANGE (SUBTYPE = pg_catalog.text)",
		"CREATE TABLE evil.spans (s evil.span)", "INSERT INTO evil.spans VALUES ('[a,b)')", "CREATE INDEX ON evil.spans (s)",
	}
}

// hostileIndexes have code in their expressions and conditions.
func hostileIndexes() []string {
	list := []string{
		"CREATE INDEX by_value ON evil.t (evil.still('index', a))",
		"CREATE INDEX by_condition ON evil.t (n) WHERE evil.still('condition of an index', a) IS NOT NULL",
		"CREATE UNIQUE INDEX by_pair ON evil.t (((evil.still('unique index', n::pg_catalog.text))))",
		"CREATE INDEX by_type ON evil.t (((n::pg_catalog.text)::evil.field))",
		"CREATE INDEX ON evil.kept (evil.still('index of a view', a))",
		"CREATE INDEX ON evil.t USING brin (evil.still('brin', a))",
		"CREATE INDEX ON evil.t USING hash (evil.still('hash', a))",
		"CREATE STATISTICS evil.s ON evil.still('statistics', a), n FROM evil.t",
		"ANALYZE evil.t",
	}
	return list
}

// PostgresSettings are what the owner of a database may set for all its sessions.
func PostgresSettings(database string) []string {
	var list []string
	for _, s := range []string{
		"search_path = evil, public, pg_catalog", "session_replication_role = origin", "row_security = on", "default_transaction_read_only = on",
		"statement_timeout = 1", "lock_timeout = 1", "check_function_bodies = on", "role = master", "default_table_access_method = heap",
		"transform_null_equals = on", "quote_all_identifiers = on", "enable_seqscan = off",
	} {
		list = append(list, `ALTER DATABASE `+database+` SET `+s)
	}
	return list
}
