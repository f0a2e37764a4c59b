//go:build integration

package postgres

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe/internal/engine/enginetest"
)

// pgaudit by a parameter group: its library is loaded, the master user creates the
// extension, statements and changes of the schema are in the server's log, and what the
// service says to the server is not.
func TestAudit(t *testing.T) {
	s := setup(t, enginetest.Reachable(t))
	s.Settings["shared_preload_libraries"] = "pg_stat_statements,pgaudit"
	s.Settings["pgaudit.log"] = "all"
	b := enginetest.NewBed(t, s)
	if !slices.Contains(b.Version.Extensions, "pgaudit") {
		t.Skipf("postgresql-%s-pgaudit is not installed", b.Version.Major())
	}
	b.Satisfy(t)
	for name, want := range map[string]string{"pgaudit.log": "all", "shared_preload_libraries": "pg_stat_statements,pgaudit"} {
		if got := b.MustQuery(t, "SHOW "+name); strings.ReplaceAll(got, " ", "") != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	for _, sql := range []string{
		"CREATE SCHEMA evil", "CREATE FUNCTION evil.upper(text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE ''ran as %'', current_user; END'",
		"CREATE EXTENSION pgaudit SCHEMA evil", "CREATE TABLE audited (n integer)", "ALTER TABLE audited ADD m integer", "INSERT INTO audited VALUES (4711)",
		"DROP TABLE audited", "SET pgaudit.log = 'ddl'",
	} {
		b.MustQuery(t, sql)
	}
	leavesNoRooms(t, b)
	driver, i := New(Config{}), instanceOf(b)
	for _, err := range []error{driver.EnsureMaster(t.Context(), i), driver.SetPassword(t.Context(), i), driver.Probe(t.Context(), i, b.Login().CAFile)} {
		if err != nil {
			t.Error(err)
		}
	}
	text := logged(t, b, "DROP TABLE audited")
	for _, want := range []string{",CREATE TABLE,TABLE,public.audited,", ",WRITE,INSERT,", "4711", ",DROP TABLE,TABLE,public.audited,"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the log", want)
		}
	}
	if strings.Contains(text, "SCRAM-SHA-256") {
		t.Error("the log holds a verifier")
	}
	b.MustQuery(t, "DROP EXTENSION pgaudit")
}

// logged waits until the server's logs have a text, and returns them.
func logged(t *testing.T, b *enginetest.Bed, want string) string {
	t.Helper()
	deadline := time.After(logTime)
	for {
		logs, err := filepath.Glob(filepath.Join(b.Home().LogDir(), "postgresql.log.*"))
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, path := range logs {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text += string(data)
		}
		if strings.Contains(text, want) {
			return text
		}
		select {
		case <-deadline:
			t.Fatalf("no %q in %v", want, logs)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// logTime is what the collector of the log may take.
const logTime = 20 * time.Second
