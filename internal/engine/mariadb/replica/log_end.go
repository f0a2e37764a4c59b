package replica

import (
	"context"
	"errors"
	"fmt"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
)

// LogEnd implements engine.Driver: the number of the newest transaction in the binary log.
// Numbers of one writer tell its history, so who has applied that one has all.
func (r *Roles) LogEnd(ctx context.Context, i engine.Instance) (int64, error) {
	if err := conf.AwaitWrites(ctx, i.Home.DataDir()); err != nil {
		return 0, fmt.Errorf("wait for what the server has written: %w", err)
	}
	last, found, err := binlog.LastLogged(i.Home.DataDir())
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, errors.New("its binary log has no GTID")
	}
	return int64(last.Seq), nil
}
