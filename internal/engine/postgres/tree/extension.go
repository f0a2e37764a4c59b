package tree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// allowed are the extensions that a master user may create, where installed.
// The rule: nothing in it reads or writes a server file, runs a program, loads
// a library of the caller's choice, bypasses a privilege or edits pages.
var allowed = []string{
	"address_standardizer", "address_standardizer_data_us", "amcheck", "autoinc", "bloom", "bool_plperl",
	"btree_gin", "btree_gist", "citext", "cube", "dblink", "dict_int", "dict_xsyn", "earthdistance",
	"fuzzystrmatch", "hstore", "hstore_plperl", "insert_username", "intagg", "intarray", "isn", "jsonb_plperl",
	"lo", "ltree", "moddatetime", "pg_buffercache", "pg_freespacemap", "pg_hint_plan", "pg_prewarm",
	"pg_stat_statements", "pg_trgm", "pg_visibility", "pgaudit", "pgcrypto", "pgrowlocks", "pgstattuple",
	"plperl", "plpgsql", "pltcl", "postgis", "postgis_tiger_geocoder", "postgis_topology", "postgres_fdw",
	"seg", "sslinfo", "tablefunc", "tcn", "tsm_system_rows", "tsm_system_time",
	"unaccent", "uuid-ossp", "vector",
}

// read are those of the allowed that upstream does not mark trusted and we do.
// Their scripts run as superuser, in rooms (openRooms) that keep out what lies in
// the caller's schema. Each was read for what a room does not keep out: a
// statement made at run time out of settings or names that the caller chooses.
// One that is not in this list is offered only where its authors say trusted, or
// that its script needs no superuser.
var read = []string{
	"address_standardizer", "amcheck", "autoinc", "bloom", "dblink", "dict_xsyn", "earthdistance", "hstore_plperl", "insert_username", "intagg",
	"moddatetime", "pg_buffercache", "pg_freespacemap", "pg_prewarm", "pg_stat_statements", "pg_visibility",
	"pgaudit", "pgrowlocks", "pgstattuple", "postgis", "postgis_topology", "postgres_fdw", "sslinfo",
}

// asCaller are those whose script needs no superuser although their control file
// does not say so: tables and data, which are then the caller's own.
var asCaller = []string{"address_standardizer_data_us"}

// frozen are those whose update scripts are left out. They append the
// session's default path, a text of the caller's choice, to an ALTER DATABASE
// and to a SET, adopt what has the name of their own, and walk over tables of
// the users. A newer version is had by dropping and creating the extension.
var frozen = []string{"postgis", "postgis_topology"}

// rewritten are texts of scripts that would execute what the caller chose.
// AddToSearchPath executes the session's default path as part of a statement:
// "a;ALTER/**/ROLE/**/me/**/SUPERUSER;--" is a list of one name to the setting.
var rewritten = map[string]*strings.Replacer{
	"postgis_topology": strings.NewReplacer("SELECT topology.AddToSearchPath('topology');", ""),
}

// pathFromCaller is such a call. A script that has one after rewriting is of a
// version that was not read, and the extension is not offered.
var pathFromCaller = regexp.MustCompile(`(?mi)^\s*SELECT\s+[\w.@"]*(AddToSearchPath|SetSearchPathForInstall)`)

// appended run after the script with pg_catalog alone on the path. Of what
// postgis_topology does to its schema, a grant would go with the room; and the
// schema is put on the path of the database, each name of which is quoted anew.
var appended = map[string]string{
	"postgis_topology": `
GRANT USAGE ON SCHEMA topology TO PUBLIC;
DO LANGUAGE plpgsql $kurabe$
DECLARE
	path text[];
BEGIN
	SELECT array_agg(trim(BOTH ' "' FROM part)) INTO path FROM pg_settings, unnest(string_to_array(reset_val, ',')) part WHERE name = 'search_path';
	IF 'topology' <> ALL (path) THEN
		SELECT array_agg(quote_ident(part)) INTO path FROM unnest(path || 'topology'::text) part;
		EXECUTE format('ALTER DATABASE %I SET search_path = %s', current_database(), array_to_string(path, ', '));
	END IF;
END $kurabe$;
`,
}

