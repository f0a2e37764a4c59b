//go:build integration

package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"

	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
)

// narrow are settings that hinder whoever comes in: the last one fails for accounts of the
// service's alone, so that the clients of a test come in.
var narrow = map[string]string{
	"max_connections": "10", "max_user_connections": "1", "max_statement_time": "9", "autocommit": "0",
	"completion_type": "2", "net_write_timeout": "1", "max_session_mem_used": "4194304",
	"init_connect": "SELECT IF(USER() LIKE 'rds%', (SELECT 1 UNION SELECT 2), 1)",
}

// takePlaces takes every place that clients have, and returns their sessions.
func takePlaces(t *testing.T, b *enginetest.Bed) []*sql.Conn {
	t.Helper()
	db, err := open(b.Login())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	var all []*sql.Conn
	for {
		conn, err := db.Conn(t.Context())
		var refused *mysql.MySQLError
		if errors.As(err, &refused) && refused.Number == tooManyConnections {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, conn)
		if len(all) > 100 {
			t.Fatal("clients are never turned away")
		}
	}
}

// No setting that is meant for clients stops a session of the service's: followers, those who
// look at them, copies.
func TestServiceHasPlaces(t *testing.T) {
	s := setup(t, enginetest.Reachable(t))
	s.Settings = withAll(s.Settings, narrow)
	p := joinPair(t, pair{enginetest.NewBed(t, s), enginetest.NewBed(t, s)})
	p.writer.MustQuery(t, "ALTER USER master@'%' WITH MAX_USER_CONNECTIONS 50")
	taken := takePlaces(t, p.writer)
	if len(taken) != 10 {
		t.Errorf("%d clients come in where 10 may, whatever sessions the service has", len(taken))
	}

	inside(t, p.follower, "STOP SLAVE", "START SLAVE")
	for _, statement := range []string{"SET autocommit = 1", "INSERT INTO t VALUES (77, 'while all places are taken')"} {
		if _, err := taken[0].ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	awaitRow(t, p.follower, 77)

	i := p.writer.Instance()
	to := filepath.Join(t.TempDir(), "copy")
	if _, err := p.writer.Driver.(*Driver).copyByTool(t.Context(), i, engine.CopyRequest{Dir: to}); err != nil {
		t.Errorf("copy: %v", err)
	}
	if err := p.writer.Driver.Probe(t.Context(), i, p.writer.Login().CAFile); err != nil {
		t.Errorf("probe: %v", err)
	}
	lookedWith(t, i)

	// Places are given back, and no more of them.
	id, err := first(t.Context(), taken[9], "SELECT CONNECTION_ID()")
	if err == nil {
		_, err = taken[0].ExecContext(t.Context(), "KILL "+id)
	}
	if err != nil {
		t.Fatal(err)
	}
	awaitPlace(t, p.writer)
}

func withAll(maps ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range maps {
		for name, value := range m {
			all[name] = value
		}
	}
	return all
}

// lookedWith shows what a session of the service's has of the group's settings: nothing.
func lookedWith(t *testing.T, i engine.Instance) {
	t.Helper()
	db, err := replica.LookPool(i, i.Listens(), strconv.Itoa(i.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var got string
	err = db.QueryRowContext(t.Context(), "SELECT CONCAT_WS(' ', @@max_statement_time + 0, @@autocommit = 1, @@completion_type, @@net_write_timeout, @@max_session_mem_used)").Scan(&got)
	if want := "0.000000 1 NO_CHAIN 60 9223372036854775807"; err != nil || got != want {
		t.Errorf("its settings are %s, want %s: %v", got, want, err)
	}
}

func awaitPlace(t *testing.T, b *enginetest.Bed) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		_, err := b.Query(ctx, b.Login(), "SELECT 1")
		if err == nil {
			return
		}
		if guard.Pause(ctx, replica.PeerEvery) != nil {
			t.Fatalf("a place that is free again is not given: %v", err)
		}
	}
}
