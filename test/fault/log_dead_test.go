//go:build fault

package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kurabe/internal/harness"
)

const (
	deadGiB   = 5                         // the smallest storage there is
	deadBytes = deadGiB << 30 / 10        // of log that may wait for its consumer
	overBytes = deadBytes + 3*pouredBytes // what is written meanwhile
	// pouredBytes is written before the table is emptied again.
	pouredBytes = 32 << 20
	// fileBytes is the largest file of a log, with the transaction that ends it.
	fileBytes = 64<<20 + 2*pourBytes
)

// TestConsumerOfTheLogIsDead: the service is dead while more is written than may wait
// for it. PostgreSQL gives its log up by itself, at a checkpoint. MariaDB has no such
// bound: its log is bounded as soon as a service runs, also by one that reads nothing.
// Then the gap is told, and a snapshot ends it.
func TestConsumerOfTheLogIsDead(t *testing.T) {
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // each engine on a service of its own
			s := harness.Start(t, harness.Options{Fault: true, Args: []string{"--copy-rate", "0"}})
			s.NeedEngine(t, engine, s.Engines(t))
			in := harness.Request("source-"+engine, engine)
			in.BackupRetentionPeriod, in.AllocatedStorage = aws.Int32(1), aws.Int32(deadGiB)
			b := writeInto(t, s.MustCreate(t, in))
			b.grows(t)
			before := b.grows(t) // the moment before may be one before the snapshot
			session := b.i.Open(t)
			s.Kill(t)
			for range overBytes / 2 / pouredBytes {
				b.pourInto(t, session, pouredBytes)
			}
			gap := time.Now()
			for range overBytes / 2 / pouredBytes {
				b.pourInto(t, session, pouredBytes)
			}
			mark := s.Log.Mark()
			b.boundHolds(t, session)
			b.i.WaitEvent(t, "has a gap, and its latest restorable time stands still until the next automated snapshot")
			b.i.WaitEvent(t, "is followed again")
			b.said(t, mark, "step=take-snapshot") // by itself
			b.grows(t)
			after := b.grows(t)
			b.unnoticed(t)
			b.refused(t, gap, "its log has a gap there")
			b.exact(t, before, after)
			b.i.Delete(t)
			noOrphans(t, s)
		})
	}
}

// boundHolds starts the service, and demands that the log is within its bound: before
// that, if the server sees to it, else before anybody reads any of it.
func (b *logBed) boundHolds(t *testing.T, session harness.Session) {
	t.Helper()
	if b.i.Engine == "postgres" {
		if err := session.Exec(t.Context(), "CHECKPOINT"); err != nil {
			t.Fatal(err)
		}
		b.bounded(t, session)
		b.s.Start(t)
		return
	}
	if held := b.unread(t, session); held <= deadBytes {
		t.Fatalf("only %d bytes of log wait, not more than %d", held, deadBytes)
	}
	h := holdAt(t, b.s, "before:follow-log")
	b.s.Start(t)
	h.reached(t)
	b.bounded(t, session)
	h.release(t)
}

func (b *logBed) bounded(t *testing.T, session harness.Session) {
	t.Helper()
	harness.Wait(t, settleTime, "the server gives its log up", func() string {
		if held := b.unread(t, session); held > deadBytes+fileBytes {
			return fmt.Sprintf("%d bytes of log are there, of %d", held, deadBytes)
		}
		return ""
	})
}

// unread are the bytes of log in the data folder. Files that PostgreSQL keeps to write
// into them later have later names.
func (b *logBed) unread(t *testing.T, session harness.Session) int64 {
	t.Helper()
	pattern, newest := "mysql-bin-changelog.[0-9]*", "\xff"
	if b.i.Engine == "postgres" {
		names, err := session.Rows(t.Context(), "SELECT pg_walfile_name(pg_current_wal_lsn())")
		if err != nil {
			t.Fatal(err)
		}
		pattern, newest = filepath.Join("pg_wal", strings.Repeat("[0-9A-F]", 24)), names[0]
	}
	files, _ := filepath.Glob(filepath.Join(b.i.Home(), "data", pattern)) // the pattern is well formed
	bytes := int64(0)
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && filepath.Base(file) <= newest {
			bytes += info.Size()
		}
	}
	return bytes
}
