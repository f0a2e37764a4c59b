package sampling

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"kurabe"
)

const (
	// sessionsMax bounds the sessions of a list.
	sessionsMax = 5000
	// blockedMax bounds the sessions whose blocker is asked for: each question takes all
	// partitions of the lock table.
	blockedMax = 20
)

// activeSQL lists the sessions that work or wait within a statement, but for those of the
// service and of standbys, whose role is the one that initdb made (10), and of its probe. What waits in the
// main loop of a background process is idle. A statement that is not in one of the server's
// encodings comes as it is.
const activeSQL = `SELECT a.pid, COALESCE(a.wait_event_type, ''), COALESCE(a.wait_event, ''), COALESCE(a.query, ''), COALESCE(a.query_id::text, ''),
		COALESCE(r.rolname, ''), COALESCE(pg_catalog.host(a.client_addr), CASE WHEN a.backend_type = 'client backend' THEN 'local' ELSE '' END),
		COALESCE(d.datname, ''), COALESCE(a.application_name, ''), a.backend_type,
		COALESCE(GREATEST(EXTRACT(epoch FROM pg_catalog.clock_timestamp() - a.query_start), 0), 0)::bigint
	FROM pg_catalog.pg_stat_get_activity(NULL) a
	LEFT JOIN pg_catalog.pg_authid r ON r.oid = a.usesysid
	LEFT JOIN pg_catalog.pg_database d ON d.oid = a.datid
	WHERE a.state IN ('active', 'fastpath function call') AND a.wait_event_type IS DISTINCT FROM 'Activity'
		AND (a.usesysid IS DISTINCT FROM 10 OR a.backend_type NOT IN ('client backend', 'walsender'))
		AND COALESCE(r.rolname, '') NOT LIKE 'rdsprobe\_%'
	LIMIT $1`

// blockersSQL tells of sessions that wait for locks which session each waits for: the first of
// several.
const blockersSQL = `SELECT b.pid, b.blocker, COALESCE(r.rolname, ''), COALESCE(a.query, '')
	FROM (SELECT p.pid, (pg_catalog.pg_blocking_pids(p.pid))[1] FROM pg_catalog.unnest($1::int[]) AS p(pid)) AS b(pid, blocker)
	LEFT JOIN pg_catalog.pg_stat_get_activity(b.blocker) a ON b.blocker IS NOT NULL
	LEFT JOIN pg_catalog.pg_authid r ON r.oid = a.usesysid
	WHERE b.blocker <> 0`

// Sessions implements engine.Sampler.
func (s *Sampler) Sessions(ctx context.Context) ([]kurabe.ActiveSession, error) {
	rows, err := s.Conn.Query(ctx, activeSQL, pgx.QueryExecModeCacheStatement, sessionsMax)
	if err != nil {
		return nil, fmt.Errorf("list active sessions: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s kurabe.ActiveSession, err error) {
		err = row.Scan(&s.ID, &s.WaitType, &s.Wait, &s.Statement, &s.NativeID, &s.User, &s.Host, &s.Database, &s.Application, &s.Kind, &s.Seconds)
		if s.WaitType == "" {
			s.WaitType, s.Wait = kurabe.WaitCPU, kurabe.WaitCPU
		}
		s.Statement = strings.ToValidUTF8(s.Statement, "\uFFFD")
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("list active sessions: %w", err)
	}
	return list, s.addBlockers(ctx, list)
}

// addBlockers adds who blocks whom.
func (s *Sampler) addBlockers(ctx context.Context, list []kurabe.ActiveSession) error {
	waiting := map[int64]*kurabe.ActiveSession{}
	var pids []int64
	for n := range list {
		if list[n].WaitType == kurabe.WaitLock && len(pids) < blockedMax {
			pids = append(pids, list[n].ID)
			waiting[list[n].ID] = &list[n]
		}
	}
	if len(pids) == 0 {
		return nil
	}
	rows, err := s.Conn.Query(ctx, blockersSQL, pgx.QueryExecModeCacheStatement, pids)
	if err != nil {
		return fmt.Errorf("list blockers: %w", err)
	}
	var pid, blocker int64
	var user, statement string
	_, err = pgx.ForEachRow(rows, []any{&pid, &blocker, &user, &statement}, func() error {
		if w := waiting[pid]; w != nil {
			w.Blocker, w.BlockerUser, w.BlockerStatement = blocker, user, strings.ToValidUTF8(statement, "\uFFFD")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list blockers: %w", err)
	}
	return nil
}
