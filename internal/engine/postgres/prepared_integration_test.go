//go:build integration

package postgres

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
)

// A server that ends for a setting says so, though no list has its words; and a change of the
// setting alone brings it back.
func TestPreparedTransactionsNeedRoom(t *testing.T) {
	s := setup(t, enginetest.Reachable(t))
	b := enginetest.NewBed(t, s)
	b.Set(map[string]string{"max_prepared_transactions": "5"})
	b.Satisfy(t)
	b.MustQuery(t, "CREATE TABLE t (n integer)")
	prepareAll(t, b, "a", "b")
	id, _ := b.Take(t)
	b.Set(map[string]string{"max_prepared_transactions": "1"})
	b.Want.Boot++
	err := b.TrySatisfy(t.Context())
	var refused *engine.StartError
	if !errors.As(err, &refused) || refused.Kind != kurabe.FailureParameters || !strings.Contains(refused.Message, "prepared transactions") {
		t.Fatalf("it says %v", err)
	}
	b.Set(map[string]string{"max_prepared_transactions": "5"})
	b.Want.Boot++
	b.Satisfy(t)
	if n := b.MustQuery(t, "SELECT count(*) FROM pg_prepared_xacts"); n != "2" {
		t.Errorf("%s are left", n)
	}
	t.Run("restored", func(t *testing.T) { restoresPrepared(t, b, id) })
}

// restoresPrepared: what is restored comes up with what its source had, though its own parameters
// say less, and only its next start has to do with those.
func restoresPrepared(t *testing.T, b *enginetest.Bed, id kurabe.SnapshotID) {
	before := b.Want.Settings
	b.Want.Settings = map[string]string{}
	maps.Copy(b.Want.Settings, before)
	b.Want.Settings["max_prepared_transactions"] = "0"
	defer func() { b.Want.Settings = before }()
	n := b.Restore(t, id)
	if got := n.MustQuery(t, "SELECT count(*) FROM pg_prepared_xacts"); got != "2" {
		t.Errorf("%s are restored", got)
	}
	n.Want.Boot, n.Want.Generation = n.Want.Boot+1, n.Want.Generation+1
	err := n.TrySatisfy(t.Context())
	var refused *engine.StartError
	if !errors.As(err, &refused) || refused.Kind != kurabe.FailureParameters {
		t.Fatalf("its next start says %v", err)
	}
	n.Set(map[string]string{"max_prepared_transactions": "5"})
	n.Want.Boot++
	n.Satisfy(t)
}

func prepareAll(t *testing.T, b *enginetest.Bed, gids ...string) {
	t.Helper()
	config, err := clientConfig(b.Login())
	if err != nil {
		t.Fatal(err)
	}
	for _, gid := range gids {
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{"BEGIN", "INSERT INTO t VALUES (1)", "PREPARE TRANSACTION '" + gid + "'"} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		closeConn(t.Context(), conn)
	}
}
