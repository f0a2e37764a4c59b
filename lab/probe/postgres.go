package probe

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"kurabe/lab/dial"
)

// postgres asks PostgreSQL 12 and later.
type postgres struct{ version int }

// The sample is prepared once, so that no sample is planned.
const postgresSample = `PREPARE kurabe_lab_sample AS SELECT pid::text, backend_type, coalesce(wait_event_type, ''), coalesce(wait_event, ''), state,
	CASE WHEN backend_type = 'autovacuum worker' THEN left(query, 100) ELSE '' END
	FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND (backend_type = 'checkpointer'
	OR datname = current_database() AND (backend_type = 'autovacuum worker' OR backend_type = 'client backend' AND state <> 'idle'))`

func (p *postgres) prepare(ctx context.Context, s *dial.Session) error {
	rows, err := s.Rows(ctx, "SHOW server_version_num")
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		return fmt.Errorf("the server tells no version: %v", rows)
	}
	if p.version, err = strconv.Atoi(rows[0][0]); err != nil {
		return fmt.Errorf("server_version_num: %w", err)
	}
	return s.Exec(ctx, "SET application_name = 'kurabe lab probe'", postgresSample)
}

// questions are asked each in one row, whose columns bear the names of Names. What
// sessions did reaches these views within a second; the log's position is exact.
func (p *postgres) questions() []string {
	position := "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS wal_bytes"
	database := `SELECT blks_read AS blocks_read, blks_hit AS blocks_hit, deadlocks, xact_rollback AS rollbacks, temp_bytes
		FROM pg_stat_database WHERE datname = current_database()`
	checkpoint := "SELECT checkpoints_timed + checkpoints_req AS checkpoints, buffers_checkpoint AS checkpoint_buffers FROM pg_stat_bgwriter"
	if p.version >= 170000 {
		checkpoint = "SELECT num_timed + num_requested AS checkpoints, buffers_written AS checkpoint_buffers FROM pg_stat_checkpointer"
	}
	all := []string{position, database, checkpoint}
	switch {
	case p.version >= 180000: // the syncs moved to pg_stat_io
		all = append(all, "SELECT wal_records, wal_fpi AS wal_page_images FROM pg_stat_wal",
			"SELECT coalesce(sum(fsyncs), 0) AS fsyncs FROM pg_stat_io WHERE object = 'wal'")
	case p.version >= 140000:
		all = append(all, "SELECT wal_records, wal_fpi AS wal_page_images, wal_sync AS fsyncs FROM pg_stat_wal")
	}
	return all
}

func (p *postgres) counters(ctx context.Context, s *dial.Session) (totals, gauges map[string]float64, err error) {
	totals, gauges = map[string]float64{}, map[string]float64{}
	for _, question := range p.questions() {
		// One row of name and value each: the session tells no names of columns.
		rows, err := s.Rows(ctx, "SELECT e.key, e.value FROM ("+question+") q, json_each_text(row_to_json(q)) e")
		if err != nil {
			return nil, nil, err
		}
		for _, row := range rows {
			if len(row) != 2 || row[1] == "" {
				continue
			}
			if totals[row[0]], err = strconv.ParseFloat(row[1], 64); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", row[0], err)
			}
		}
	}
	return totals, gauges, nil
}

func (p *postgres) sample(ctx context.Context, s *dial.Session) (moment, error) {
	rows, err := s.Rows(ctx, "EXECUTE kurabe_lab_sample")
	if err != nil {
		return moment{}, err
	}
	return postgresMoment(rows), nil
}

// postgresMoment reads the rows of a sample: pid, kind of process, type of wait, wait,
// state, statement.
func postgresMoment(rows [][]string) moment {
	m := moment{locked: map[string]bool{}, vacuums: map[string]string{}}
	for _, row := range rows {
		if len(row) != 6 {
			continue
		}
		pid, kind, waitType, wait, state, text := row[0], row[1], row[2], row[3], row[4], row[5]
		switch {
		case kind == "checkpointer":
			// Asleep it waits for its turn; anything else, no wait included, is work.
			m.checkpoints, m.checkpointing = true, wait != "CheckpointerMain"
		case kind == "autovacuum worker":
			m.vacuums[pid] = text
		case strings.HasPrefix(state, "idle in transaction"):
			m.waits = append(m.waits, state)
		case state != "active":
		case waitType == "":
			m.waits = append(m.waits, "CPU")
		default:
			m.waits = append(m.waits, waitType+":"+wait)
			if waitType == "Lock" {
				m.locked[pid] = true
			}
		}
	}
	return m
}
