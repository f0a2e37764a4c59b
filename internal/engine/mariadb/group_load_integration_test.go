//go:build integration

package mariadb

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// Each client numbers its rows from its own thousand thousands on.
const (
	loadClients = 8
	loadTime    = 2 * time.Second
	loadFirst   = 1_000_000
)

// Under load, with a writer that dies at some moment: whatever was acknowledged is in the
// server that takes over, and the former writer becomes its follower.
func TestGroupLosesNothing(t *testing.T) {
	p := newPair(t)
	p.waitForFollower(t)
	db, err := open(p.writer.Login())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	acknowledged := make([]int, loadClients)
	var clients sync.WaitGroup
	for c := range loadClients {
		clients.Go(func() {
			for n := 0; ; n++ {
				if _, err := db.ExecContext(ctx, "INSERT INTO t VALUES (?, 'load')", (c+1)*loadFirst+n); err != nil {
					return
				}
				acknowledged[c]++
			}
		})
	}
	if err := pause(t.Context(), loadTime); err != nil {
		t.Fatal(err)
	}
	p.writer.Crash(t)
	stop()
	clients.Wait()
	began := time.Now()
	p.promote(t)
	t.Logf("promoted in %v, after %v rows", time.Since(began), acknowledged)
	for c, want := range acknowledged {
		first := (c + 1) * loadFirst
		got := p.follower.MustQuery(t, fmt.Sprintf("SELECT COUNT(*) FROM t WHERE id >= %d AND id < %d", first, first+want))
		if got != fmt.Sprint(want) {
			t.Errorf("client %d: %s rows of %d that were acknowledged", c, got, want)
		}
	}
	p.follower.MustQuery(t, "INSERT INTO t VALUES (600, 'of the new writer')")
	p.rejoin(t)
	awaitRow(t, p.writer, 600)
	same := "SELECT COUNT(*), SUM(id) FROM shop.t"
	if a, b := inside(t, p.writer, same), inside(t, p.follower, same); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("the former writer has %v, the new one %v", a, b)
	}
}
