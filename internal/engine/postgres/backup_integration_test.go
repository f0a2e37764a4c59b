//go:build integration

package postgres

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/engine/enginetest"
)

// verify asks PostgreSQL's own tool, which also reads the log that the copy needs.
func verify(t *testing.T, b *enginetest.Bed, id kurabe.SnapshotID) (string, bool) {
	t.Helper()
	tool := filepath.Join("/usr/lib/postgresql", b.Version.Major(), "bin", "pg_verifybackup")
	if _, err := os.Stat(tool); err != nil {
		t.Skip(err)
	}
	out, err := exec.Command(tool, "--exit-on-error", filepath.Join(b.Root, "snapshots", string(id), "data")).CombinedOutput()
	return string(out), err == nil
}

// A snapshot is a base backup as PostgreSQL means it: sealed or not, of a running
// server or a stopped one.
func TestSnapshotIsABaseBackup(t *testing.T) {
	b := running(t)
	b.MustQuery(t, "CREATE TABLE kept AS SELECT generate_series(1, 100000) AS n")
	live, _ := b.Take(t)
	b.Want.Goal = kurabe.GoalStopped
	b.Satisfy(t)
	stopped, _ := b.Take(t)
	for what, id := range map[string]kurabe.SnapshotID{"of the running server": live, "of the stopped server": stopped} {
		if said, ok := verify(t, b, id); !ok {
			t.Errorf("%s: %s", what, said)
		}
		if err := b.Snapshots().Seal(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if said, ok := verify(t, b, id); !ok {
			t.Errorf("%s, sealed: %s", what, said)
		}
		path := filepath.Join(b.Root, "snapshots", string(id), "data", "global", "pg_control")
		control, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		control[len(control)-1] ^= 1
		if err := os.WriteFile(path, control, 0o600); err != nil {
			t.Fatal(err)
		}
		if said, ok := verify(t, b, id); ok || !strings.Contains(said, "checksum mismatch") {
			t.Errorf("%s, with a bit turned: %v %s", what, ok, said)
		}
	}
}

// What ALTER SYSTEM and hand-made files said in the source ends with it.
func TestRestoredObeysItsOwnSettings(t *testing.T) {
	b := running(t)
	path := filepath.Join(b.Home().DataDir(), "postgresql.auto.conf")
	if err := os.WriteFile(path, []byte("work_mem = '77MB'\nport = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id, _ := b.Take(t)
	n := b.Restore(t, id)
	if got := n.MustQuery(t, "SHOW work_mem"); got == "77MB" {
		t.Error("a setting of the source rules the restored instance")
	}
	if got := n.MustQuery(t, "SELECT pg_is_in_recovery()"); got != "false" {
		t.Errorf("in recovery: %s", got)
	}
	if _, err := os.Stat(filepath.Join(n.Home().DataDir(), "backup_label")); err == nil {
		t.Error("the server has not recovered from its label")
	}
}
