package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/sampling"
	"kurabe/internal/volume"
)

// applicationName is how the service's sessions show in pg_stat_activity.
const applicationName = "kurabe"

// dialSocket reaches the server's socket, wherever somebody has put links.
func dialSocket(ctx context.Context, dir string, port int) (net.Conn, error) {
	return volume.DialSocket(ctx, filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d", port)))
}

// connectError tells "not yet" from "wrong".
func connectError(err error) error {
	const cannotConnectNow = "57P03"
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == cannotConnectNow,
		errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%w: %w", engine.ErrNotReady, err)
	}
	return fmt.Errorf("connect: %w", err)
}

// closeConn says goodbye, so that the server does not log a lost connection,
// even when the caller's time is up.
func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}

// withAdmin runs do in one session of the service.
func (d *Driver) withAdmin(ctx context.Context, i engine.Instance, do func(*pgx.Conn) error) error {
	conn, err := d.adminConn(ctx, i)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	return do(conn)
}

// execAll runs statements one by one, each in its own transaction.
func execAll(ctx context.Context, conn *pgx.Conn, statements []string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// tlsFor verifies the server as a careful client does.
func tlsFor(i engine.Instance, caFile string) (*tls.Config, error) {
	roots, err := readRoots(caFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: roots, ServerName: strings.Trim(i.Address, "[]"), MinVersion: tls.VersionTLS12}, nil
}

// placesLeft is how many connections a sampler leaves free, of those that only the service may
// use: what it does for the user needs up to two at a time.
const placesLeft = 2

// OpenSampler implements engine.Driver. It fails while clients have so many connections that it
// would take one that the service needs for more than metrics.
func (d *Driver) OpenSampler(ctx context.Context, i engine.Instance) (engine.Sampler, error) {
	conn, err := d.adminConn(ctx, i)
	if err != nil {
		return nil, fmt.Errorf("open sampler: %w", err)
	}
	var left int
	err = conn.QueryRow(ctx, `SELECT pg_catalog.current_setting('max_connections')::integer - pg_catalog.count(*)::integer
		FROM pg_catalog.pg_stat_get_activity(NULL) a WHERE a.backend_type = 'client backend'`).Scan(&left)
	if err == nil && left < placesLeft {
		err = fmt.Errorf("%d connections are left", left)
	}
	if err != nil {
		closeConn(ctx, conn)
		return nil, fmt.Errorf("open sampler: %w", err)
	}
	return &sampling.Sampler{Conn: conn, Closes: func(c *pgx.Conn) { closeConn(context.Background(), c) }}, nil
}
