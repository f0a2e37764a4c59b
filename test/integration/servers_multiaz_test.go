//go:build integration

package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// TestServersLoseWriterAndPlanner loses the one machine on which the planner, a server of the
// state and the writer of a pair are: the others elect, find out, and take over.
func TestServersLoseWriterAndPlanner(t *testing.T) {
	needRoot(t)
	b := newServersBed(t, 3)
	in := harness.MultiAZRequest("pair", "postgres")
	in.BackupRetentionPeriod = aws.Int32(0)
	i := b.servers[0].MustCreate(t, in)
	i.WaitLike(t, "is whole", wholePair)
	pulse := i.Pulse(t)
	pulse.WaitMore(t, beatsBefore)
	for _, s := range b.servers { // whichever is asked, and whoever hears the standby's host
		waitNear(t, s, 1, `instance="pair"`, `kind="standby"`)
	}
	lost := b.together(t, i)
	t.Logf("server %d plans and has the writer", lost)
	from := time.Now()
	b.servers[lost].Kill(t)
	b.servers[lost].EndWardens(t)
	if err := b.servers[lost].EndDatabases(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.machines[lost].Forget(t)
	i.Service = b.servers[(lost+1)%3]
	pulse.WaitMore(t, beatsAfter)
	gap := pulse.Gap(from)
	t.Logf("the client waited for %v", gap.Round(time.Millisecond))
	if gap > 20*time.Second {
		t.Errorf("clients waited for %v", gap)
	}
	pulse.Verify(t)
	b.servers[lost].Start(t)
	i.WaitLike(t, "is whole again", wholePair)
	pulse.Verify(t)
}

// wholePair says what a pair lacks.
func wholePair(d types.DBInstance) string {
	if status, second := aws.ToString(d.DBInstanceStatus), aws.ToString(d.SecondaryAvailabilityZone); status != "available" || second == "" {
		return fmt.Sprintf("it is %s, its second zone %q", status, second)
	}
	return ""
}

// together has the writer and the planner on one machine, and says which.
func (b *serversBed) together(t *testing.T, i *harness.Instance) int {
	t.Helper()
	for range 6 {
		planner := b.planner(t, 0)
		d := i.Describe(t)
		at := serverZones[planner]
		switch {
		case aws.ToString(d.AvailabilityZone) == at:
			return planner
		case aws.ToString(d.SecondaryAvailabilityZone) == at:
			from := time.Now()
			if err := i.AskFailover(t); err != nil {
				t.Fatal(err)
			}
			i.WaitEventsFrom(t, from, "failover completed")
			i.WaitLike(t, "is whole", wholePair)
		default: // somebody else is to plan
			b.servers[planner].Terminate(t)
			other := (planner + 1) % 3
			harness.Wait(t, lossTime, "another one plans", func() string {
				if b.planner(t, other) == planner {
					return b.hosts(t, other)
				}
				return ""
			})
			b.servers[planner].Start(t)
			b.waitServer(t, planner, other, "ready")
		}
	}
	t.Fatalf("writer and planner do not come together: %s", b.hosts(t, 0))
	return 0
}
