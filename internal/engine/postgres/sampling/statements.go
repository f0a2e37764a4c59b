package sampling

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
)

// statementsMax bounds the statements that are read. The module keeps 5000 unless a parameter
// group says otherwise.
const statementsMax = 10_000

// Statements are counted by a module that is loaded by default. Its function is made in the
// service's own database, where no client can make anything: the name means what it says.
// A server that follows another one gets it from there.
const (
	countableSQL = `SELECT 'pg_stat_statements' = ANY (pg_catalog.string_to_array(pg_catalog.replace(pg_catalog.current_setting('shared_preload_libraries'), ' ', ''), ',')),
	EXISTS (SELECT FROM pg_catalog.pg_extension e WHERE e.extname = 'pg_stat_statements'), pg_catalog.pg_is_in_recovery()`

	extensionSQL = `CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA service`

	// The texts, which may hold passwords, are not read.
	statementsSQL = `SELECT s.userid::bigint, s.dbid::bigint, s.toplevel, s.queryid,
		s.calls, s.rows, (s.total_exec_time * 1000)::bigint,
		s.shared_blks_hit, s.shared_blks_read, s.shared_blks_dirtied, s.shared_blks_written,
		s.local_blks_hit, s.local_blks_read, s.local_blks_dirtied, s.local_blks_written,
		s.temp_blks_read, s.temp_blks_written
	FROM service.pg_stat_statements(false) s WHERE s.queryid IS NOT NULL LIMIT $1`
)

// statement is by what the server counts apart.
type statement struct {
	user, database, id int64
	top                bool
}

type counters = [kurabe.StatementCounters]uint64

// counted is what a server had counted at a time.
type counted struct {
	at    time.Time
	known map[statement]counters
}

// Statements implements engine.Sampler.
func (s *Sampler) Statements(ctx context.Context) ([]kurabe.StatementCounts, time.Duration, error) {
	if !s.countable {
		var loaded, installed, follows bool
		if err := s.ask(ctx, countableSQL, &loaded, &installed, &follows); err != nil {
			return nil, 0, err
		}
		if !loaded || follows && !installed {
			return nil, 0, nil
		}
		if !installed {
			if _, err := s.Conn.Exec(ctx, extensionSQL); err != nil {
				return nil, 0, fmt.Errorf("count statements: %w", err)
			}
		}
		s.countable = true
	}
	now := counted{at: time.Now(), known: map[statement]counters{}}
	rows, err := s.Conn.Query(ctx, statementsSQL, pgx.QueryExecModeCacheStatement, statementsMax)
	if err != nil {
		return nil, 0, fmt.Errorf("count statements: %w", err)
	}
	var of statement
	var c counters
	into := []any{&of.user, &of.database, &of.top, &of.id}
	for n := range c {
		into = append(into, &c[n])
	}
	if _, err := pgx.ForEachRow(rows, into, func() error { now.known[of] = c; return nil }); err != nil {
		return nil, 0, fmt.Errorf("count statements: %w", err)
	}
	before := s.statements
	s.statements = now
	if before.known == nil {
		return nil, 0, nil
	}
	return now.since(before), now.at.Sub(before.at), nil
}

// since returns what was counted of the statements that have run since.
func (c counted) since(before counted) []kurabe.StatementCounts {
	// A statement that was left out before is not a new one.
	whole := len(before.known) < statementsMax
	sums := map[int64]counters{}
	for of, now := range c.known {
		was, known := before.known[of]
		if !known && !whole || now == was {
			continue
		}
		for n := range now {
			if now[n] < was[n] { // forgotten by the server meanwhile, and counted anew
				was = counters{}
				break
			}
		}
		sum := sums[of.id]
		for n := range now {
			sum[n] += now[n] - was[n]
		}
		sums[of.id] = sum
	}
	list := make([]kurabe.StatementCounts, 0, len(sums))
	for id, sum := range sums {
		list = append(list, kurabe.StatementCounts{NativeID: strconv.FormatInt(id, 10), Counts: sum})
	}
	return list
}
