//go:build integration

package proxy

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/harness"
	"kurabe/internal/logkey"
	"kurabe/internal/proxy"
	"kurabe/internal/proxy/pool"
	"kurabe/test/relay"
)

func TestMain(m *testing.M) {
	os.Exit(harness.Contained(func() int {
		code := m.Run()
		if sharedServer != nil {
			_ = sharedServer.Stop(context.Background(), "immediate")
		}
		return code
	}))
}

// patience bounds each wait: a test that fails by it has hung.
const patience = 2 * time.Minute

var (
	sharedOnce   sync.Once
	sharedServer *relay.Server
	sharedError  error
)

// server is a PostgreSQL for the tests that do not stop it.
func server(t *testing.T) *relay.Server {
	t.Helper()
	sharedOnce.Do(func() {
		dir, err := os.MkdirTemp("", "proxy")
		if err != nil {
			t.Fatal(err)
		}
		sharedServer, sharedError = relay.StartPostgres(context.Background(), dir)
	})
	if sharedError == relay.ErrNoPostgres {
		t.Skip(sharedError)
	}
	if sharedError != nil {
		t.Fatal(sharedError)
	}
	return sharedServer
}

// through is a proxy with a pool of so many connections.
type through struct {
	*relay.Relay
	settings *proxy.Settings
	log      *lockedBuffer
}

type lockedBuffer struct {
	sync.Mutex
	b bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.Lock()
	defer l.Unlock()
	return l.b.String()
}

func start(t *testing.T, s *relay.Server, connections int, change func(*proxy.Settings, *pool.Limits)) *through {
	t.Helper()
	x := &through{log: &lockedBuffer{}}
	x.settings = &proxy.Settings{
		Endpoint: "default", Users: map[string]proxy.User{relay.User: {Name: relay.User, Password: logkey.Secret(relay.Password)}},
		ClientsMax: 1000, IdleClientTimeout: time.Hour, Log: slog.New(slog.NewTextHandler(x.log, nil)),
	}
	limits := pool.Limits{MaxServers: connections, MaxIdle: connections, BorrowTimeout: patience}
	if change != nil {
		change(x.settings, &limits)
	}
	r, err := relay.Postgres(s.Address, x.settings, limits)
	if err != nil {
		t.Fatal(err)
	}
	x.Relay = r
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// ctx ends a test that hangs.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// connect is a client by pgx.
func (x *through) connect(t *testing.T, change func(*pgx.ConnConfig)) *pgx.Conn {
	t.Helper()
	return connect(t, relay.URL(x.Address, "postgres"), change)
}

func connect(t *testing.T, url string, change func(*pgx.ConnConfig)) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(config)
	}
	c, err := pgx.ConnectConfig(deadline(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

func one[T any](t *testing.T, c *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var value T
	if err := c.QueryRow(deadline(t), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func exec(t *testing.T, c *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := c.Exec(deadline(t), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
