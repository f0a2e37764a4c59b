package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine"
)

var _ engine.Holder = (*Driver)(nil)

// heldSQL says whether a follower has come to the end of all log that is there, and gets none:
// its receiver is gone, and the process that applies waits to look again whether there is
// more. What a receiver has got in is on disk when it is gone (WalRcvDie flushes), and what a
// server that was started anew has is known only by having been applied.
const heldSQL = `SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_stat_wal_receiver)
	AND EXISTS (SELECT FROM pg_catalog.pg_stat_get_activity(NULL) WHERE backend_type = 'startup' AND wait_event = 'RecoveryRetrieveRetryInterval')
	AND pg_catalog.current_setting('primary_conninfo') = ''`

// Hold implements engine.Holder.
func (d *Driver) Hold(ctx context.Context, i engine.Instance) (position int64, err error) {
	err = d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		if err := lookUntil(ctx, conn, heldSQL); err != nil {
			return err
		}
		var at string
		err := conn.QueryRow(ctx, "SELECT GREATEST(pg_catalog.pg_last_wal_receive_lsn(), pg_catalog.pg_last_wal_replay_lsn())::text").Scan(&at)
		if err != nil {
			return err
		}
		end, err := parseLSN(at)
		position = int64(end)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("hold: %w", err)
	}
	return position, nil
}
