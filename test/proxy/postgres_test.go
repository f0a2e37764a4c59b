//go:build integration

package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestPostgresSharesOneConnection has many clients prepare, fail and stream through one.
func TestPostgresSharesOneConnection(t *testing.T) {
	x := start(t, server(t), 1, nil)
	modes := []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol}
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			c := x.connect(t, func(o *pgx.ConnConfig) { o.DefaultQueryExecMode = modes[n%len(modes)] })
			for i := range 20 {
				if got := one[int](t, c, "SELECT $1::int * 2", n*i); got != n*i*2 {
					t.Errorf("client %d: got %d", n, got)
				}
				if _, err := c.Exec(deadline(t), "SELECT 1/$1::int", 0); !is(err, "22012") {
					t.Errorf("client %d: %v", n, err)
				}
				tx, err := c.Begin(deadline(t))
				if err != nil {
					t.Error(err)
					return
				}
				var text string
				if err := tx.QueryRow(deadline(t), "SELECT repeat('x', $1)", 1000*i).Scan(&text); err != nil || len(text) != 1000*i {
					t.Errorf("client %d: %d bytes, %v", n, len(text), err)
				}
				if err := tx.Rollback(deadline(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	x.Do(func() {
		if s := x.Pool.Stats(); s.Servers > 1 || s.Borrowed > 0 || s.Opened != 1 {
			t.Errorf("connections: %+v", s)
		}
	})
	if strings.Contains(x.log.String(), "not understood") || strings.Contains(x.log.String(), "pinned") {
		t.Error(x.log.String())
	}
}

func is(err error, code string) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code == code
}

// TestPostgresStreams moves more than any buffer holds, both ways.
func TestPostgresStreams(t *testing.T) {
	x := start(t, server(t), 1, nil)
	c := x.connect(t, nil)
	exec(t, c, "DROP TABLE IF EXISTS streams")
	exec(t, c, "CREATE TABLE streams (n int, body text)")
	const rows = 50_000
	body := strings.Repeat("0123456789", 40)
	n, err := c.CopyFrom(deadline(t), pgx.Identifier{"streams"}, []string{"n", "body"}, pgx.CopyFromSlice(rows, func(i int) ([]any, error) { return []any{i, body}, nil }))
	if err != nil || n != rows {
		t.Fatalf("%d rows, %v", n, err)
	}
	var out bytes.Buffer
	if _, err := c.PgConn().CopyTo(deadline(t), &out, "COPY streams TO STDOUT"); err != nil || bytes.Count(out.Bytes(), []byte("\n")) != rows {
		t.Fatalf("%d bytes, %v", out.Len(), err)
	}
	_, err = c.CopyFrom(deadline(t), pgx.Identifier{"streams"}, []string{"n", "body"}, pgx.CopyFromFunc(func() ([]any, error) { return nil, fmt.Errorf("enough") }))
	if err == nil {
		t.Error("a COPY that the client gives up has succeeded")
	}
	big := strings.Repeat("y", 20<<20)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		var back string
		if err := c.QueryRow(deadline(t), "SELECT $1::text", mode, big).Scan(&back); err != nil || back != big {
			t.Fatalf("mode %s: %d bytes, %v", mode, len(back), err)
		}
	}
	if got := one[int](t, c, "SELECT count(*) FROM streams"); got != rows {
		t.Errorf("%d rows", got)
	}
}

// TestPostgresCancels: only the client's own statement is cancelled, and a late cancellation
// reaches nobody.
func TestPostgresCancels(t *testing.T) {
	x := start(t, server(t), 1, nil)
	a, b := x.connect(t, nil), x.connect(t, nil)
	failed := make(chan error, 1)
	go func() {
		_, err := a.Exec(deadline(t), "SELECT pg_sleep(600)")
		failed <- err
	}()
	running := connect(t, server(t).URL("postgres"), nil)
	for one[int](t, running, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(600)%'") == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if err := a.PgConn().CancelRequest(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !is(err, "57014") {
		t.Errorf("cancelled statement: %v", err)
	}
	if got := one[int](t, a, "SELECT 41 + 1"); got != 42 {
		t.Errorf("after a cancellation: %d", got)
	}
	// a's cancellations come while b has the connection.
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := a.PgConn().CancelRequest(deadline(t)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for i := range 300 {
		if got := one[int](t, b, "SELECT $1::int", i); got != i {
			t.Errorf("%d instead of %d", got, i)
		}
	}
	close(stop)
	all.Wait()
}