// Refused are the known extensions that stay out, and why.
var Refused = map[string]string{
	"adminpack":         "writes and deletes server files",
	"bool_plperlu":      "needs an untrusted language",
	"file_fdw":          "reads server files and runs programs",
	"hstore_plperlu":    "needs an untrusted language",
	"jsonb_plperlu":     "needs an untrusted language",
	"old_snapshot":      "of use to superusers only",
	"pageinspect":       "its functions demand a superuser",
	"pg_logicalinspect": "reads server files",
	"pg_surgery":        "edits pages and so can destroy data",
	"pg_walinspect":     "shows the write-ahead log, which holds every database's data",
	"plperlu":           "an untrusted language runs programs",
	"plpython3u":        "an untrusted language runs programs",
	"pltclu":            "an untrusted language runs programs",
	"postgis_raster":    "reads server files and the network (out-of-database rasters, GDAL)",
	"postgis_sfcgal":    "not offered by RDS, and not read",
	"refint":            "its C code trusts its arguments; foreign keys have replaced it",
	"xml2":              "deprecated, and its XSLT has read files before (CVE-2012-3488)",
}

// granted are things that an extension keeps for superusers and that
// rds_superuser gets too: functions that tell about or reset statistics or check
// indexes; wrappers, whose connections must bring a password; tables and their
// sequences that are there to be filled. On a table never TRIGGER or REFERENCES:
// those would run code of the caller's in a later script.
// The grant is appended to the scripts that lead to the default version.
var granted = map[string][]string{
	"amcheck":            {"bt_index_check", "bt_index_parent_check", "gin_index_check", "verify_heapam"},
	"dblink":             {"dblink_fdw"},
	"pg_stat_statements": {"pg_stat_statements_reset"},
	"postgis":            {"spatial_ref_sys"},
	"postgis_topology":   {"layer", "topology", "topology_id_seq"},
	"postgres_fdw":       {"postgres_fdw"},
}

// extensionOf is the extension that a file in the extension folder belongs to.
func extensionOf(file string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(file, ".sql"), ".control")
	name, _, _ = strings.Cut(name, "--")
	return name
}

// Extensions lists the extensions on offer, sorted.
func (s Source) Extensions() ([]string, error) {
	dir := filepath.Join(s.Share, "extension")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list extensions: %w", err)
	}
	var found []string
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), ".control")
		if !ok {
			continue
		}
		standing, err := standingOf(dir, name)
		if err != nil {
			return nil, fmt.Errorf("look at extension %s: %w", name, err)
		}
		if standing != closed {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}

var (
	trustedLine   = regexp.MustCompile(`(?mi)^\s*trusted\s*=\s*'?(true|on|yes|1)`)
	superuserLine = regexp.MustCompile(`(?mi)^\s*superuser\s*=\s*'?(false|off|no|0)`)
)

// standing is by whose word a database's owner may create an extension.
type standing int

const (
	closed    standing = iota // not at all
	vouched                   // its authors say trusted
	unaided                   // its script runs with the caller's own rights
	sheltered                 // ours; its scripts run in rooms
)

// standingOf decides about one installed extension.
func standingOf(dir, name string) (standing, error) {
	if !slices.Contains(allowed, name) {
		return closed, nil
	}
	control, err := os.ReadFile(filepath.Join(dir, name+".control"))
	switch {
	case err != nil:
		return closed, err
	case trustedLine.Match(control):
		return vouched, nil
	case superuserLine.Match(control), slices.Contains(asCaller, name):
		return unaided, nil
	case !slices.Contains(read, name):
		return closed, nil
	}
	version, err := defaultVersion(filepath.Join(dir, name+".control"))
	if err != nil {
		return closed, err
	}
	script, err := os.ReadFile(filepath.Join(dir, name+"--"+version+".sql"))
	if errors.Is(err, os.ErrNotExist) {
		return sheltered, nil // It is made by updates from an older one.
	}
	if err != nil {
		return closed, err
	}
	if hasFolded(script, "searchpath") && pathFromCaller.MatchString(rewrite(name, string(script))) {
		return closed, nil
	}
	return sheltered, nil
}

