package postgres

import (
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
// The script runs as superuser in a schema of the caller's, so each was read for
// statements that would execute what a hostile schema holds. One that is not in
// this list is offered only where its authors say trusted.
var read = []string{
	"amcheck", "autoinc", "bloom", "dblink", "dict_xsyn", "earthdistance", "insert_username", "intagg", "moddatetime",
	"pg_buffercache", "pg_freespacemap", "pg_prewarm", "pg_stat_statements", "pg_visibility", "pgrowlocks",
	"pgstattuple", "postgres_fdw", "sslinfo",
}

// rewritten are texts of scripts that would execute the caller's code. A cast of
// a literal calls the type's input while the statement is being read, and the
// caller's schema comes before cube's; a call is only stored.
var rewritten = map[string]*strings.Replacer{
	"earthdistance": strings.NewReplacer("'(0)'::cube", "cube('0'::float8)"),
}

// refused are the known extensions that stay out, and why.
var refused = map[string]string{
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
	"postgis_raster":    "reads server files (out-of-database rasters)",
	"refint":            "its C code trusts its arguments; foreign keys have replaced it",
	"xml2":              "deprecated, and its XSLT has read files before (CVE-2012-3488)",
}

// granted are functions and wrappers that an extension keeps for superusers and
// that rds_superuser gets too: they tell about or reset statistics, check
// indexes, or open connections for which a non-superuser must bring a password.
// The grant is appended to the installation script.
var granted = map[string][]string{
	"amcheck":            {"bt_index_check", "bt_index_parent_check", "gin_index_check", "verify_heapam"},
	"dblink":             {"dblink_fdw"},
	"pg_stat_statements": {"pg_stat_statements_reset"},
	"postgres_fdw":       {"postgres_fdw"},
}

// extensionOf is the extension that a file in the extension folder belongs to.
func extensionOf(file string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(file, ".sql"), ".control")
	name, _, _ = strings.Cut(name, "--")
	return name
}

// extensions lists the extensions on offer, sorted.
func (s source) extensions() ([]string, error) {
	dir := filepath.Join(s.share, "extension")
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
		offered, err := offers(dir, name)
		if err != nil {
			return nil, fmt.Errorf("look at extension %s: %w", name, err)
		}
		if offered {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}

var trustedLine = regexp.MustCompile(`(?mi)^\s*trusted\s*=\s*'?(true|on|yes|1)`)

// literalCast is a literal cast to a type that is not of pg_catalog's. A script
// that we have read may come to have one in a later version.
var (
	literalCast  = regexp.MustCompile(`[^']'::\s*"?(\w+)`)
	catalogTypes = []string{"text", "float8", "integer", "int4", "bigint", "oid", "regclass", "regproc", "regprocedure", "pg_catalog", "name", "bool", "boolean", "char"}
)

// offers decides about one installed extension.
func offers(dir, name string) (bool, error) {
	if !slices.Contains(allowed, name) {
		return false, nil
	}
	control, err := os.ReadFile(filepath.Join(dir, name+".control"))
	if err != nil || trustedLine.Match(control) {
		return err == nil, err
	}
	if !slices.Contains(read, name) {
		return false, nil
	}
	scripts, err := filepath.Glob(filepath.Join(dir, name+"--*.sql"))
	if err != nil {
		return false, err
	}
	for _, path := range scripts {
		raw, err := os.ReadFile(path)
		if err != nil {
			return false, err
		}
		for _, m := range literalCast.FindAllStringSubmatch(rewrite(name, string(raw)), -1) {
			if !slices.Contains(catalogTypes, strings.ToLower(m[1])) {
				return false, nil
			}
		}
	}
	return true, nil
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
func trustedControl(text string) string {
	return strings.TrimRight(text, "\n") + "\n\n# Kurabe: the master user may create it.\nsuperuser = true\ntrusted = true\n"
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
		SELECT 'FUNCTION ' || p.oid::regprocedure::text FROM pg_catalog.pg_proc p
		JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
		JOIN pg_catalog.pg_extension e ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.refobjid = e.oid
		WHERE e.extname = '%s' AND p.proname = ANY (wanted)
	UNION ALL
		SELECT 'FOREIGN DATA WRAPPER ' || quote_ident(w.fdwname) FROM pg_catalog.pg_foreign_data_wrapper w
		WHERE w.fdwname = ANY (wanted)
	LOOP
		EXECUTE format('GRANT ALL ON %%s TO rds_superuser WITH GRANT OPTION', thing);
	END LOOP;
END $kurabe$;
`, textArray(names), extension)
}
