package sampling

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/metrics/sample"
)

// Sampler implements engine.Sampler. It closes its session with Close.
type Sampler struct {
	Conn         *pgx.Conn
	Closes       func(*pgx.Conn)
	state, files time.Time // when stateSQL and filesSQL were asked last
	countable    bool      // statements are counted, and can be read
	statements   counted
}

// Every second countersSQL is asked; stateSQL, which reads the catalogue and the control file,
// and filesSQL, which looks at each file of the WAL, less often.
const (
	stateEvery = 10 * time.Second
	filesEvery = time.Minute
)

// countersSQL: sessions of clients are all but those of the service, whose role is the one that
// initdb made (10), and of its probe. A follower writes no WAL.
const countersSQL = `SELECT
	(SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_get_activity(NULL) a
		WHERE a.backend_type = 'client backend' AND a.usesysid <> 10 AND NOT EXISTS (
			SELECT FROM pg_catalog.pg_authid r WHERE r.oid = a.usesysid AND r.rolname LIKE 'rdsprobe\_%'))::double precision,
	(SELECT COALESCE(pg_catalog.sum(pg_catalog.pg_stat_get_db_deadlocks(d.oid)), 0) FROM pg_catalog.pg_database d)::double precision,
	(CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), '0/0') END)::double precision`

// stateSQL: a slot that keeps nothing has no restart_lsn.
const stateSQL = `SELECT
	(SELECT pg_catalog.max(pg_catalog.age(d.datfrozenxid)) FROM pg_catalog.pg_database d)::double precision,
	(SELECT EXTRACT(epoch FROM pg_catalog.clock_timestamp() - c.checkpoint_time) FROM pg_catalog.pg_control_checkpoint() c)::double precision,
	(SELECT pg_catalog.max(pg_catalog.pg_wal_lsn_diff(CASE WHEN pg_catalog.pg_is_in_recovery()
			THEN pg_catalog.pg_last_wal_replay_lsn() ELSE pg_catalog.pg_current_wal_lsn() END, s.restart_lsn))
		FROM pg_catalog.pg_replication_slots s)::double precision`

const filesSQL = `SELECT COALESCE(pg_catalog.sum(w.size), 0)::double precision FROM pg_catalog.pg_ls_waldir() w`

// Close implements engine.Sampler.
func (s *Sampler) Close() { s.Closes(s.Conn) }

// Sample implements engine.Sampler.
func (s *Sampler) Sample(ctx context.Context) ([]sample.Value, error) {
	var connections, deadlocks float64
	var written *float64
	if err := s.ask(ctx, countersSQL, &connections, &deadlocks, &written); err != nil {
		return nil, err
	}
	values := []sample.Value{
		{Metric: "DatabaseConnections", Value: connections},
		{Metric: "Deadlocks", Kind: sample.Increase, Value: deadlocks},
	}
	if written != nil {
		values = append(values, sample.Value{Metric: "TransactionLogsGeneration", Kind: sample.Rate, Value: *written})
	}
	now := time.Now()
	if now.Sub(s.state) >= stateEvery {
		var age, checkpoint float64
		var slot *float64
		if err := s.ask(ctx, stateSQL, &age, &checkpoint, &slot); err != nil {
			return nil, err
		}
		s.state = now
		values = append(values, sample.Value{Metric: "MaximumUsedTransactionIDs", Value: age},
			sample.Value{Metric: "CheckpointLag", Value: max(0, checkpoint)})
		if slot != nil {
			values = append(values, sample.Value{Metric: "OldestReplicationSlotLag", Value: max(0, *slot)})
		}
	}
	if now.Sub(s.files) >= filesEvery {
		var bytes float64
		if err := s.ask(ctx, filesSQL, &bytes); err != nil {
			return nil, err
		}
		s.files = now
		values = append(values, sample.Value{Metric: "TransactionLogsDiskUsage", Value: bytes})
	}
	return values, nil
}

// ask runs a statement that the session has prepared.
func (s *Sampler) ask(ctx context.Context, statement string, into ...any) error {
	if err := s.Conn.QueryRow(ctx, statement, pgx.QueryExecModeCacheStatement).Scan(into...); err != nil {
		return fmt.Errorf("sample: %w", err)
	}
	return nil
}
