//go:build integration

package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kurabe/internal/harness"
)

// commitBar is what a commit may wait for a standby that does not answer. A busy machine
// may take longer, so it is told and not demanded.
const commitBar = 2 * time.Second

// TestStandbyLostAndBack takes the standby away and gives it back. While it is away it
// lacks what is acknowledged, and must not become the writer.
func TestStandbyLostAndBack(t *testing.T) {
	onceIsEnough(t)
	eachPair(t, "standby", lostAndBack)
}

func lostAndBack(t *testing.T, b *pairBed) {
	for _, c := range []struct {
		name string
		back func(t *testing.T, standby harness.Member) error
	}{
		{"it hangs and goes on", func(_ *testing.T, standby harness.Member) error { return standby.Thaw() }},
		{"it hangs and loses its data", func(_ *testing.T, standby harness.Member) error { return standby.LoseData() }},
	} {
		inTurn(t, c.name, func(t *testing.T) {
			_, standby := b.Pair(t)
			b.standbyFrozen(t)
			b.writerAloneDies(t)
			from := time.Now()
			must(t, c.back(t, standby))
			b.back(t, from)
			b.lose(t, func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) })
		})
	}
	inTurn(t, "it is killed", b.standbyKilled)
	inTurn(t, "it hangs, and its writer dies", b.hangsAndIsAlone)
}

// hangsAndIsAlone kills the writer before anybody knows that its standby hangs, which is never
// thawed. Commits wait for the standby by then, so it has all that was acknowledged.
func (b *pairBed) hangsAndIsAlone(t *testing.T) {
	b.WaitWhole(t)
	b.pulse.WaitMore(t, beatsBefore)
	writer, standby := b.Pair(t)
	from := time.Now()
	must(t, standby.Freeze())
	must(t, harness.KillServers(writer))
	b.pulse.WaitMore(t, beatsAfter)
	t.Logf("%v without an answer", b.pulse.Gap(from).Round(time.Millisecond))
	b.settled(t)
}

// standbyFrozen has the standby hang: commits go on without it, and the API says so.
func (b *pairBed) standbyFrozen(t *testing.T) {
	b.pulse.WaitMore(t, beatsBefore)
	_, standby := b.Pair(t)
	from := time.Now()
	must(t, standby.Freeze())
	degraded := harness.Wait(t, gapBound, "no second zone is claimed", func() string {
		_, second := b.Zones(t)
		return second
	})
	b.pulse.WaitMore(t, beatsAfter)
	b.tellWait(t, from)
	t.Logf("told after %v", degraded.Round(time.Millisecond))
	b.WaitEventsFrom(t, from, "standby")
	if d := b.Describe(t); !aws.ToBool(d.MultiAZ) || aws.ToString(d.DBInstanceStatus) != "available" {
		t.Errorf("Multi-AZ %v, status %s: it is to be a Multi-AZ instance that serves", aws.ToBool(d.MultiAZ), aws.ToString(d.DBInstanceStatus))
	}
}

// tellWait tells how long the slowest commit took, and that no client saw an error.
func (b *pairBed) tellWait(t *testing.T, from time.Time) {
	t.Helper()
	longest := b.pulse.LongestWait(from)
	t.Logf("the longest wait of a commit: %v (bar %v)", longest.Round(time.Millisecond), commitBar)
	if longest > gapBound {
		t.Errorf("a commit took %v", longest)
	}
	if n, newest := b.pulse.Errors(from); n > 0 {
		t.Errorf("the client saw %d errors, the newest: %v", n, newest)
	}
}

// writerAloneDies kills the writer while the standby lacks rows: the same server must
// serve again, with all of them.
func (b *pairBed) writerAloneDies(t *testing.T) {
	t.Helper()
	writer, _ := b.Pair(t)
	zone, _ := b.Zones(t)
	pid, err := writer.Server()
	must(t, err)
	from := time.Now()
	must(t, harness.KillServers(writer))
	harness.Wait(t, gapBound, "the writer starts again", func() string {
		if now, err := writer.Server(); err != nil || now == pid {
			return fmt.Sprintf("server %d, %v", now, err)
		}
		return ""
	})
	b.pulse.WaitMore(t, beatsAfter)
	t.Logf("killed alone: %v without an answer", b.pulse.Gap(from).Round(time.Millisecond))
	b.pulse.Verify(t)
	if now, _ := b.Pair(t); now != writer {
		t.Errorf("%s writes, although %s alone had every commit", now.ID, writer.ID)
	}
	if now, second := b.Zones(t); now != zone || second != "" {
		t.Errorf("the zones are %q and %q, want %q and none", now, second, zone)
	}
}

// back demands that the standby is one again.
func (b *pairBed) back(t *testing.T, from time.Time) {
	t.Helper()
	t.Logf("whole %v after it was back", b.WaitWhole(t).Round(time.Millisecond))
	b.WaitEventsFrom(t, from, "standby")
	writer, standby := b.Pair(t)
	synchronous(t, writer, standby)
	b.settled(t)
}

// standbyKilled kills the standby's server, which comes back by itself.
func (b *pairBed) standbyKilled(t *testing.T) {
	b.pulse.WaitMore(t, beatsBefore)
	writer, standby := b.Pair(t)
	pid, err := standby.Server()
	must(t, err)
	from := time.Now()
	must(t, harness.KillServers(standby))
	harness.Wait(t, gapBound, "the standby starts again", func() string {
		if now, err := standby.Server(); err != nil || now == pid {
			return fmt.Sprintf("server %d, %v", now, err)
		}
		return ""
	})
	b.settled(t)
	b.tellWait(t, from)
	if nowWriter, nowStandby := b.Pair(t); nowWriter != writer || nowStandby != standby {
		t.Errorf("%s writes and %s follows: a standby that dies is no failover", nowWriter.ID, nowStandby.ID)
	}
	b.lose(t, func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) })
}

// TestBothKilled kills both servers at once, in both orders, as a machine does that loses
// its power: nobody knows then which of them was the last to hear of a commit.
func TestBothKilled(t *testing.T) {
	onceIsEnough(t)
	eachPair(t, "both", func(t *testing.T, b *pairBed) {
		for round := range 2 {
			for _, first := range []string{"the writer", "the standby"} {
				inTurn(t, fmt.Sprintf("%s first, round %d", first, round+1), func(t *testing.T) { b.bothKilled(t, first) })
			}
		}
	})
}

func (b *pairBed) bothKilled(t *testing.T, first string) {
	b.pulse.WaitMore(t, beatsBefore)
	writer, standby := b.Pair(t)
	from := time.Now()
	if first == "the writer" {
		must(t, harness.KillServers(writer, standby))
	} else {
		must(t, harness.KillServers(standby, writer))
	}
	b.settled(t)
	gap := b.pulse.Gap(from)
	now, _ := b.Pair(t)
	t.Logf("%v without an answer; %s wrote, %s writes", gap.Round(time.Millisecond), writer.ID, now.ID)
	if gap > gapBound {
		t.Errorf("nothing was acknowledged for %v", gap)
	}
}
