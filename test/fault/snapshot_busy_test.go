//go:build fault

package fault

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// TestSnapshotOfABusyServer: tables come and go and checkpoints are made while one
// snapshot is taken, and the server is killed in the middle of another. One that is
// available can be restored; the killed one is taken again, or fails.
func TestSnapshotOfABusyServer(t *testing.T) {
	t.Parallel()
	// Where files are copied, slow enough for a death in the middle.
	o := harness.Options{Args: []string{"--copy-rate", "48"}}
	onFileSystems(t, o, func(t *testing.T, s *harness.Service, engine string, clones bool) {
		b := newSnapshotBed(t, s, engine)
		fewest := 3
		if clones {
			fewest = 1 // it is over within the time of one or two
		}
		stop := b.changeTables(t)
		if err := b.take(t, "while-tables-change"); err != nil {
			t.Fatal(err)
		}
		b.settled(t, "while-tables-change")
		if changes := stop(); changes < fewest {
			t.Errorf("only %d tables were made meanwhile", changes)
		}
		r := b.restore(t, "while-tables-change", "changed-"+engine)
		r.i.WaitStatus(t, "available")
		checkTables(t, r.i)
		b.exact(t, r)

		if err := b.take(t, "killed"); err != nil {
			t.Fatal(err)
		}
		b.waitCopying(t)
		if err := syscall.Kill(b.i.Server(t), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		state := b.reaches(t, "killed", "available", "failed")
		b.most["killed"] = 1 << 30 // errors at the source leave gaps in its numbers
		b.ledger.WaitMore(t, 3)
		b.i.WaitStatus(t, "available")
		b.ledger.Stop()
		b.ledger.Verify(t)
		b.clean(t)
		if state == "available" {
			b.holds(t, "killed")
		} else if why := b.why(t, "killed"); !strings.Contains(why, "fail") {
			t.Errorf("it failed, and the reason is %q", why)
		}
		t.Logf("the snapshot whose server was killed is %s", state)
		for _, name := range []string{"killed", "while-tables-change"} {
			if err := b.remove(t, name); err != nil {
				t.Fatal(err)
			}
			b.gone(t, name)
		}
		b.i.Delete(t)
		noOrphans(t, s)
	})
}

// waitCopying waits until the copying has begun, by whoever does it.
func (b *snapshotBed) waitCopying(t *testing.T) {
	t.Helper()
	before := len(b.halves())
	harness.Wait(t, settleTime, "some of it is copied", func() string {
		tool, _ := filepath.Glob(filepath.Join(b.i.Home(), "copy", "*")) // the pattern is well formed
		if len(b.halves()) > before || len(tool) > 0 {
			return ""
		}
		return "nothing is"
	})
}

// holds restores a snapshot and demands every row that was acknowledged before it
// was asked for.
func (b *snapshotBed) holds(t *testing.T, name string) {
	t.Helper()
	r := b.restore(t, name, "after-the-kill")
	r.i.WaitStatus(t, "available")
	want := fmt.Sprint(b.least[name])
	if got := r.i.Query(t, "SELECT count(*) FROM ledger WHERE n <= "+want); got != want {
		t.Errorf("it has %s of the %s rows that were acknowledged before it was asked for", got, want)
	}
	r.i.Delete(t)
}

// rowsEach are in every table that changeTables makes.
const rowsEach = 100

// changeTables makes, fills and drops tables, with a checkpoint in between, until
// the returned function is called, which tells how many there were.
func (b *snapshotBed) changeTables(t *testing.T) (stop func() int) {
	t.Helper()
	session := b.i.Open(t)
	ctx, cancel := context.WithCancel(context.Background())
	made, failure, done := 0, error(nil), make(chan struct{})
	statements := map[string][]string{
		"postgres": {"CREATE TABLE made_%d AS SELECT generate_series(1, 100) AS n", "CREATE INDEX ON made_%d (n)", "CHECKPOINT"},
		"mariadb":  {"CREATE TABLE made_%d (PRIMARY KEY (n)) ENGINE=InnoDB AS SELECT seq AS n FROM seq_1_to_100", "ALTER TABLE made_%d ADD m int", "FLUSH TABLES made_%d"},
	}[b.i.Engine]
	go func() {
		defer close(done)
		for ctx.Err() == nil && failure == nil {
			for _, s := range statements {
				if strings.Contains(s, "%d") {
					s = fmt.Sprintf(s, made)
				}
				if failure = session.Exec(context.Background(), s); failure != nil {
					return
				}
			}
			if made%2 == 1 {
				failure = session.Exec(context.Background(), fmt.Sprintf("DROP TABLE made_%d", made))
			}
			made++
			harness.Pause(ctx, tablePause)
		}
	}()
	return func() int {
		cancel()
		<-done
		if failure != nil {
			t.Errorf("while tables change: %v", failure)
		}
		return made
	}
}

// tablePause keeps the changing of tables from being the load of a test.
const tablePause = 50 * time.Millisecond

// checkTables demands that a table which is there is whole.
func checkTables(t *testing.T, i *harness.Instance) {
	t.Helper()
	session := i.Open(t)
	schema := map[string]string{"postgres": "'public'", "mariadb": "database()"}[i.Engine]
	tables, err := session.Rows(t.Context(), "SELECT table_name FROM information_schema.tables WHERE table_schema = "+schema+" AND table_name LIKE 'made%'")
	if err != nil || len(tables) == 0 {
		t.Fatalf("tables %v, %v", tables, err)
	}
	for _, name := range tables {
		rows, err := session.Rows(t.Context(), "SELECT count(n) FROM "+name)
		if err != nil || rows[0] != fmt.Sprint(rowsEach) {
			t.Errorf("table %s: %v, %v", name, rows, err)
		}
	}
}
