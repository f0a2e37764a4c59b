//go:build integration

package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine/enginetest"
)

// unacknowledged is how long a commit is watched that must not end.
const unacknowledged = 2 * time.Second

// impostor is a session of the master user that calls itself as a follower does.
func (g *group) impostor(t *testing.T, n int, params map[string]string) (*pgx.Conn, error) {
	t.Helper()
	login := g.bed.Login()
	login.Address = g.m[n].Listens()
	config, err := clientConfig(login)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = memberName(g.m[0].Instance.Owner(), g.m[1].Instance)
	for name, value := range params {
		config.RuntimeParams[name] = value
	}
	return pgx.ConnectConfig(t.Context(), config)
}

// Whoever may replicate has the whole data folder, and whoever is taken for a follower
// acknowledges commits that no other server has. The master user is neither, whatever it calls
// itself, and what it does to the service's followers does nothing to them.
func TestAttackReplication(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	slot := memberName(g.m[0].Instance.Owner(), g.m[1].Instance)
	g.write(t, 0, g.m[1].Instance)
	g.follows(t, 1)

	for name, params := range map[string]map[string]string{
		"the whole server": {"replication": "true"},
		"one database":     {"replication": "database"},
	} {
		conn, err := g.impostor(t, 0, params)
		if err != nil {
			continue
		}
		for _, command := range []string{
			"BASE_BACKUP (LABEL 'evil')", "START_REPLICATION SLOT " + slot + " PHYSICAL 0/0", "START_REPLICATION PHYSICAL 0/0",
			"CREATE_REPLICATION_SLOT evil PHYSICAL", "DROP_REPLICATION_SLOT " + slot, "TIMELINE_HISTORY 1",
		} {
			if _, err := conn.PgConn().Exec(t.Context(), command).ReadAll(); err == nil {
				t.Errorf("%s: %s works", name, command)
			}
		}
		closeConn(t.Context(), conn)
		t.Errorf("%s: the master user comes in to replicate", name)
	}

	quoted := quoteLiteral(slot)
	for _, sql := range []string{
		"SELECT pg_drop_replication_slot(" + quoted + ")",
		"SELECT pg_replication_slot_advance(" + quoted + ", pg_current_wal_lsn())",
		"SELECT pg_copy_physical_replication_slot(" + quoted + ", 'evil')",
		"SELECT pg_create_physical_replication_slot('evil', true)",
		"SELECT pg_create_logical_replication_slot('evil', 'test_decoding')",
		"SELECT pg_create_logical_replication_slot('evil', 'pgoutput')",
		"SELECT pg_logical_slot_get_changes(" + quoted + ", NULL, NULL)",
		"SELECT pg_drop_replication_slot('kurabe_log')",
		"SET synchronous_standby_names = ''",
		"ALTER SYSTEM SET synchronous_standby_names = ''",
		"ALTER ROLE master SET synchronous_standby_names = ''",
		"ALTER DATABASE shop SET synchronous_standby_names = ''",
		"ALTER ROLE master REPLICATION", "CREATE ROLE evil REPLICATION", "CREATE ROLE evil LOGIN REPLICATION IN ROLE rds_superuser",
		"CREATE SUBSCRIPTION evil CONNECTION 'host=127.0.0.1' PUBLICATION p WITH (connect = false)",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_replication", "SELECT pg_cancel_backend(pid) FROM pg_stat_replication",
		"SELECT pg_promote()", "SELECT pg_replication_origin_create('evil')",
	} {
		_, err := g.client(t.Context(), 0, sql)
		if code, _, _ := strings.Cut(refusal(err), " "); err == nil || code != "42501" && code != "55P02" && code != "22023" && code != "55000" {
			t.Errorf("%s: %v", sql, err)
		}
	}
	g.follows(t, 1)

	g.impostorAcknowledgesNothing(t)
}

// impostorAcknowledgesNothing has the follower hang, and a session in its name beside it.
func (g *group) impostorAcknowledgesNothing(t *testing.T) {
	t.Helper()
	thaw := g.freeze(t, 1)
	for n := range 3 {
		conn, err := g.impostor(t, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer closeConn(context.Background(), conn)
		if _, err := conn.Exec(t.Context(), fmt.Sprintf("SELECT %d", n)); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() {
		_, err := g.client(t.Context(), 0, "INSERT INTO ledger VALUES (1, 'impostor')")
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("the commit was acknowledged while its only follower hung: %v", err)
	case <-time.After(unacknowledged):
	}
	thaw()
	if err := <-done; err != nil {
		t.Errorf("the commit after the follower came back: %v", err)
	}
	g.has(t, 1, 1)
}
