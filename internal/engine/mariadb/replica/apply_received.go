package replica

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/engine/mariadb/sqltext"
)

// applyLeft applies what a server has received that was started anew, or that reads its
// files on already, because somebody began with this and died. One by one: several threads
// that begin in the midst of the files bring the server down (10.11.19 compares names of logs
// that it has not learned yet, in compare_log_names).
//
// While positions are GTIDs the server notes how far it is in its files only where it begins
// another one, up to 64 MiB ago. So the place is looked for. None that was applied is met
// twice then; one that is out of order is not passed over, because it is another one.
//
// A writer whose commits wait from its start on would wait here for an answer to what it
// applies, and nobody follows it before it has been promoted. No client is in, and each of
// them waits for what is written when it has begun to wait again.
func applyLeft(ctx context.Context, a *guard.Session, i engine.Instance) error {
	if err := a.ExecAll(ctx, "SET GLOBAL "+WaitingSetting+" = 0", "STOP SLAVE"); err != nil {
		return err
	}
	if err := applyUnwaited(ctx, a, i); err != nil {
		return err
	}
	return a.Exec(ctx, "SET GLOBAL "+WaitingSetting+" = "+conf.Flag(len(role.WaitsFor(i)) > 0))
}

func applyUnwaited(ctx context.Context, a *guard.Session, i engine.Instance) error {
	s, err := AskSlave(ctx, a)
	if err != nil || s == nil || s.relayFile == "" {
		return err
	}
	last, err := lastApplied(ctx, a)
	if err != nil {
		return err
	}
	from, left, err := binlog.FirstUnapplied(i.Home.DataDir(), binlog.RelayPlace{File: s.relayFile, At: s.relayAt}, last)
	if err != nil || !left {
		return err
	}
	err = a.ExecAll(ctx, "SET GLOBAL slave_parallel_threads = 0",
		fmt.Sprintf("CHANGE MASTER TO MASTER_USE_GTID=no, RELAY_LOG_FILE=%s, RELAY_LOG_POS=%d", sqltext.Literal(from.File), from.At),
		"START SLAVE SQL_THREAD")
	if err == nil {
		err = AwaitRead(ctx, a)
	}
	return errors.Join(err, a.ExecAll(ctx, "STOP SLAVE", "SET GLOBAL slave_parallel_threads = "+strconv.Itoa(conf.ApplyThreads)))
}

// lastApplied are the newest transactions that the server has: one whose statement is a
// transaction of its own may be in its binary log and not yet be noted, one that it filters
// out is noted and not in its log.
func lastApplied(ctx context.Context, a *guard.Session) ([]binlog.GTID, error) {
	rows, err := a.Query(ctx, "SELECT @@GLOBAL.gtid_slave_pos, @@GLOBAL.gtid_binlog_pos")
	if err != nil {
		return nil, err
	}
	return binlog.ParseGTIDs(rows[0][0] + "," + rows[0][1])
}
