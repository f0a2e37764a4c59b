//go:build integration

package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/proc"
)

// TestSecludedServer runs programs as the superuser of a server that looks at a copy, as a
// tenant's code that got so far would: they see nothing of the host and of other instances,
// and end with the server, wherever they have gone.
func TestSecludedServer(t *testing.T) {
	b := enginetest.Serving(t, setup(t, enginetest.Reachable(t)))
	if b.User == nil {
		t.Skip("needs root")
	}
	i, data := b.CopyBeside(t)
	witness := filepath.Join(b.Root, "witness")
	if err := os.WriteFile(witness, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	ran := false
	visit := func(ctx context.Context, p *private, conn *pgx.Conn) error {
		run := func(program string) error {
			_, err := conn.Exec(ctx, "COPY (SELECT 1) TO PROGRAM "+quoteLiteral(program))
			return err
		}
		for _, a := range enginetest.SecludedAttacks(witness, b) {
			if err := run(a.Script); err == nil {
				t.Errorf("%s: a program of the copy's server can: %s", a.Name, a.Script)
			}
		}
		if err := run("cat >/dev/null; test $(id -u) = " + fmt.Sprint(i.User.UID) + " && test $(ls /tmp | wc -l) -lt 2"); err != nil {
			t.Errorf("no program runs at all, so the test says nothing: %v", err)
		}
		ran = true
		return run(enginetest.Daemon)
	}
	if err := (b.Driver.(*Driver)).recoverSnapshot(t.Context(), i, data, visit); err != nil || !ran {
		t.Fatalf("%v, %v", ran, err)
	}
	if left, err := proc.Owned(i.User.UID); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
