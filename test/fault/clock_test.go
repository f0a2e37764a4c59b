//go:build fault

package fault

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// TestClockGoesBack sets the clock of service, server and clients back by an hour. The
// log has a gap that is told and that a new snapshot ends; the latest moment that is
// offered holds everything that was acknowledged by then; clients notice nothing.
func TestClockGoesBack(t *testing.T) {
	c := newClock(t)
	s := harness.Start(t, harness.Options{Args: []string{"--copy-rate", "0"}})
	// MariaDB and its tool wait until a time of the kernel's clock, which stays as it is,
	// and would turn without a rest.
	s.NeedEngine(t, "postgres", s.Engines(t))
	b := newLogBed(t, s, "postgres")
	first := b.grows(t)
	c.set(t, -time.Hour)
	b.i.WaitEvent(t, "its latest restorable time stands still until the next automated snapshot: the clock went back")
	b.i.WaitEvent(t, "is followed again")
	now := b.offersNow(t)
	b.unnoticed(t)
	// The hour that comes twice has been nowhere yet: nothing of it is offered but what
	// the first one reached.
	b.refused(t, now.Add(30*time.Minute), "")
	b.holdsLatest(t)
	b.compareAt(t, first)
	b.i.Delete(t)
	noOrphans(t, s)
}

// offersNow waits until the latest restorable time is of the clock as it is now: what
// is acknowledged by now can be restored, and nothing after it is offered.
func (b *logBed) offersNow(t *testing.T) time.Time {
	t.Helper()
	now := time.Now()
	harness.Wait(t, restorableTime, "what is acknowledged by now can be restored", func() string {
		if at, err := b.restorable(t); err != nil || at.Before(now) || at.After(time.Now()) {
			return fmt.Sprintf("up to %s, now it is %s, %v", at, time.Now(), err)
		}
		return ""
	})
	return now
}

// holdsLatest restores to the latest moment, and demands every row that had been
// acknowledged when the client ended.
func (b *logBed) holdsLatest(t *testing.T) {
	t.Helper()
	b.offersNow(t)
	name := "latest-" + b.i.Engine
	if _, err := b.s.RestoreDBInstanceToPointInTime(t.Context(), &rds.RestoreDBInstanceToPointInTimeInput{
		SourceDBInstanceIdentifier: aws.String(b.i.Name), TargetDBInstanceIdentifier: aws.String(name),
		UseLatestRestorableTime: aws.Bool(true), BackupRetentionPeriod: aws.Int32(0),
	}); err != nil {
		t.Fatal(err)
	}
	i := *b.i
	i.Name = name
	i.WaitStatus(t, "available")
	rows := b.acked()
	// The last row that was sent may be there without its client having heard so.
	last, want := rows[len(rows)-1].n, fmt.Sprint(len(rows))
	if got := i.Query(t, fmt.Sprintf("SELECT count(*) FROM moments WHERE n <= %d", last)); got != want {
		t.Errorf("%s has %s rows up to number %d, %s were acknowledged", name, got, last, want)
	}
	if more := i.Query(t, fmt.Sprintf("SELECT count(*) FROM moments WHERE n > %d", last)); more != "0" && more != "1" {
		t.Errorf("%s has %s rows after number %d, the last that was acknowledged", name, more, last)
	}
	i.Delete(t)
}

// compareAt restores to a moment before the clock went back. Which rows were written
// by then their numbers say: those after it have earlier times.
func (b *logBed) compareAt(t *testing.T, at time.Time) {
	t.Helper()
	before, turned := &momentBed{s: b.s, i: b.i}, false
	for n, r := range b.acked() {
		r.acked = r.acked.Round(0) // as it was read, not as it went on
		if n > 0 && !turned && r.acked.Before(before.rows[n-1].acked) {
			turned = true
		}
		if turned {
			r.at, r.acked = r.at.Add(time.Hour), r.acked.Add(time.Hour)
		}
		before.rows = append(before.rows, r)
	}
	if !turned {
		t.Fatal("the client's clock never went back")
	}
	before.restore(t, "first-"+b.i.Engine, at.Round(0))
}
