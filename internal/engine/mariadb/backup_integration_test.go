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
	"kurabe/internal/volume"
)

// The guards are in the copy, and hold in what is restored from it.
func TestRestoredIsGuarded(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	b.MustQuery(t, "CREATE USER other@'%' IDENTIFIED BY 'Other-password-1'")
	id, _ := b.Take(t)
	for name := range guard.TriggerFiles() {
		if _, err := os.Stat(filepath.Join(b.Root, "snapshots", string(id), "data", conf.SystemSchema, name)); err != nil {
			t.Error(err)
		}
	}
	n := b.Restore(t, id)
	for _, statement := range []string{
		"UPDATE mysql.global_priv SET Priv = '{}'", "CREATE TABLE mysql.mine (n INT)", "INSERT INTO mysql.plugin VALUES ('a', 'b')",
	} {
		if _, err := n.Query(t.Context(), n.Login(), statement); err == nil {
			t.Errorf("%s: it is allowed", statement)
		}
	}
	if info, err := os.Stat(filepath.Join(n.Home().DataDir(), conf.SystemSchema)); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("the schema's folder: %v, %v", info, err)
	}
	if n.MustQuery(t, "SELECT @@server_id") == b.MustQuery(t, "SELECT @@server_id") {
		t.Error("both servers have one id")
	}
	login := n.Login()
	login.User, login.Password, login.Database = "other", "Other-password-1", ""
	if _, err := n.Query(t.Context(), login, "SELECT 1"); err != nil {
		t.Errorf("a user of the source: %v", err)
	}
}

// What a service that died has left goes with the next look, not before the one who
// holds it is dead.
func TestSweepCopy(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	i, driver := b.Instance(), b.Driver.(*Driver)
	w, err := driver.openCopy(t.Context(), i, 0)
	if err != nil {
		t.Fatal(err)
	}
	password := ""
	options, err := os.ReadFile(w.path(toolOptions))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(options)) {
		if value, found := strings.CutPrefix(line, `password = "`); found {
			password = strings.TrimSuffix(strings.TrimSpace(value), `"`)
		}
	}
	if info, err := os.Stat(w.path(toolOptions)); err != nil || info.Mode().Perm() != 0o600 || password == "" {
		t.Errorf("%v, %v, password %q", info, err, password)
	}
	if err := os.WriteFile(filepath.Join(w.path(copyData), "f"), make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	used, err := b.Home().Used()
	all, allErr := volume.UsedBytes(b.Home().Dir)
	if err != nil || allErr != nil || all-used < 4<<20 {
		t.Errorf("the copy counts as the instance's: %d of %d, %v, %v", used, all, err, allErr)
	}
	left := func() string { return b.MustQuery(t, b.LeftSQL) }
	if err := driver.SweepCopy(t.Context(), i); err != nil || left() != "1" {
		t.Errorf("a copy under way was swept: %s, %v", left(), err)
	}
	login := b.Login()
	login.User, login.Password, login.Database = w.name, "wrong", ""
	if _, err := b.Query(t.Context(), login, "SELECT 1"); err == nil {
		t.Error("its account has no password")
	}
	w.release() // as our death would
	if err := driver.SweepCopy(t.Context(), i); err != nil || left() != "0" {
		t.Errorf("left %s, %v", left(), err)
	}
	if _, err := os.Stat(w.dir); !os.IsNotExist(err) {
		t.Errorf("its folder: %v", err)
	}
}

// The account that snapshots are taken with may nothing that the master user may not.
func TestCopierIsNoWayUp(t *testing.T) {
	for right := range strings.SplitSeq(copierRights, ", ") {
		if !strings.Contains(", "+masterRights+", ", ", "+right+", ") {
			t.Errorf("%s is no right of the master user", right)
		}
	}
}

// The tool reaches data and target below folders that only root may enter.
func TestSnapshotOfBarredPath(t *testing.T) {
	root := filepath.Join(enginetest.Reachable(t), strings.Repeat("long-", 20), strings.Repeat("path-", 20))
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	b := enginetest.NewBed(t, setup(t, root))
	b.Satisfy(t)
	b.MustQuery(t, "CREATE TABLE kept (n integer)")
	id, _ := b.Take(t)
	b.Restore(t, id).MustQuery(t, "SELECT count(*) FROM kept")
}
