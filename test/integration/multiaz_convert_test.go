//go:build integration

package integration

import (
	"slices"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// TestConvertBothWays converts an instance under a client that must not notice: the
// server that clients have is neither restarted nor moved. Once as it was created, and
// once more after a failover, when the second server writes and the endpoint is held for
// it.
func TestConvertBothWays(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	s.NeedEngine(t, "postgres", s.Engines(t))
	i := s.MustCreate(t, harness.Request("converted", "postgres"))
	b := &pairBed{i, i.Pulse(t)}
	first := onlyMember(t, i)
	b.unnoticed(t, true)
	b.unnoticed(t, false)
	if now := onlyMember(t, i); now != first {
		t.Errorf("%s is left, and %s wrote", now.ID, first.ID)
	}
	b.unnoticed(t, true)
	_, second := b.Pair(t)
	b.lose(t, func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) })
	endpoint := b.Login(t)
	b.unnoticed(t, false)
	if now := onlyMember(t, i); now != second {
		t.Errorf("%s is left, and %s wrote", now.ID, second.ID)
	}
	b.ownDeath(t, second)
	b.unnoticed(t, true)
	if _, third := b.Pair(t); slices.Contains([]int{first.Number(), second.Number()}, third.Number()) {
		t.Errorf("the new standby is %s: a number is never used again", third.ID)
	}
	b.lose(t, func(t *testing.T, b *pairBed, _ harness.Member) { must(t, b.AskFailover(t)) })
	if now := b.Login(t); now.Address != endpoint.Address || now.Port != endpoint.Port {
		t.Errorf("the endpoint is %s port %d, it was %s port %d", now.Address, now.Port, endpoint.Address, endpoint.Port)
	}
	b.Delete(t)
	noMemberLeft(t, b.Instance)
}

func onlyMember(t *testing.T, i *harness.Instance) harness.Member {
	t.Helper()
	members := i.Service.Members(i.ID)
	if len(members) != 1 {
		t.Fatalf("%s has %d servers", i.Name, len(members))
	}
	return members[0]
}

// unnoticed converts, and demands that the client saw no error and its server lives on.
func (b *pairBed) unnoticed(t *testing.T, multi bool) {
	t.Helper()
	b.pulse.WaitMore(t, beatsBefore)
	writer, err := b.Service.WriterOf(t.Context(), b.ID, b.Login(t))
	must(t, err)
	pid, err := writer.Server()
	must(t, err)
	from := time.Now()
	b.SetMultiAZ(t, multi)
	became, words := b.WaitSingle, "Single-AZ"
	if multi {
		became, words = b.WaitWhole, "to a Multi-AZ"
	}
	took := became(t)
	b.WaitEventsFrom(t, from, words)
	b.pulse.WaitMore(t, beatsAfter)
	t.Logf("Multi-AZ %v: after %v; the longest wait of a commit %v", multi, took.Round(time.Millisecond), b.pulse.LongestWait(from).Round(time.Millisecond))
	if n, newest := b.pulse.Errors(from); n > 0 {
		t.Errorf("Multi-AZ %v: the client saw %d errors, the newest: %v", multi, n, newest)
	}
	if now, err := writer.Server(); err != nil || now != pid {
		t.Errorf("Multi-AZ %v: the server of %s is %d, %v; it was %d", multi, writer.ID, now, err, pid)
	}
	b.pulse.Verify(t)
}

// ownDeath kills the only server that is left, which no failover can help: it comes back
// by itself, behind the endpoint that is held for it.
func (b *pairBed) ownDeath(t *testing.T, only harness.Member) {
	t.Helper()
	from := time.Now()
	must(t, harness.KillServers(only))
	b.pulse.WaitMore(t, beatsAfter)
	b.WaitSingle(t)
	gap := b.pulse.Gap(from)
	t.Logf("killed as the only one: %v without an answer", gap.Round(time.Millisecond))
	if gap > gapBound {
		t.Errorf("nothing was acknowledged for %v", gap)
	}
	b.pulse.Verify(t)
}
