package mariadb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/engine/mariadb/sqltext"
	"kurabe/internal/faultpoint"
	"kurabe/internal/volume"
)

// relayName begins the names under which the log is given to the private server: its
// replication applies it, as if another server had sent it.
const relayName = "relay"

// replayPoll is how often the server is asked how far it is.
const replayPoll = 100 * time.Millisecond

// Replay implements engine.Logger. The server's own replication thread does it: it
// knows each kind of event, leaves out what a crash tore, and stops at the first
// statement that does not do what it did.
func (d *Driver) Replay(ctx context.Context, i engine.Instance, dataDir string, r engine.ReplayRequest) error {
	plan, err := binlog.PlanReplay(r)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	s, err := openPrivate(ctx, i, dataDir)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	err = s.replay(ctx, r, plan)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err := errors.Join(err, s.close()); err != nil {
		return fmt.Errorf("replay to %s: %w", plan.Stop, err)
	}
	return nil
}

func (s *privateServer) replay(ctx context.Context, r engine.ReplayRequest, plan binlog.ReplayPlan) error {
	if err := s.settle(ctx); err != nil {
		return fmt.Errorf("recover the snapshot: %w", err)
	}
	if err := s.hand(plan); err != nil {
		return fmt.Errorf("hand over the log: %w", err)
	}
	if err := s.launch(ctx, privateOptions{account: true, options: s.replaySettings()}); err != nil {
		return fmt.Errorf("start a private server: %w", err)
	}
	if len(plan.Reached) > 0 {
		if err := s.apply(ctx, r, plan); err != nil {
			return err
		}
	}
	faultpoint.Reach("before", "stop-private")
	if err := s.stop(ctx); err != nil {
		return err
	}
	for _, name := range replicationFiles {
		if err := volume.Remove(filepath.Join(s.Dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// replicationFiles are where a server keeps whose replica it is.
var replicationFiles = []string{"master.info", "relay-log.info", "multi-master.info"}

// settle recovers a copy of a server that had crashed, by means of the binary log in
// it, and removes that: what follows is another's.
func (s *privateServer) settle(ctx context.Context) error {
	t, err := binlog.ReadTail(s.Dir)
	if err != nil {
		return err
	}
	if t.From != "" && !t.Closed {
		if err := s.launch(ctx, privateOptions{binlog: true}); err != nil {
			return err
		}
		if err := s.stop(ctx); err != nil {
			return err
		}
	}
	names, err := binlog.List(s.Dir)
	if err != nil {
		return err
	}
	for _, name := range append(names, binlog.BaseName+".index", binlog.BaseName+".state") {
		if err := volume.Remove(filepath.Join(s.Dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// replaySettings: the folder is thrown away when the server dies, and written by a
// clean shutdown otherwise, so nothing needs to be durable before.
func (s *privateServer) replaySettings() []conf.Option {
	return []conf.Option{
		{Name: "innodb_flush_log_at_trx_commit", Value: "0"}, {Name: "innodb_doublewrite", Value: "0"},
		{Name: "relay_log", Value: s.seenPath(relayName)}, {Name: "relay_log_index", Value: s.seenPath(relayName + ".index")},
		{Name: "relay_log_info_file", Value: s.seenPath("relay-log.info")}, {Name: "master_info_file", Value: s.seenPath("master.info")},
		{Name: "relay_log_purge", Value: "0"}, {Name: "relay_log_recovery", Value: "0"}, {Name: "sync_relay_log_info", Value: "0"}, {Name: "log_slave_updates", Value: "0"},
		// The source may have been this very instance.
		{Name: "replicate_same_server_id", Value: "1"}, {Name: "slave_sql_verify_checksum", Value: "1"}, {Name: "slave_skip_errors", Value: "OFF"},
		{Name: "slave_max_allowed_packet", Value: strconv.Itoa(binlog.EventBytesMax)}, {Name: "slave_exec_mode", Value: "STRICT"},
		// What the probe writes: to its table, or to a schema that is made by a session
		// which is not logged. No name of a user's schema has this form (dropLeftProbes).
		{Name: "replicate_wild_ignore_table", Value: sqltext.LikeEscapes.Replace(conf.SystemSchema + "." + conf.ProbeTable)},
		{Name: "replicate_wild_ignore_table", Value: sqltext.LikeEscapes.Replace(conf.ProbePrefix) + strings.Repeat("_", 32) + ".%"},
		{Name: "slave_parallel_threads", Value: "0"}, {Name: "slave_run_triggers_for_rbr", Value: "NO"},
	}
}

func relayFile(n int) string { return fmt.Sprintf("%s.%06d", relayName, n+1) }

// hand gives the log to the server as its relay logs, cut at the stop.
func (s *privateServer) hand(plan binlog.ReplayPlan) error {
	var index strings.Builder
	for n, f := range plan.Files {
		to := s.path(relayFile(n))
		err := f.HandTo(to)
		if err == nil {
			err = errors.Join(volume.Chmod(to, 0o600), engine.Give(to, s.User))
		}
		if err != nil {
			return err
		}
		index.WriteString(s.seenPath(relayFile(n)) + "\n")
	}
	return s.write(relayName+".index", index.String())
}

// apply runs the replication thread to the stop, and makes sure that it got there.
func (s *privateServer) apply(ctx context.Context, r engine.ReplayRequest, plan binlog.ReplayPlan) error {
	schedule, err := s.readSchedule(ctx)
	if err != nil {
		return fmt.Errorf("read the events of the scheduler: %w", err)
	}
	n := len(plan.Files) - 1
	last, end := relayFile(n), plan.Files[n].Place(plan.Stop.Offset)
	start := max(r.From.Offset, int64(len(binlog.Magic)))
	for _, statement := range []string{
		fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_USER='none', MASTER_USE_GTID=no, RELAY_LOG_FILE=%s, RELAY_LOG_POS=%d",
			sqltext.Literal(relayFile(0)), start),
		"SET GLOBAL gtid_slave_pos = ''",
		fmt.Sprintf("START SLAVE SQL_THREAD UNTIL RELAY_LOG_FILE=%s, RELAY_LOG_POS=%d", sqltext.Literal(last), end),
	} {
		if err := s.exec(ctx, statement); err != nil {
			return fmt.Errorf("apply the log: %w", err)
		}
	}
	faultpoint.Reach("after", "start-replay")
	if err := s.applied(ctx, plan); err != nil {
		return fmt.Errorf("apply the log: %w", err)
	}
	for _, statement := range []string{"STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL gtid_slave_pos = ''"} {
		if err := s.exec(ctx, statement); err != nil {
			return fmt.Errorf("forget the replication: %w", err)
		}
	}
	schedule.Follow(plan.Scheduled)
	if err := s.writeSchedule(ctx, schedule); err != nil {
		return fmt.Errorf("enable the events of the scheduler: %w", err)
	}
	return nil
}

// applied waits for the end of the thread, and for all groups.
func (s *privateServer) applied(ctx context.Context, plan binlog.ReplayPlan) error {
	for {
		rows, err := s.rows(ctx, "SHOW SLAVE STATUS")
		if err != nil {
			if !s.Process.Alive() {
				return s.died()
			}
			return err
		}
		if len(rows) != 1 {
			return errors.New("SHOW SLAVE STATUS returned no row")
		}
		row := rows[0]
		if number := row["Last_SQL_Errno"]; number != "0" {
			return fmt.Errorf("error %s at %s:%s: %s", number, row["Relay_Log_File"], row["Relay_Log_Pos"], replica.WithoutQuery(row["Last_SQL_Error"]))
		}
		position, err := s.rows(ctx, "SELECT @@GLOBAL.gtid_slave_pos AS p")
		if err != nil {
			return err
		}
		if plan.Has(position[0]["p"]) {
			return nil
		}
		if row["Slave_SQL_Running"] == "No" {
			return fmt.Errorf("it stopped at %s:%s with %s, not at %v", row["Relay_Log_File"], row["Relay_Log_Pos"], position[0]["p"], plan.Reached)
		}
		if err := guard.Pause(ctx, replayPoll); err != nil {
			return err
		}
	}
}

func (s *privateServer) readSchedule(ctx context.Context) (binlog.Schedule, error) {
	rows, err := s.rows(ctx, "SELECT db, name, status FROM mysql.event")
	all := binlog.Schedule{}
	for _, r := range rows {
		all[binlog.EventName{Schema: r["db"], Name: strings.ToLower(r["name"])}] = r["status"]
	}
	return all, err
}

// writeSchedule: names of events are the same in any case.
func (s *privateServer) writeSchedule(ctx context.Context, all binlog.Schedule) error {
	have, err := s.readSchedule(ctx)
	if err != nil {
		return err
	}
	for name, status := range have {
		wanted, known := all[name]
		if status != binlog.StatusReplica || !known || wanted == status {
			continue
		}
		_, err := s.db.ExecContext(ctx, "UPDATE mysql.event SET status = "+sqltext.Literal(wanted)+
			" WHERE db = "+sqltext.Literal(name.Schema)+" AND LOWER(name) = "+sqltext.Literal(name.Name))
		if err != nil {
			return err
		}
	}
	return nil
}
