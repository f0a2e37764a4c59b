//go:build integration

package integration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// TestStandbyOutrun has the writer give up log that a standby lacks which hangs. It can
// never catch up then, so it is ended though it hangs, and made anew by itself.
func TestStandbyOutrun(t *testing.T) {
	onceIsEnough(t)
	b := newPairBed(t, "outrun")
	for _, c := range []struct {
		name string
		lose func(b *pairBed, t *testing.T, writer, standby harness.Member)
	}{
		{"its log is given up", (*pairBed).logGivenUp},
		{"its slot is gone", (*pairBed).slotGone},
	} {
		inTurn(t, c.name, func(t *testing.T) {
			writer, standby := b.Pair(t)
			b.standbyFrozen(t)
			from := time.Now()
			c.lose(b, t, writer, standby)
			b.back(t, from)
			b.WaitEventsFrom(t, from, "made anew", "every commit again")
			if n, newest := b.pulse.Errors(from); n > 0 {
				t.Errorf("the client saw %d errors, the newest: %v", n, newest)
			}
			b.lose(t, func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) })
		})
	}
}

// logGivenUp has the writer keep next to nothing for a follower, write some segments and
// remove them. A session that still sends to a server which hangs would not end before that
// takes what it is sent, and a checkpoint that is to give up its slot waits for it.
func (b *pairBed) logGivenUp(t *testing.T, writer, _ harness.Member) {
	harness.Wait(t, gapBound, "the session of the standby is given up", func() string {
		if n, err := writer.Ask(t.Context(), "SELECT count(*)::text FROM pg_stat_replication"); err != nil || n != "0" {
			return fmt.Sprintf("%q sessions, %v", n, err)
		}
		return ""
	})
	must(t, writer.Do(t.Context(), "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", "SELECT pg_reload_conf()"))
	for range 4 {
		must(t, writer.Do(t.Context(), "SELECT pg_logical_emit_message(true, 'test', 'x'::text)", "SELECT pg_switch_wal()"))
	}
	must(t, writer.Do(t.Context(), "CHECKPOINT", "ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()"))
}

// holdUpBound is what commits may wait when the writer gives up the log of a standby that
// hangs before they go on without it. A busy machine takes longer than the
// seconds that are meant (docs/guide/multi-az.md), and much less than the minute or more for
// which a session to a server that hangs could live.
const holdUpBound = 15 * time.Second

// TestStandbyOutrunAtOnce has a checkpoint of the writer give up the log of a standby while
// commits still wait for it. The checkpoint waits for the end of the session that sends to
// the standby, and only the process that makes it can have commits wait no more.
func TestStandbyOutrunAtOnce(t *testing.T) {
	onceIsEnough(t)
	b := newPairBed(t, "outrunatonce")
	writer, standby := b.Pair(t)
	must(t, writer.Do(t.Context(), "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", "SELECT pg_reload_conf()"))
	b.pulse.WaitMore(t, beatsBefore)
	from := time.Now()
	must(t, standby.Freeze())
	var statements []string
	for range 4 {
		// Without a transaction, whose commit would wait.
		statements = append(statements, "SELECT pg_logical_emit_message(false, 'test', 'x'::text)", "SELECT pg_switch_wal()")
	}
	must(t, writer.Do(t.Context(), append(statements, "CHECKPOINT")...))
	t.Logf("the checkpoint ended after %v", time.Since(from).Round(time.Millisecond))
	b.WaitEventsFrom(t, from, "made anew")
	b.pulse.WaitMore(t, beatsAfter)
	if longest := b.pulse.LongestWait(from); longest > holdUpBound {
		t.Errorf("a commit took %v", longest)
	} else {
		t.Logf("the longest wait of a commit: %v", longest.Round(time.Millisecond))
	}
	if n, newest := b.pulse.Errors(from); n > 0 {
		t.Errorf("the client saw %d errors, the newest: %v", n, newest)
	}
	must(t, writer.Do(t.Context(), "ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()"))
	b.back(t, from)
	b.lose(t, func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) })
}

// slotGone drops the slot, as soon as the session that uses it is given up.
func (b *pairBed) slotGone(t *testing.T, writer, standby harness.Member) {
	slot := fmt.Sprintf("kurabe_member_%d", standby.Number())
	harness.Wait(t, gapBound, "the slot is dropped", func() string {
		if err := writer.Do(t.Context(), "SELECT pg_drop_replication_slot('"+slot+"')"); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestStandbyOutrunMariaDB has a standby come back when the writer has purged what it lacks.
// It finds that out itself, and is made anew by itself.
func TestStandbyOutrunMariaDB(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{})
	s.NeedEngine(t, "mariadb", s.Engines(t))
	b := makePair(t, s, "outrun", "mariadb")
	writer, standby := b.Pair(t)
	b.standbyFrozen(t)
	from := time.Now()
	// Else the writer's thread goes on sending to what the network holds for the standby.
	harness.Wait(t, gapBound, "the writer sends to nobody", func() string {
		thread, err := writer.Ask(t.Context(), "SELECT COALESCE(MAX(ID), 0) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'")
		if err != nil {
			return err.Error()
		}
		if thread != "0" {
			_ = writer.Do(t.Context(), "KILL "+thread) // it may have ended meanwhile
			return "to thread " + thread
		}
		return ""
	})
	b.pulse.WaitMore(t, beatsAfter)
	must(t, writer.Do(t.Context(), "FLUSH BINARY LOGS"))
	newest, err := writer.Ask(t.Context(), "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'BINLOG_SNAPSHOT_FILE'")
	must(t, err)
	harness.Wait(t, gapBound, "the log is purged", func() string {
		must(t, writer.Do(t.Context(), "PURGE BINARY LOGS TO '"+newest+"'"))
		left, err := filepath.Glob(filepath.Join(writer.DataDir(), "mysql-bin-changelog.[0-9]*"))
		if err != nil || len(left) != 1 {
			return fmt.Sprintf("%v, %v", left, err)
		}
		return ""
	})
	// What a folder is known by may be that of the next one (an inode is used again).
	old := filepath.Join(standby.DataDir(), "of-before")
	must(t, os.WriteFile(old, nil, 0o600))
	must(t, standby.Thaw())
	b.back(t, from)
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its data is what it was, though it lacked log that was gone: %v", err)
	}
	if n, newest := b.pulse.Errors(from); n > 0 {
		t.Errorf("the client saw %d errors, the newest: %v", n, newest)
	}
	b.lose(t, func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) })
}
