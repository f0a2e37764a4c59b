//go:build integration

package proxy

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestPostgresTakesTurns: clients with different settings that wait for one connection each get
// it for a statement, and not only for setting what they have set.
func TestPostgresTakesTurns(t *testing.T) {
	x := start(t, server(t), 1, nil)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			name := fmt.Sprint("turn", n)
			c := x.connect(t, func(o *pgx.ConnConfig) { simple(o); o.RuntimeParams["application_name"] = name })
			for range 50 {
				if got := show(t, c, "application_name"); got != name {
					t.Errorf("%q instead of %q", got, name)
				}
			}
		})
	}
	all.Wait()
}

// TestPostgresStops: clients between transactions are ended at once, one in a transaction when it
// ends.
func TestPostgresStops(t *testing.T) {
	x := start(t, server(t), 2, nil)
	idle, within := x.connect(t, simple), x.connect(t, simple)
	exec(t, within, "BEGIN")
	left := make(chan struct{})
	x.Do(func() { x.Frontend.Stop(func() { close(left) }) })
	if _, err := idle.Exec(deadline(t), "SELECT 1"); err == nil {
		t.Error("an idle client goes on")
	}
	if got := one[int](t, within, "SELECT 7"); got != 7 {
		t.Error(got)
	}
	exec(t, within, "COMMIT")
	<-left
}
