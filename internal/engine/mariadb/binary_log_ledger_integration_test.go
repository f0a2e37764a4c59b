//go:build integration

package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kurabe/internal/engine/enginetest"
)

// entry is a row of the ledger: when it was begun, and when it was acknowledged.
type entry struct{ begun, acked time.Time }

// book writes one row after the other.
type book struct {
	stop func()

	mu      sync.Mutex // guards entries and failure
	entries map[int]entry
}

func keepBook(t *testing.T, b *enginetest.Bed, first int) *book {
	t.Helper()
	db, err := open(b.Login())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	k := &book{entries: map[int]entry{}}
	var done sync.WaitGroup
	for w := range 2 {
		done.Go(func() {
			for n := first + w; ctx.Err() == nil; n += 2 {
				e := entry{begun: time.Now()}
				k.mu.Lock()
				k.entries[n] = e
				k.mu.Unlock()
				if k.write(ctx, db, n) != nil {
					return
				}
				k.mu.Lock()
				e.acked = time.Now()
				k.entries[n] = e
				k.mu.Unlock()
			}
		})
	}
	k.stop = func() {
		cancel()
		done.Wait()
		_ = db.Close()
	}
	return k
}

// until waits for entries that were acknowledged, and for a time.
func (k *book) until(t *testing.T, fewest int, at time.Time) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		acked := 0
		k.mu.Lock()
		for _, e := range k.entries {
			if !e.acked.IsZero() {
				acked++
			}
		}
		k.mu.Unlock()
		if acked >= fewest && time.Now().After(at) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the writers do not get on")
		}
		time.Sleep(time.Millisecond)
	}
}

func (k *book) write(ctx context.Context, db *sql.DB, n int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for half := range 2 {
		if _, err := tx.ExecContext(ctx, "INSERT INTO ledger VALUES (?, ?, RAND())", n, half); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// verify compares what is there with what must be at a moment: what was acknowledged
// before is, what was begun after until is not, and nothing is by half.
func verify(t *testing.T, n *enginetest.Bed, at, until time.Time, books ...*book) {
	t.Helper()
	db, err := open(n.Login())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT n, count(*) FROM ledger GROUP BY n")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	there := map[int]int{}
	for rows.Next() {
		var id, count int
		if err := rows.Scan(&id, &count); err != nil {
			t.Fatal(err)
		}
		there[id] = count
	}
	must := 0
	for _, k := range books {
		for id, e := range k.entries {
			switch count := there[id]; {
			case count != 0 && count != 2:
				t.Errorf("%d rows of %d", count, id)
			case count == 0 && !e.acked.IsZero() && !e.acked.After(at):
				t.Errorf("%d was acknowledged %v before, and is missing", id, at.Sub(e.acked))
			case count == 2 && e.begun.After(until):
				t.Errorf("%d was begun %v after, and is there", id, e.begun.Sub(until))
			}
			if !e.acked.IsZero() && !e.acked.After(at) {
				must++
			}
			delete(there, id)
		}
	}
	if len(there) > 0 {
		t.Errorf("rows that nobody wrote: %v", there)
	}
	t.Logf("%d entries must be there", must)
}

// crash ends the server under load, cleanly or not, and starts it again.
func (k *book) crash(t *testing.T, b *enginetest.Bed, s *stream, clean bool) {
	t.Helper()
	if clean {
		b.Want.Boot, b.Want.Generation = b.Want.Boot+1, b.Want.Generation+1
	} else {
		b.Crash(t)
	}
	b.Satisfy(t)
	k.stop()
	// Whatever is compared with this server is compared with whole transactions.
	if halves := b.MustQuery(t, "SELECT IFNULL(GROUP_CONCAT(x.n, ':', x.c), '') FROM (SELECT n, COUNT(*) AS c FROM ledger GROUP BY n HAVING c <> 2) AS x"); halves != "" {
		t.Fatalf("the server itself has half transactions after its end (orderly: %v): %s\n%s", clean, halves, saidBy(b))
	}
	s.reopen(t, b)
	s.mark(t)
}

// saidBy is what the server has said, its last part.
func saidBy(b *enginetest.Bed) string {
	names, _ := filepath.Glob(filepath.Join(b.Home().LogDir(), "*"))
	text := strings.Builder{}
	for _, name := range names {
		raw, _ := os.ReadFile(name)
		const most = 8 << 10
		fmt.Fprintf(&text, "%s:\n%s\n", filepath.Base(name), raw[max(0, len(raw)-most):])
	}
	return text.String()
}
