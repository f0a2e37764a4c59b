package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
)

// goodbyeTimeout bounds closing a session; the server does not need it.
const goodbyeTimeout = time.Second

// Ready implements engine.Driver. A server in recovery answers queries but
// would refuse the next write, so it is not ready.
func (d *Driver) Ready(ctx context.Context, i engine.Instance) error {
	return d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		var recovering bool
		if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_is_in_recovery()").Scan(&recovering); err != nil {
			return fmt.Errorf("ask whether ready: %w", err)
		}
		if recovering {
			return fmt.Errorf("%w: it is in recovery", engine.ErrNotReady)
		}
		return nil
	})
}
