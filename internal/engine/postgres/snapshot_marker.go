package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// markerTable has one row with a time of the server's own clock, by which a restored
// copy shows of when it is. It lies where no client may enter.
const markerTable = probeSchema + ".marker"

// markerTableSQL runs in the service's database. Data folders of before it was there
// get it with their first marker.
func markerTableSQL() []string {
	return []string{
		"CREATE TABLE IF NOT EXISTS " + markerTable + " (one boolean PRIMARY KEY DEFAULT true CHECK (one), at timestamptz NOT NULL)",
	}
}

const undefinedTable = "42P01"

// writeMarker sets the row to now. The first try is without making the table, which
// would cost a notice and a lock each time.
func writeMarker(ctx context.Context, conn *pgx.Conn) error {
	const put = "INSERT INTO " + markerTable + ` AS m (one, at) VALUES (true, pg_catalog.clock_timestamp())
		ON CONFLICT (one) DO UPDATE SET at = excluded.at`
	_, err := conn.Exec(ctx, put)
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == undefinedTable {
		err = execAll(ctx, conn, append(markerTableSQL(), put))
	}
	if err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	return nil
}

// readMarker returns the zero time when no marker was ever written.
func readMarker(ctx context.Context, conn *pgx.Conn) (time.Time, error) {
	var at time.Time
	err := conn.QueryRow(ctx, "SELECT at FROM "+markerTable).Scan(&at)
	pg := (*pgconn.PgError)(nil)
	switch {
	case errors.Is(err, pgx.ErrNoRows), errors.As(err, &pg) && pg.Code == undefinedTable:
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("read the marker: %w", err)
	}
	return at.UTC(), nil
}
