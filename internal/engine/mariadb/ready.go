package mariadb

import (
	"context"
	"fmt"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/guard"
)

// Ready implements engine.Driver. The guard opens its socket when the server has
// recovered, loaded its accounts and listens. What an earlier service left in the
// database is brought up to date before anybody is told that it is ready, and a server of
// a group takes up its role: a follower then follows, a writer writes.
func (d *Driver) Ready(ctx context.Context, i engine.Instance) error {
	return guard.With(ctx, i, func(a *guard.Session) error {
		if err := a.Exec(ctx, "SELECT 1"); err != nil {
			return fmt.Errorf("ask whether ready: %w", err)
		}
		if err := guard.Upkeep(ctx, a); err != nil {
			return fmt.Errorf("ask whether ready: %w", err)
		}
		if err := d.Assume(ctx, a, i); err != nil {
			return fmt.Errorf("take up its role: %w", err)
		}
		return nil
	})
}
