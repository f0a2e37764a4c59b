//go:build integration

package mariadb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/internal/engine/enginetest"
)

// TestStartChangesNoDefinition: definitions right after a recovery are how MariaDB is
// damaged most easily (DESIGN.md, section 10), so none is ours.
func TestStartChangesNoDefinition(t *testing.T) {
	b := logBed(t, nil)
	for range 2 {
		p := b.Process(t)
		if err := p.Signal(killSignal); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
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
	err := withAdmin(t.Context(), b.Instance(), func(a *admin) error {
		rows, err := a.query(t.Context(), `SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS
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

// TestProbeOfOlderData: data from before the table has none, and the probe makes itself
// a schema, which is gone afterwards. So it does where a user broke the table.
func TestProbeOfOlderData(t *testing.T) {
	b := logBed(t, nil)
	t.Run("broken", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(b.Home().DataDir(), systemSchema, probeTable+".frm"), []byte("no table"), 0o600); err != nil {
			t.Fatal(err)
		}
		b.MustQuery(t, "FLUSH TABLES")
		if err := b.Driver.Probe(t.Context(), b.Instance(), b.Login().CAFile); err != nil {
			t.Error(err)
		}
	})
	b = logBed(t, nil)
	system := filepath.Join(b.Home().DataDir(), systemSchema)
	if err := os.Chmod(system, 0o700); err != nil {
		t.Fatal(err)
	}
	err := withAdmin(t.Context(), b.Instance(), func(a *admin) error { return a.exec(t.Context(), "DROP TABLE mysql."+probeTable) })
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(system, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := b.Driver.Probe(t.Context(), b.Instance(), b.Login().CAFile); err != nil {
		t.Fatal(err)
	}
	if made := definitions(t, b); !strings.Contains(made, "COM_CREATE_TABLE 1") {
		t.Errorf("it said %s, so this proves nothing", made)
	}
	if left := b.MustQuery(t, "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'rdsprobe%'"); left != "0" {
		t.Errorf("%s of its schemas are left", left)
	}
}
