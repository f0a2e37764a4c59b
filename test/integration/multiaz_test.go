//go:build integration

package integration

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// gapBound is what no fault of one server may take on the busiest of machines; what it
// takes on a quiet one, make bench BENCH="--only failover" says.
const gapBound = 30 * time.Second

// beatsBefore and beatsAfter are the rows that are written before a fault, and after it
// before anything is asked.
const (
	beatsBefore = 20
	beatsAfter  = 20
)

// pairBed is an instance in two zones, and a client that writes into it all the time.
type pairBed struct {
	*harness.Instance
	pulse *harness.Pulse
}

// eachPair runs a test on such an instance of each engine.
func eachPair(t *testing.T, name string, test func(t *testing.T, b *pairBed)) {
	t.Helper()
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := makePair(t, s, name, engine)
		test(t, b)
		b.pulse.Stop()
		b.gone(t)
	})
}

// newPairBed is such an instance of PostgreSQL alone, on a service of its own.
func newPairBed(t *testing.T, name string) *pairBed {
	t.Helper()
	s := harness.Start(t, harness.Options{})
	s.NeedEngine(t, "postgres", s.Engines(t))
	return makePair(t, s, name, "postgres")
}

func makePair(t *testing.T, s *harness.Service, name, engine string) *pairBed {
	t.Helper()
	i := s.MustCreate(t, harness.MultiAZRequest(name, engine))
	t.Logf("whole %v after it was available", i.WaitWhole(t).Round(time.Millisecond))
	return &pairBed{i, i.Pulse(t)}
}

// gone deletes the instance, unless the test has done so.
func (b *pairBed) gone(t *testing.T) {
	t.Helper()
	if len(b.Service.Members(b.ID)) > 0 {
		b.Delete(t)
	}
	noMemberLeft(t, b.Instance)
}

// settled demands what must be true after everything: whole, and every row there.
func (b *pairBed) settled(t *testing.T) {
	t.Helper()
	b.pulse.WaitMore(t, beatsAfter)
	b.WaitWhole(t)
	b.pulse.Verify(t)
}

// failovers are the ways to lose a writer.
var failovers = []struct {
	name   string
	strike func(t *testing.T, b *pairBed, writer harness.Member)
}{
	{"killed", func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) }},
	{"frozen", func(t *testing.T, b *pairBed, writer harness.Member) { b.freezeAndThaw(t, writer) }},
	{"in order", func(t *testing.T, b *pairBed, _ harness.Member) { must(t, b.AskFailover(t)) }},
}

// failoverEvents are words of RDS-EVENT-0013 and RDS-EVENT-0049.
var failoverEvents = []string{"failover started", "failover completed"}

// inTurn runs a part of a test whose next part builds on it.
func inTurn(t *testing.T, name string, part func(t *testing.T)) {
	t.Helper()
	if !t.Run(name, part) {
		t.FailNow()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// freezeAndThaw has the writer hang until another server serves. A session that was open
// before waits for an answer meanwhile, and tries once more when the server goes on: what
// is acknowledged to it counts like any other row.
func (b *pairBed) freezeAndThaw(t *testing.T, writer harness.Member) {
	t.Helper()
	session := b.Open(t)
	must(t, writer.Freeze())
	var waits sync.WaitGroup
	// It may be acknowledged or not; the ledger knows.
	waits.Go(func() { _ = b.pulse.Attempt(t.Context(), session) })
	b.pulse.WaitMore(t, beatsAfter)
	must(t, writer.Thaw())
	waits.Wait()
	_ = b.pulse.Attempt(t.Context(), session)
	session.Close()
}

// TestMultiAZ loses the writer of one instance in every way, twice: so each server is lost
// in each way. The endpoint is the first writer's own at first, and is held for whoever
// writes ever after.
func TestMultiAZ(t *testing.T) {
	eachPair(t, "pair", func(t *testing.T, b *pairBed) {
		for round := range 2 {
			for _, f := range failovers {
				inTurn(t, fmt.Sprintf("%s, round %d", f.name, round+1), func(t *testing.T) { b.lose(t, f.strike) })
			}
		}
		b.pulse.Stop()
		b.pulse.Verify(t)
	})
}

// lose has a fault happen to the writer, and demands that the standby has taken over.
func (b *pairBed) lose(t *testing.T, strike func(*testing.T, *pairBed, harness.Member)) {
	b.pulse.WaitMore(t, beatsBefore)
	writer, standby := b.Pair(t)
	writerZone, standbyZone := b.Zones(t)
	endpoint := b.Login(t)
	from := time.Now()
	strike(t, b, writer)
	b.waitZones(t, standbyZone, writerZone)
	whole := time.Since(from)
	b.settled(t)
	gap := b.pulse.Gap(from)
	errs, newest := b.pulse.Errors(from)
	t.Logf("from %s to %s: %v without an answer, %d errors (%v), whole after %v", writer.ID, standby.ID,
		gap.Round(time.Millisecond), errs, newest, whole.Round(time.Millisecond))
	if gap > gapBound {
		t.Errorf("nothing was acknowledged for %v", gap)
	}
	if nowWriter, nowStandby := b.Pair(t); nowWriter != standby || nowStandby != writer {
		t.Errorf("%s writes and %s follows; before, %s wrote and %s followed", nowWriter.ID, nowStandby.ID, writer.ID, standby.ID)
	}
	if now := b.Login(t); now.Address != endpoint.Address || now.Port != endpoint.Port {
		t.Errorf("the endpoint is %s port %d, it was %s port %d", now.Address, now.Port, endpoint.Address, endpoint.Port)
	}
	b.WaitEventsFrom(t, from, failoverEvents...)
	synchronous(t, standby, writer)
}

// waitZones waits until the instance is whole with its servers in these zones.
func (b *pairBed) waitZones(t *testing.T, writer, standby string) {
	t.Helper()
	b.WaitLike(t, "writes in "+writer+" and has its standby in "+standby, func(d types.DBInstance) string {
		if now, other := aws.ToString(d.AvailabilityZone), aws.ToString(d.SecondaryAvailabilityZone); now != writer || other != standby {
			return fmt.Sprintf("it is %s, its zones are %q and %q", aws.ToString(d.DBInstanceStatus), now, other)
		}
		return b.Service.NotWhole(d)
	})
}

// synchronous demands that the database waits for the standby as the record says: it was
// told first.
func synchronous(t *testing.T, writer, standby harness.Member) {
	t.Helper()
	if have, err := writer.WaitsFor(t.Context()); err != nil || !slices.Equal(have, []int{standby.Number()}) {
		t.Errorf("commits of %s wait for %v, %v; want %d", writer.ID, have, err, standby.Number())
	}
}
