package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
)

// LogEnd implements engine.Ender. The last thing that a clean stop writes is a checkpoint;
// whoever has its end has all.
func (d *Driver) LogEnd(ctx context.Context, i engine.Instance) (int64, error) {
	c, end, err := checkpointEnd(ctx, i)
	if err != nil {
		return 0, err
	}
	if end == 0 {
		return 0, fmt.Errorf("pg_controldata reports %q instead of a clean shutdown", c.state)
	}
	return int64(end), nil
}

// EaseStop implements engine.Driver: the checkpoint of the stop has only to write what was
// changed since this one.
func (d *Driver) EaseStop(ctx context.Context, i engine.Instance) error {
	return d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CHECKPOINT")
		return err
	})
}
