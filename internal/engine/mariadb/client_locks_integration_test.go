//go:build integration

package mariadb

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
)

// Locks of clients end a copy within a bound, by an error that says whose fault it is, and
// the next try is as any other.
func TestClientsHoldLocks(t *testing.T) {
	const most = 45 * time.Second
	b := enginetest.Serving(t, setup(t, enginetest.Reachable(t)))
	b.MustQuery(t, "CREATE TABLE t (a INT)")
	for name, lock := range map[string]string{
		"FLUSH TABLES WITH READ LOCK": "FLUSH TABLES WITH READ LOCK",
		"LOCK TABLES … WRITE":         "LOCK TABLES t WRITE",
	} {
		t.Run(name, func(t *testing.T) {
			db := masterPool(t, b)
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.ExecContext(t.Context(), lock); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			began := time.Now()
			_, err = b.Driver.CopyRunning(ctx, b.Instance(), engine.CopyRequest{Dir: filepath.Join(b.Root, "held")})
			if !errors.Is(err, engine.ErrHeld) || time.Since(began) > most {
				t.Fatalf("after %s: %v", time.Since(began), err)
			}
			if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
				t.Fatal(err)
			}
			b.Take(t)
		})
	}
}
