//go:build integration

package integration

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// TestConvertBothWays converts an instance under a client that must not notice: the
// server that clients have is neither restarted nor moved. Once as it was created, and
// once more after a failover, when the second server writes and the endpoint is held for
// it. MariaDB has the log that a standby lives on while automated backups are on.
func TestConvertBothWays(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		in := harness.Request("converted", engine)
		if engine == "mariadb" {
			in.BackupRetentionPeriod = aws.Int32(1)
		}
		i := s.MustCreate(t, in)
		convertBothWays(t, &pairBed{i, i.Pulse(t)})
	})
}

func convertBothWays(t *testing.T, b *pairBed) {
	i := b.Instance
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
	b.pulse.Stop()
	b.gone(t)
}

// TestConvertWithoutALog converts a MariaDB that writes no binary log: it restarts once to
// have one, and keeps it until it restarts for something else.
func TestConvertWithoutALog(t *testing.T) {
	onceIsEnough(t)
	s := shared(t)
	s.NeedEngine(t, "mariadb", s.Engines(t))
	i := s.MustCreate(t, harness.Request("unlogged", "mariadb"))
	b := &pairBed{i, i.Pulse(t)}
	b.pulse.WaitMore(t, beatsBefore)
	only := onlyMember(t, i)
	before, err := only.Server()
	must(t, err)
	from := time.Now()
	b.SetMultiAZ(t, true)
	b.WaitWhole(t)
	b.pulse.WaitMore(t, beatsAfter)
	gap := b.pulse.Gap(from)
	t.Logf("converted with a restart: %v without an answer", gap.Round(time.Millisecond))
	if now, err := only.Server(); err != nil || now == before || gap > gapBound {
		t.Errorf("server %d, %v, after %d; %v without an answer", now, err, before, gap)
	}
	b.pulse.Verify(t)
	b.unnoticed(t, false)
	b.unnoticed(t, true)
	b.unnoticed(t, false)
	binlog := func() string { return i.Query(t, "SELECT @@GLOBAL.log_bin") }
	if have := binlog(); have != "1" {
		t.Errorf("log_bin is %s while the server runs", have)
	}
	_, err = s.RebootDBInstance(t.Context(), &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(i.Name)})
	must(t, err)
	i.WaitStatus(t, "available")
	b.pulse.WaitMore(t, beatsAfter)
	if have := binlog(); have != "0" {
		t.Errorf("log_bin is %s after a restart", have)
	}
	b.pulse.Verify(t)
	b.pulse.Stop()
	b.gone(t)
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
	became, words := b.WaitSingle, "finished applying modification to convert to a standard (Single-AZ)"
	if multi {
		became, words = b.WaitWhole, "finished applying modification to convert to a Multi-AZ"
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
