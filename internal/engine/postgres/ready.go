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
// would refuse the next write, so it is not ready, unless that is its duty.
func (d *Driver) Ready(ctx context.Context, i engine.Instance) error {
	return d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		recovering, err := inRecovery(ctx, conn)
		if err != nil {
			return fmt.Errorf("ask whether ready: %w", err)
		}
		if recovering && !(follows(i) && d.IsFollower(i.Home)) {
			return fmt.Errorf("%w: it is in recovery", engine.ErrNotReady)
		}
		return nil
	})
}
