//go:build integration

package mariadb

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/binlog"
)

// The parts build on each other and share one server.
func TestContinuousLog(t *testing.T) {
	b := logBed(t, map[string]string{"event_scheduler": "ON", "log_bin_trust_function_creators": "1"})
	b.MustQuery(t, "CREATE TABLE ledger (n INT, half INT, r DOUBLE, KEY (n)) ENGINE=InnoDB")
	mayNot(t, b)
	s := openStream(t, b)
	first := s.mark(t)
	one := keepBook(t, b, 1)
	one.until(t, 20, time.Time{})
	id, facts := b.Take(t)
	if facts.Position.Compare(first.Position) <= 0 {
		t.Fatalf("the snapshot is at %s", facts.Position)
	}
	withoutLogs(t, filepath.Join(b.Root, "snapshots", string(id), "data"))
	one.until(t, 40, time.Time{})
	busy := s.mark(t)
	b.MustQuery(t, "FLUSH LOGS")
	between := busy.At.Truncate(time.Second).Add(time.Second)
	one.until(t, 60, between.Add(1500*time.Millisecond))
	s.mark(t)

	one.crash(t, b, s, true)
	two := keepBook(t, b, 1_000_000)
	two.until(t, 20, time.Time{})
	b.MustQuery(t, "FLUSH BINARY LOGS")
	s.mark(t)
	two.until(t, 40, time.Time{}) // the file that the crash ends has some of them
	two.crash(t, b, s, false)
	statements(t, b)
	s.mark(t)
	still := s.mark(t)
	if err := s.log.Release(t.Context(), s.at); err != nil {
		t.Fatal(err)
	}
	if names, err := binlog.List(b.Home().DataDir()); err != nil || len(names) != 1 || names[0] != s.at.File {
		t.Errorf("after a release: %v, %v", names, err)
	}
	if err := s.log.Resume(t.Context(), facts.Position); !errors.Is(err, engine.ErrLogGone) {
		t.Errorf("a file that is gone: %v", err)
	}

	t.Run("a moment under load", func(t *testing.T) {
		n := restore(t, b, id, s.request(t, facts.Position, busy.At))
		verify(t, n, busy.At, busy.Until, one, two)
		n.Discard(t)
	})
	t.Run("a moment on an idle server", func(t *testing.T) {
		n := restore(t, b, id, s.request(t, facts.Position, still.At))
		verify(t, n, still.At, still.Until, one, two)
		sameAs(t, n, b)
		n.Discard(t)
	})
	t.Run("between marks that are far apart", func(t *testing.T) {
		r := s.request(t, facts.Position, still.At)
		r.Before, r.At = busy, between
		n := restore(t, b, id, r)
		// The times in the log are seconds.
		verify(t, n, r.At, r.At.Add(time.Second), one, two)
		n.Discard(t)
	})
	t.Run("half a transaction", func(t *testing.T) { tornLog(t, b, id, s.request(t, facts.Position, still.At)) })
	t.Run("a damaged log", func(t *testing.T) { damagedLog(t, b, id, s, facts.Position, still.At) })
	t.Run("check", func(t *testing.T) { checks(t, b, id, s, facts, still.At) })
	t.Run("dropped", func(t *testing.T) { drops(t, b) })
}

// withoutLogs: binary logs are no part of a snapshot.
func withoutLogs(t *testing.T, dir string) {
	t.Helper()
	if names, err := filepath.Glob(filepath.Join(dir, binlog.BaseName+"*")); err != nil || len(names) > 0 {
		t.Errorf("binary logs: %v, %v", names, err)
	}
}

// mayNot: the log is the service's, and so is the marker.
func mayNot(t *testing.T, b *enginetest.Bed) {
	t.Helper()
	db := masterPool(t, b)
	for _, c := range []denial{
		{"reset", []string{"RESET MASTER"}, []uint16{needs}},
		{"reset from a number", []string{"RESET MASTER TO 7"}, []uint16{needs}},
		{"reset from a prepared statement", []string{"EXECUTE IMMEDIATE 'RESET MASTER'"}, []uint16{needs}},
		{"reset from a procedure", []string{"CREATE OR REPLACE PROCEDURE shop.reset() RESET MASTER", "CALL shop.reset()"}, []uint16{needs}},
		{"purge", []string{"PURGE BINARY LOGS BEFORE NOW()"}, []uint16{needs}},
		{"write without a log", []string{"SET SESSION sql_log_bin = 0"}, []uint16{needs}},
		{"write it for one statement", []string{"SET STATEMENT sql_log_bin = 0 FOR SELECT 1"}, []uint16{needs}},
		{"choose a format", []string{"SET SESSION binlog_format = 'STATEMENT'"}, []uint16{needs}},
		{"choose a row image", []string{"SET SESSION binlog_row_image = 'MINIMAL'"}, []uint16{needs}},
		{"be another server", []string{"SET SESSION server_id = 7"}, []uint16{needs}},
		{"number a transaction", []string{"SET SESSION gtid_seq_no = 7"}, []uint16{needs}},
		{"choose a domain", []string{"SET SESSION gtid_domain_id = 7"}, []uint16{needs}},
		{"write the marker", []string{"CREATE OR REPLACE PROCEDURE mysql.rds_heartbeat2() COMMENT '1' SELECT 1"}, []uint16{guardSays}},
		{"change the marker", []string{"ALTER PROCEDURE mysql.rds_heartbeat2 COMMENT '1'"}, []uint16{guardSays, 1305}},
		{"write the note of the master password", []string{"CREATE OR REPLACE PROCEDURE mysql.rds_master_password() COMMENT '1' SELECT 1"}, []uint16{guardSays}},
		{"drop the note of the master password", []string{"DROP PROCEDURE mysql.rds_master_password"}, []uint16{guardSays, 1305}},
		{"change its row", []string{"UPDATE mysql.proc SET comment = '1'"}, []uint16{signalled}},
	} {
		t.Run(c.name, func(t *testing.T) { deny(t, db, c) })
	}
}
