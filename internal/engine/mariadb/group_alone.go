package mariadb

import (
	"context"
	"fmt"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
)

// CommittedAlone implements engine.Driver by the numbers of transactions in the binary
// log. Those that are only prepared in the engine, because nobody has answered for them,
// are among those that it counts.
func (d *Driver) CommittedAlone(ctx context.Context, i engine.Instance, caFile string) (int64, error) {
	if d.IsFollower(i.Home) {
		return 0, nil
	}
	if err := d.AwaitWrites(ctx, i); err != nil {
		return 0, fmt.Errorf("wait for what the server has written: %w", err)
	}
	own, err := binlog.NewestLogged(i.Home.DataDir())
	if err != nil {
		return 0, fmt.Errorf("%w: %w", engine.ErrUncounted, err)
	}
	source, err := askSource(ctx, i, caFile)
	if err != nil {
		return 0, err
	}
	alone, known := source.Lacks(own)
	if !known {
		return 0, fmt.Errorf("%w: no transaction is in both logs", engine.ErrUncounted)
	}
	return alone, nil
}
