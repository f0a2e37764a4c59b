package tree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folder is an extension folder with these files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestExtensionFile(t *testing.T) {
	dir := folder(t, map[string]string{
		"hstore.control": "default_version = '1.8'\ntrusted = true\n", "hstore--1.8.sql": "-- theirs",
		"dblink.control": "default_version = '1.2'\n", "dblink--1.0.sql": "-- first", "dblink--1.1--1.2.sql": "-- last",
		"postgis.control": "default_version = '3.3.2'\n", "postgis--3.3.2.sql": "-- all", "postgis--3.3.1--3.3.2.sql": "-- update",
		"postgis_tiger_geocoder.control": "default_version = '3.3.2'\nsuperuser= false\n", "postgis_tiger_geocoder--3.3.2.sql": "-- tiger",
		"address_standardizer_data_us.control": "default_version = '3.3.2'\n", "address_standardizer_data_us--3.3.2.sql": "-- data",
		"file_fdw.control": "default_version = '1.0'\n", "file_fdw--1.0.sql": "-- files",
		"plpgsql_check.control": "default_version = '2.0'\n", "unaccent.rules": "À\tA\n",
	})
	const linked, absent = "linked", "absent"
	for name, want := range map[string]string{
		"hstore.control": "trusted = true", "hstore--1.8.sql": linked,
		"dblink.control": "trusted = true", "dblink--1.0.sql": openRooms + "-- first" + closeRooms,
		"dblink--1.1--1.2.sql": "rds_superuser",
		"postgis.control":      "trusted = true", "postgis--3.3.2.sql": openRooms + "-- all" + closeRooms, "postgis--3.3.1--3.3.2.sql": absent,
		"postgis_tiger_geocoder.control": "superuser = false", "postgis_tiger_geocoder--3.3.2.sql": linked,
		"address_standardizer_data_us.control": "superuser = false", "address_standardizer_data_us--3.3.2.sql": linked,
		"file_fdw.control": absent, "plpgsql_check.control": absent, "unaccent.rules": linked,
	} {
		text, isLinked, err := extensionFile(dir, name)
		got := text
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case isLinked:
			got = linked
		case text == "":
			got = absent
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", name, got, want)
		}
	}
}

func TestExtensionsOnOffer(t *testing.T) {
	control := "default_version = '1'\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"not on our list, trusted":     {map[string]string{"unknown.control": control + "trusted = true\n"}, false},
		"on our list, neither's trust": {map[string]string{"vector.control": control}, false},
		"on our list, theirs":          {map[string]string{"vector.control": control + "trusted = yes\n"}, true},
		"read":                         {map[string]string{"pgrowlocks.control": control, "pgrowlocks--1.sql": "SELECT 1;"}, true},
		"read, made by updates":        {map[string]string{"pgrowlocks.control": control, "pgrowlocks--0.sql": "", "pgrowlocks--0--1.sql": ""}, true},
		"the call that is taken out":   {map[string]string{"postgis_topology.control": control, "postgis_topology--1.sql": "SELECT topology.AddToSearchPath('topology');"}, true},
		"the call in another form":     {map[string]string{"postgis_topology.control": control, "postgis_topology--1.sql": "\n select @extschema@.addtosearchpath('topology');"}, false},
	} {
		found, err := Source{Share: filepath.Dir(rename(t, folder(t, c.files)))}.Extensions()
		if err != nil || (len(found) == 1) != c.want {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

// rename gives a folder the name that a server looks for.
func rename(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "extension")
	if err := os.Rename(dir, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// What is decided about an extension must be about one that is on the list.
func TestExtensionLists(t *testing.T) {
	for name := range Refused {
		if slices.Contains(allowed, name) {
			t.Errorf("%s is both allowed and refused", name)
		}
	}
	if !slices.IsSorted(allowed) {
		t.Error("a list is out of order")
	}
	decided := slices.Concat(read, asCaller, frozen)
	for name := range granted {
		decided = append(decided, name)
	}
	for name := range rewritten {
		decided = append(decided, name)
	}
	for name := range appended {
		decided = append(decided, name)
	}
	for _, name := range decided {
		if !slices.Contains(allowed, name) {
			t.Errorf("%s is not allowed", name)
		}
	}
	for name := range Refused {
		if slices.Contains(allowed, name) {
			t.Errorf("%s is allowed and refused", name)
		}
	}
	// The server replaces these in every script.
	for _, word := range []string{"@extschema", "@extowner", "MODULE_PATHNAME", "\n\\"} {
		if strings.Contains(inRooms(""), word) {
			t.Errorf("the rooms contain %q", word)
		}
	}
}