// hasFolded says whether a text holds an ASCII word, in lower case or not. PostGIS's script
// has 7 MB, and a start looks at it three times: a copy in lower case, or the pattern
// itself, takes four times as long and more.
func hasFolded(text []byte, lower string) bool {
	for i := range len(text) - len(lower) + 1 {
		if text[i]|0x20 == lower[0] && bytes.EqualFold(text[i:i+len(lower)], []byte(lower)) {
			return true
		}
	}
	return false
}

// rewrite is what becomes of a script of that extension.
func rewrite(extension, script string) string {
	if r := rewritten[extension]; r != nil {
		return r.Replace(script)
	}
	return script
}

// trustedControl is a control file whose extension a database's owner may
// create. The last line of a name wins.
func trustedControl(text string, as standing) string {
	rights := "superuser = true\ntrusted = true\n"
	if as == unaided {
		rights = "superuser = false\n"
	}
	return strings.TrimRight(text, "\n") + "\n\n# Kurabe: the master user may create it.\n" + rights
}

// grantScript is appended to the scripts that lead to the default version. It
// runs as superuser inside CREATE EXTENSION, so before it looks at anything it
// takes the caller's schemas off the search path.
func grantScript(extension string, names []string) string {
	return fmt.Sprintf(`
SET LOCAL search_path TO pg_catalog, pg_temp;
DO $kurabe$
DECLARE
	wanted CONSTANT text[] := %s;
	thing text;
BEGIN
	FOR thing IN
		SELECT 'ALL ON FUNCTION ' || p.oid::regprocedure::text FROM pg_catalog.pg_proc p
		JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
		JOIN pg_catalog.pg_extension e ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.refobjid = e.oid
		WHERE e.extname = '%[2]s' AND p.proname = ANY (wanted)
	UNION ALL
		SELECT CASE c.relkind WHEN 'S' THEN 'USAGE, SELECT, UPDATE ON SEQUENCE ' ELSE 'SELECT, INSERT, UPDATE, DELETE ON TABLE ' END || c.oid::regclass::text
		FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
		JOIN pg_catalog.pg_extension e ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.refobjid = e.oid
		WHERE e.extname = '%[2]s' AND c.relname = ANY (wanted)
	UNION ALL
		SELECT 'ALL ON FOREIGN DATA WRAPPER ' || quote_ident(w.fdwname) FROM pg_catalog.pg_foreign_data_wrapper w
		WHERE w.fdwname = ANY (wanted)
	LOOP
		EXECUTE format('GRANT %%s TO rds_superuser WITH GRANT OPTION', thing);
	END LOOP;
END $kurabe$;
`, "ARRAY['"+strings.Join(names, "', '")+"']::text[]", extension)
}

// A trusted script runs as superuser with the caller's schema on its path, and
// whatever lies there can be executed by it: a function that fits better than
// the script's own, an operator, a type whose input is the caller's code. To
// look whether something lies there is not enough; another session of the
// caller's can put it there while the script runs.
//
// So a script of ours runs in rooms. A room is a schema that was made in the
// script's own transaction, which no other session can see, and that has the
// name of a schema on the path, which steps aside meanwhile. In it is only what
// the bootstrap superuser owns. At the end all of it is moved into the schema
// whose name the room had. Others see nothing of that, as it is one transaction.
//
// What the room does not hold off is a statement that a script makes at run
// time out of what the caller controls; for that, scripts are read.

// namespaced lists the catalogues of things that are in schemas: the column of
// the schema and, where there is one, of the owner. Constraints have none; they
// go where their table or domain goes.
const namespaced = `SELECT a.attrelid::regclass::text AS catalog, a.attname AS space,
			(SELECT o.attname FROM pg_attribute o WHERE o.attrelid = a.attrelid AND o.attname ~ 'owner$' AND o.atttypid = 'oid'::regtype) AS owner
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind = 'r' AND a.attname ~ 'namespace$' AND a.atttypid = 'oid'::regtype
			AND c.relname NOT IN ('pg_constraint', 'pg_extension', 'pg_default_acl')`

