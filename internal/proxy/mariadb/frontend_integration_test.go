//go:build integration

package mariadb

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestManyClientsShareOneConnection runs text and prepared statements and transactions of
// many clients on one connection to the server.
func TestManyClientsShareOneConnection(t *testing.T) {
	b := newBed(t, 1)
	setup := b.open("")
	must(t, setup, "DROP TABLE IF EXISTS account", "CREATE TABLE account (id INT PRIMARY KEY, amount INT)", "INSERT INTO account VALUES (1, 0)")
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			db := b.open(fmt.Sprintf("interpolateParams=%v", n%2 == 0))
			for i := range 20 {
				var got int
				if err := db.QueryRow("SELECT ? + 1", n*100+i).Scan(&got); err != nil || got != n*100+i+1 {
					t.Errorf("client %d: %d, %v", n, got, err)
					return
				}
				tx, err := db.Begin()
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := tx.Exec("UPDATE account SET amount = amount + 1 WHERE id = ?", 1); err != nil {
					t.Error(err)
				}
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := value(t, setup, "SELECT amount FROM account"); got != "160" {
		t.Errorf("amount %s", got)
	}
	if n := b.pins(); n != 0 {
		t.Errorf("%d pins", n)
	}
	var stats = struct{ servers int }{}
	b.on(func() { stats.servers = b.pool.Stats().Servers })
	if stats.servers != 1 {
		t.Errorf("%d connections", stats.servers)
	}
}

func TestLargeResultsAndParameters(t *testing.T) {
	b := newBed(t, 2) // a long statement pins
	db, prepared := b.open("maxAllowedPacket=0&interpolateParams=true"), b.open("maxAllowedPacket=0")
	for _, size := range []int{1, 1000, 20_000, 40_000, 70_000, 1 << 20, 16<<20 - 60, 17 << 20, 33 << 20} {
		if got := value(t, db, fmt.Sprintf("SELECT REPEAT('x', %d)", size)); len(got) != size {
			t.Errorf("%d bytes instead of %d", len(got), size)
		}
		text := strings.Repeat("y", size)
		if got := value(t, db, "SELECT LENGTH(?)", text); got != fmt.Sprint(size) {
			t.Errorf("text: %s instead of %d", got, size)
		}
		if got := value(t, prepared, "SELECT ?", text); got != text {
			t.Errorf("prepared: %d bytes instead of %d", len(got), size)
		}
	}
	rows, err := db.Query("SELECT seq, REPEAT('z', 100) FROM shop.seq_1_to_200000 FETCH FIRST 200000 ROWS ONLY")
	if err != nil {
		rows, err = db.Query("WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i+1 FROM n WHERE i<900) SELECT a.i, REPEAT('z',100) FROM n a, n b LIMIT 200000")
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rows.Next() {
		n++
	}
	if rows.Err() != nil || n != 200000 {
		t.Errorf("%d rows, %v", n, rows.Err())
	}
}
