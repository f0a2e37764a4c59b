//go:build integration

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// TestReadReplicaOutrun has a replica hang until its source has given up log that it lacks:
// it can never catch up then, and is made anew by itself. A writer knows of that when it has
// no slot for it any more; a replica of a replica finds it out when it asks in vain.
func TestReadReplicaOutrun(t *testing.T) {
	onceIsEnough(t)
	t.Parallel() // see TestReadReplicaAhead
	s := harness.Start(t, harness.Options{})
	s.NeedEngine(t, "postgres", s.Engines(t))
	b := newReplicaBed(t, s, "outrun", "postgres", false)
	lower := &replicaBed{t: t, source: b.source, pulse: b.pulse, replica: b.replica.MustReplicate(t, "outrun-lower")}
	inTurn(t, "of the source", func(t *testing.T) {
		b.outrun(t, b.source)
		b.replica.WaitEventsFrom(t, time.Now().Add(-time.Hour), "made anew")
		lower.caughtUp(t)
	})
	inTurn(t, "of a replica", func(t *testing.T) {
		lower.outrun(t, b.replica)
		lower.replica.WaitEventsFrom(t, time.Now().Add(-time.Hour), "Replication has stopped", "resumed")
	})
}

// outrun freezes the replica of an instance, takes its slot there, and has the log go on and
// be removed up to the newest segments.
func (b *replicaBed) outrun(t *testing.T, followed *harness.Instance) {
	b.caughtUp(t)
	replica, server, writer := onlyMember(t, b.replica), onlyMember(t, followed), onlyMember(t, b.source)
	slot := "kurabe_replica_" + strings.ToLower(strings.ReplaceAll(b.replica.ID, "-", "_"))
	must(t, replica.Freeze())
	harness.Wait(t, gapBound, "the slot is dropped", func() string {
		if err := server.Do(t.Context(), "SELECT pg_drop_replication_slot('"+slot+"')"); err != nil {
			return err.Error()
		}
		return ""
	})
	had, err := server.Ask(t.Context(), oldestSegment)
	must(t, err)
	harness.Wait(t, gapBound, "the log is removed", func() string {
		must(t, writer.Do(t.Context(), "SELECT pg_logical_emit_message(true, 'test', 'x'::text)", "SELECT pg_switch_wal()", "CHECKPOINT"))
		must(t, server.Do(t.Context(), "CHECKPOINT"))
		if has, err := server.Ask(t.Context(), oldestSegment); err != nil || has <= had {
			return fmt.Sprint("it begins with ", has, ", ", err)
		}
		return ""
	})
	must(t, replica.Thaw())
	b.caughtUp(t)
}

// oldestSegment is the oldest part of the log that a server has, without its timeline.
const oldestSegment = "SELECT min(right(name, 16)) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'"
