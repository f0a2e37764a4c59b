package replica

import (
	"context"
	"fmt"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/role"
)

// CommittedAlone implements engine.Driver by the numbers of transactions in the binary
// log. Those that are only prepared in the engine, because nobody has answered for them,
// are among those that it counts.
func (r *Roles) CommittedAlone(ctx context.Context, i engine.Instance, caFile string) (int64, error) {
	if r.IsFollower(i.Home) {
		return 0, nil
	}
	if err := conf.AwaitWrites(ctx, i.Home.DataDir()); err != nil {
		return 0, fmt.Errorf("wait for what the server has written: %w", err)
	}
	own, err := binlog.NewestLogged(i.Home.DataDir())
	if err != nil {
		return 0, fmt.Errorf("%w: %w", engine.ErrUncounted, err)
	}
	source, err := AskSource(ctx, i, caFile)
	if err != nil {
		return 0, err
	}
	alone, known := source.Lacks(own)
	if !known {
		return 0, fmt.Errorf("%w: no transaction is in both logs", engine.ErrUncounted)
	}
	return alone, nil
}

// AskSource asks a writer for its history, as the member that is to follow it.
func AskSource(ctx context.Context, i engine.Instance, caFile string) (binlog.History, error) {
	db, err := door.SourcePool(i, caFile)
	if err != nil {
		return binlog.History{}, err
	}
	defer db.Close()
	var readOnly bool
	var state, applied string
	err = db.QueryRowContext(ctx, "SELECT @@GLOBAL.read_only, @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_slave_pos").Scan(&readOnly, &state, &applied)
	if err != nil {
		return binlog.History{}, fmt.Errorf("ask the source: %w", err)
	}
	if readOnly && role.Answers(i) { // a replica may follow a replica
		return binlog.History{}, fmt.Errorf("%w: the source does not write yet", engine.ErrNotReady)
	}
	return binlog.ParseHistory(state, applied)
}
