//go:build integration

package postgres

import (
	"fmt"
	"strings"
	"testing"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/postgres/parameter"
)

// Of each parameter of the real server somebody has said whether it is a user's, and
// of each text that is, why it is harmless.
func TestEveryParameterIsLookedAt(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	catalog, err := b.Driver.ReadCatalog(t.Context(), b.Request())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range catalog.Parameters {
		switch {
		case p.Fixed == parameter.WhyUnseen:
			t.Errorf("%s: is it a user's? (%s, %s)", p.Name, p.Type, p.Description)
		case p.Modifiable && p.Type == "string" && p.Allowed == "" && parameter.Free[p.Name] == "":
			t.Errorf("%s takes any text without a reason", p.Name)
		}
	}
	if _, known := catalog.Find("extension_destdir"); !known {
		t.Log("this server is not Debian's: no extension_destdir")
	}
}

// What is not the group's to set is not the master user's by SQL either: no text of
// the superuser's or the server's, in any of the ways that a value can be set.
func TestMasterSetsNoText(t *testing.T) {
	b := running(t)
	ways := []string{
		"SET %s = 'x'", "ALTER ROLE master SET %s = 'x'", "ALTER ROLE ALL SET %s = 'x'", "ALTER DATABASE shop SET %s = 'x'",
		"ALTER SYSTEM SET %s = 'x'", "GRANT SET ON PARAMETER %s TO master", "GRANT ALTER SYSTEM ON PARAMETER %s TO master",
		"SELECT set_config('%s', 'x', false)", "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql SET %s = 'x' AS 'SELECT 1'",
	}
	names := b.MustQuery(t, `SELECT string_agg(name, ',') FROM pg_settings WHERE vartype = 'string' AND context <> 'user'
		AND NOT has_parameter_privilege('master', name, 'SET')`)
	names += ",config_file,data_directory,hba_file,ident_file,plperl.on_init"
	tried := strings.Split(names, ",")
	if len(tried) < 40 {
		t.Fatalf("%d parameters", len(tried))
	}
	for _, name := range tried {
		for _, way := range ways {
			// Of a module that is not loaded the server keeps any value, and refuses it when the module comes.
			if strings.Contains(name, "plperl.") && !strings.Contains(way, "SYSTEM") && !strings.Contains(way, "GRANT") {
				continue
			}
			statement := fmt.Sprintf(way, name)
			if _, err := query(t.Context(), b.Login(), statement); err == nil {
				t.Errorf("%s: allowed", statement)
			} else if code, _, _ := strings.Cut(refusal(err), " "); code != "42501" && code != "55P02" {
				t.Errorf("%s: refused for another reason: %v", statement, err)
			}
		}
	}
}
