//go:build integration

package mariadb

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
)

// Backups that are clones are verified like others.
func TestVerifyCloned(t *testing.T) {
	enginetest.RunVerify(t, setup(t, enginetest.LoopXFS(t, enginetest.Reachable(t))), enginetest.Damage{
		Table: indexPlace("rows_kept", "PRIMARY"), Index: indexPlace("ledger", "by_half"), Says: []string{"shop.ledger: ", "by_half"},
	})
}

// A client that holds a table for long is not waited for beyond a bound, nor is anybody
// else because of it; one that lets go in time only delays the clone.
func TestCloneOfBusyServer(t *testing.T) {
	b := cloneBed(t, nil)
	b.MustQuery(t, "CREATE TABLE held (n INT) ENGINE=MyISAM")
	b.MustQuery(t, "CREATE TABLE other (n INT) ENGINE=MyISAM")
	db, err := open(b.Login())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	holder, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	lock(t, holder, "LOCK TABLES held WRITE")
	ctx, stop := context.WithCancel(t.Context())
	longest := make(chan time.Duration, 1)
	go func() { longest <- insertAlways(ctx, db) }()

	dir := filepath.Join(b.Root, "busy")
	_, _, err = cloneRunning(t.Context(), b.Instance(), engine.CopyRequest{Dir: dir})
	if !inTheWay(err) {
		t.Errorf("of a server that is held: %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("something is left: %v", err)
	}
	stop()
	if waited := <-longest; waited == 0 || waited > 2*time.Second {
		t.Errorf("another client waited %v", waited)
	} else {
		t.Logf("another client waited %v at the most", waited.Round(time.Millisecond))
	}

	// This one lets go between two tries.
	release := time.AfterFunc(time.Second, func() { _, _ = holder.ExecContext(context.Background(), "UNLOCK TABLES") })
	defer release.Stop()
	begin := time.Now()
	if _, _, err := cloneRunning(t.Context(), b.Instance(), engine.CopyRequest{Dir: dir}); err != nil || time.Since(begin) < 500*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
	// A transaction that is open is in nobody's way.
	b.MustQuery(t, "CREATE TABLE open (n INT) ENGINE=InnoDB")
	lock(t, holder, "START TRANSACTION")
	lock(t, holder, "INSERT INTO open VALUES (1)")
	if _, facts := b.Take(t); facts.Method != "clone" {
		t.Errorf("%+v", facts)
	}
}

func lock(t *testing.T, conn *sql.Conn, statement string) {
	t.Helper()
	if _, err := conn.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// insertAlways returns the longest that a statement has taken.
func insertAlways(ctx context.Context, db *sql.DB) time.Duration {
	var longest time.Duration
	for ctx.Err() == nil {
		begun := time.Now()
		if _, err := db.ExecContext(ctx, "INSERT INTO other VALUES (1)"); err == nil {
			longest = max(longest, time.Since(begun))
		}
	}
	return longest
}
