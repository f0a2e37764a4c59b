//go:build integration

package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// TestMultiAZBackups restores to moments before, in and after failovers, from the one
// snapshot that was taken before all of them: the log of the new writer goes on from that of
// the old one.
func TestMultiAZBackups(t *testing.T) {
	onceIsEnough(t)
	eachEngineBeside(t, func(t *testing.T, engine string) {
		s := harness.Start(t, harness.Options{Args: []string{"--copy-rate", "0"}})
		in := harness.MultiAZRequest("backed-up", engine)
		in.BackupRetentionPeriod = aws.Int32(1)
		i := s.MustCreate(t, in)
		b := &backupBed{pairBed: &pairBed{i, i.Pulse(t)}}
		b.grows(t)
		b.grows(t) // a moment rounded down to the second is not before the first one
		b.fail(t, "killed", func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) })
		b.fail(t, "in order", func(t *testing.T, b *pairBed, _ harness.Member) { must(t, b.AskFailover(t)) })
		b.fail(t, "frozen", func(t *testing.T, b *pairBed, writer harness.Member) { b.freezeAndThaw(t, writer) })
		b.pulse.Stop()
		b.noGap(t)
		for _, m := range b.moments {
			t.Run(m.name, func(t *testing.T) { b.restore(t, m) })
		}
		b.gone(t)
	})
}

// backupBed is an instance in two zones whose log is kept.
type backupBed struct {
	*pairBed
	moments []backupMoment
	// retained: the instance is gone, and its backups stay.
	retained bool
}

// backupMoment is one to restore to.
type backupMoment struct {
	name string
	at   time.Time
	// claimed: the API said that it can be restored. Another may be refused.
	claimed bool
}

// backedUpTime is how long a snapshot and the log after it may take on a busy machine.
const backedUpTime = 3 * time.Minute

// grows waits until what is acknowledged by now can be restored, and returns now.
func (b *backupBed) grows(t *testing.T) time.Time {
	t.Helper()
	b.pulse.WaitMore(t, 200) // two seconds
	now := time.Now()
	harness.Wait(t, backedUpTime, "what is acknowledged by now can be restored", func() string {
		if at := aws.ToTime(b.Describe(t).LatestRestorableTime); at.Before(now) {
			return fmt.Sprintf("only up to %s, want %s", at, now)
		}
		return ""
	})
	return now
}

// fail loses the writer and notes moments before, within and after.
func (b *backupBed) fail(t *testing.T, name string, strike func(*testing.T, *pairBed, harness.Member)) {
	t.Helper()
	note := func(when string, at time.Time) {
		b.moments = append(b.moments, backupMoment{when + " it was " + name, at.Truncate(time.Second), true})
	}
	b.grows(t)
	struck := time.Now()
	b.lose(t, strike)
	// The seconds are those before the fault, within the failover, and after it.
	note("before", struck)
	note("when", struck.Add(time.Second))
	note("right after", struck.Add(2*time.Second))
	came := time.Now()
	note("after", b.grows(t))
	t.Logf("%s: what came after can be restored %v later", name, time.Since(came).Round(time.Millisecond))
}

// noGap: nothing tells of one, and no snapshot was taken because of one.
func (b *backupBed) noGap(t *testing.T) {
	t.Helper()
	for _, e := range b.Events(t) {
		if strings.Contains(e, "has a gap") || strings.Contains(e, "is followed again") {
			t.Errorf("event: %s", e)
		}
	}
	out, err := b.Service.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{DBInstanceIdentifier: aws.String(b.Name), SnapshotType: aws.String("automated")})
	must(t, err)
	if n := len(out.DBSnapshots); n != 1 {
		t.Errorf("%d automated snapshots, not the first alone", n)
	}
}

// restore restores to a moment: every row that was acknowledged by then is there, and none
// that was begun later. It returns the zone that the restored instance was in.
func (b *backupBed) restore(t *testing.T, m backupMoment) (zone string) {
	name := fmt.Sprintf("restored-%d", m.at.Unix())
	in := &rds.RestoreDBInstanceToPointInTimeInput{
		SourceDBInstanceIdentifier: aws.String(b.Name), TargetDBInstanceIdentifier: aws.String(name),
		RestoreTime: aws.Time(m.at), BackupRetentionPeriod: aws.Int32(0),
	}
	if b.retained {
		in.SourceDBInstanceIdentifier, in.SourceDbiResourceId = nil, aws.String(b.ID)
	}
	out, err := b.Service.RestoreDBInstanceToPointInTime(t.Context(), in)
	if err != nil && !m.claimed {
		t.Logf("%s is refused: %v", m.at, err)
		return ""
	}
	if err != nil { // another host may have to push its part first
		harness.Wait(t, backedUpTime, m.name+" can be restored", func() string {
			if out, err = b.Service.RestoreDBInstanceToPointInTime(t.Context(), in); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	i := &harness.Instance{Service: b.Service, Name: name, ID: aws.ToString(out.DBInstance.DbiResourceId), Engine: b.Engine,
		User: b.User, Password: b.Password, Database: b.Database}
	i.WaitLike(t, "is available", func(d types.DBInstance) string {
		if status := aws.ToString(d.DBInstanceStatus); status != "available" {
			return "it is " + status
		}
		return ""
	})
	rows, err := b.pulse.RowsAt(t.Context(), i.Login(t))
	must(t, err)
	have := map[string]int{}
	for _, r := range rows {
		have[r]++
	}
	by := 0
	for _, beat := range b.pulse.Beats() {
		n := strconv.FormatInt(beat.N, 10)
		switch {
		case !beat.Acked.After(m.at):
			by++
			if have[n] != 1 {
				t.Fatalf("%s: row %s, acknowledged at %s, is there %d times", m.at, n, beat.Acked, have[n])
			}
		case beat.Began.After(m.at) && have[n] > 0:
			t.Fatalf("%s: row %s is there, begun at %s", m.at, n, beat.Began)
		}
	}
	t.Logf("%s: %d rows acknowledged by then, %d there", m.at.Format(time.TimeOnly), by, len(rows))
	zone = aws.ToString(i.Describe(t).AvailabilityZone)
	i.Delete(t)
	return zone
}
