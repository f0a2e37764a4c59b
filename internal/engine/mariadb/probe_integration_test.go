//go:build integration

package mariadb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
)

// TestStartChangesNoDefinition: definitions right after a recovery are how MariaDB is
// damaged most easily (DESIGN.md, section 10), so none is ours.
func TestStartChangesNoDefinition(t *testing.T) {
	b := logBed(t, nil)
	for range 2 {
		b.Crash(t)
		b.Satisfy(t)
		if made := definitions(t, b); made != "" {
			t.Errorf("a start and a probe said %s", made)
		}
	}
	if word := b.MustQuery(t, "SELECT word FROM mysql.rds_probe"); !probeForm.MatchString(word) {
		t.Errorf("the probe wrote %q", word)
	}
}

// definitions are the statements since the start that define what InnoDB keeps.
func definitions(t *testing.T, b *enginetest.Bed) string {
	t.Helper()
	var said []string
	err := guard.With(t.Context(), b.Instance(), func(a *guard.Session) error {
		rows, err := a.Query(t.Context(), `SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS
 WHERE VARIABLE_NAME REGEXP '^COM_(CREATE|DROP|ALTER|TRUNCATE|RENAME)' AND VARIABLE_NAME NOT REGEXP '_(USER|ROLE)$' AND VARIABLE_VALUE > 0`)
		for _, row := range rows {
			said = append(said, strings.Join(row, " "))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(said, ", ")
}

// TestProbeWithoutItsTable: data from before the table has none, and a user can break it.
// The probe makes itself a schema then, which is gone afterwards.
func TestProbeWithoutItsTable(t *testing.T) {
	for name, statement := range map[string]string{
		"older data": "DROP TABLE mysql." + conf.ProbeTable,
		"broken":     "ALTER TABLE mysql." + conf.ProbeTable + " DISCARD TABLESPACE",
	} {
		t.Run(name, func(t *testing.T) {
			b := logBed(t, nil)
			openly(t, b, statement)
			if err := b.Driver.Probe(t.Context(), b.Instance(), b.Login().CAFile); err != nil {
				t.Fatal(err)
			}
			if made := definitions(t, b); !strings.Contains(made, "COM_CREATE_TABLE 1") {
				t.Errorf("it said %s, so this proves nothing", made)
			}
			if left := b.MustQuery(t, "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'rdsprobe%'"); left != "0" {
				t.Errorf("%s of its schemas are left", left)
			}
		})
	}
}

// openly runs a statement while the folder of the system schema is open.
func openly(t *testing.T, b *enginetest.Bed, statement string) {
	t.Helper()
	system := filepath.Join(b.Home().DataDir(), conf.SystemSchema)
	if err := os.Chmod(system, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := guard.With(t.Context(), b.Instance(), func(a *guard.Session) error { return a.Exec(t.Context(), statement) }); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(system, 0o500); err != nil {
		t.Fatal(err)
	}
}
