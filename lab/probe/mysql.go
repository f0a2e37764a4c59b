package probe

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"kurabe/lab/dial"
)

// mysql asks MariaDB and MySQL.
type mysql struct {
	question, sessions string
	checkpoint         innodbCheckpoint
}

// mysqlCounters are the status variables behind the names of Names; mysqlGauges likewise.
// InnoDB does not count its checkpoints: the age of the newest says how far behind it is.
var (
	mysqlCounters = map[string]string{
		"innodb_os_log_written": "wal_bytes", "binlog_bytes_written": "binlog_bytes", "innodb_data_fsyncs": "fsyncs",
		"innodb_row_lock_waits": "lock_waits", "innodb_row_lock_time": "lock_wait_s", "innodb_deadlocks": "deadlocks",
		"innodb_data_read": "data_read_bytes", "innodb_data_written": "data_written_bytes",
		"innodb_buffer_pool_reads": "blocks_read", "innodb_buffer_pool_read_requests": "blocks_hit",
		"created_tmp_disk_tables": "temp_tables", "handler_rollback": "rollbacks",
	}
	mysqlGauges = map[string]string{
		"innodb_buffer_pool_pages_dirty": "dirty_pages_end", "innodb_history_list_length": "history_length_end",
		"innodb_checkpoint_age": "checkpoint_age_end",
	}
)

func (m *mysql) prepare(ctx context.Context, s *dial.Session) error {
	names := ""
	for _, list := range []map[string]string{mysqlCounters, mysqlGauges} {
		for name := range list {
			names += "," + dial.Literal("", name)
		}
	}
	m.question = "SHOW GLOBAL STATUS WHERE Variable_name IN (" + names[1:] + ")"
	if _, err := s.Rows(ctx, m.question); err != nil {
		return err
	}
	return m.prepareSample(ctx, s)
}

func (m *mysql) counters(ctx context.Context, s *dial.Session) (totals, gauges map[string]float64, err error) {
	rows, err := s.Rows(ctx, m.question)
	if err != nil {
		return nil, nil, err
	}
	return mysqlStatus(rows)
}

// mysqlStatus sorts name and value of status variables.
func mysqlStatus(rows [][]string) (totals, gauges map[string]float64, err error) {
	totals, gauges = map[string]float64{}, map[string]float64{}
	for _, row := range rows {
		if len(row) != 2 || row[1] == "" {
			continue
		}
		name := strings.ToLower(row[0])
		value, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", row[0], err)
		}
		if to, ok := mysqlCounters[name]; ok {
			totals[to] = value
		}
		if to, ok := mysqlGauges[name]; ok {
			gauges[to] = value
		}
	}
	const millisecond = 1e-3
	if ms, ok := totals["lock_wait_s"]; ok {
		totals["lock_wait_s"] = ms * millisecond
	}
	// A request that had to read is counted among the requests too.
	if hit, ok := totals["blocks_hit"]; ok {
		totals["blocks_hit"] = max(0, hit-totals["blocks_read"])
	}
	return totals, gauges, nil
}