// openRooms precedes a script. Everything before the path is set is qualified:
// at that moment the path is still the caller's. Two at a time would rename the
// same schema, so the second waits. A temporary table would be found for a name
// that is nowhere else.
const openRooms = `DO LANGUAGE plpgsql $kurabe$
DECLARE
	way CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
	names CONSTANT pg_catalog.name[] := pg_catalog.current_schemas(false);
	rooms pg_catalog.text := '';
	old record; cat record; room oid; moved text;
BEGIN
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	IF EXISTS (SELECT FROM pg_type WHERE typnamespace = pg_my_temp_schema()) THEN
		RAISE EXCEPTION 'this extension cannot be created in a session that has temporary tables or types'
			USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Use a new session, or DISCARD TEMP first.';
	END IF;
	LOCK TABLE pg_extension IN SHARE ROW EXCLUSIVE MODE;
	FOR old IN SELECT n.oid, n.nspname FROM pg_namespace n WHERE n.nspname = ANY (names) AND n.nspname !~ '^pg_(catalog$|temp)' ORDER BY n.oid LOOP
		IF old.nspname ~ '^pg_' OR old.nspname = 'information_schema' THEN
			RAISE EXCEPTION 'no extension can be in schema %', old.nspname USING ERRCODE = 'invalid_schema_name';
		END IF;
		FOR moved IN SELECT oid::regclass::text FROM pg_class WHERE relnamespace = old.oid AND relowner = 10 AND relkind IN ('r', 'p') LOOP
			EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', moved);
		END LOOP;
		EXECUTE format('ALTER SCHEMA %I RENAME TO kurabe_aside_%s', old.nspname, old.oid);
		EXECUTE format('CREATE SCHEMA %I', old.nspname);
		SELECT oid INTO STRICT room FROM pg_namespace WHERE nspname = old.nspname;
		FOR cat IN ` + namespaced + ` LOOP
			EXECUTE format('UPDATE %s SET %I = $1 WHERE %2$I = $2', cat.catalog, cat.space) || CASE WHEN cat.owner IS NULL THEN '' ELSE format(' AND %I = 10', cat.owner) END
				USING room, old.oid;
		END LOOP;
		UPDATE pg_constraint SET connamespace = room WHERE connamespace = old.oid
			AND (conrelid IN (SELECT oid FROM pg_class WHERE relnamespace = room) OR contypid IN (SELECT oid FROM pg_type WHERE typnamespace = room));
		rooms := rooms || format('%s=%s ', room, old.oid);
	END LOOP;
	PERFORM set_config('kurabe.rooms', rooms, true);
	PERFORM set_config('search_path', way, true);
END $kurabe$;
`

// closeRooms follows a script. A schema that still is needed cannot be dropped,
// so nothing is left behind. The path afterwards is pg_catalog alone.
const closeRooms = `
SET LOCAL search_path TO pg_catalog, pg_temp;
DO LANGUAGE plpgsql $kurabe$
DECLARE
	pair text; cat record; room oid; old oid; called name; what text;
BEGIN
	FOREACH pair IN ARRAY string_to_array(trim(current_setting('kurabe.rooms')), ' ') LOOP
		room := split_part(pair, '=', 1)::oid;
		old := split_part(pair, '=', 2)::oid;
		SELECT nspname INTO STRICT called FROM pg_namespace WHERE oid = room;
		BEGIN
			FOR cat IN ` + namespaced + ` LOOP
				EXECUTE format('UPDATE %s SET %I = $1 WHERE %2$I = $2', cat.catalog, cat.space) USING old, room;
			END LOOP;
		EXCEPTION WHEN unique_violation THEN
			GET STACKED DIAGNOSTICS what = PG_EXCEPTION_DETAIL;
			RAISE EXCEPTION 'schema "%" already has an object of a name that the extension needs', called
				USING ERRCODE = 'duplicate_object', DETAIL = what, HINT = 'Drop or rename that object, or create the extension in a schema of its own.';
		END;
		UPDATE pg_constraint SET connamespace = old WHERE connamespace = room;
		UPDATE pg_depend SET refobjid = old WHERE refclassid = 'pg_namespace'::regclass AND refobjid = room;
		EXECUTE format('DROP SCHEMA %I RESTRICT', called);
		EXECUTE format('ALTER SCHEMA kurabe_aside_%s RENAME TO %I', old, called);
	END LOOP;
END $kurabe$;
`

// inRooms is a script with rooms around it.
func inRooms(script string) string { return openRooms + script + closeRooms }
