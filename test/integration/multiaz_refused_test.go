//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// TestMultiAZRefusedParameters asks for a parameter that no server starts with. Clients go on
// without it, whichever way it is to take effect, the instance is whole again by itself, and
// when the parameter is reset nothing is left of it.
func TestMultiAZRefusedParameters(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		group := "refused-" + engine
		makeParameterGroup(t, s, group, engine)
		in := harness.MultiAZRequest("refused", engine)
		in.DBParameterGroupName = aws.String(group)
		b := &changeBed{&pairBed{Instance: s.MustCreate(t, in)}, group}
		b.WaitWhole(t)
		b.pulse = b.Pulse(t)
		inTurn(t, "with a failover", b.refusedByTheStandby)
		inTurn(t, "in place", b.refusedByTheWriter)
		b.pulse.Stop()
		b.gone(t)
	})
}

// ask sets the parameter and reboots with it.
func (b *changeBed) ask(t *testing.T, failover bool) (from time.Time) {
	t.Helper()
	b.pulse.WaitMore(t, beatsBefore)
	p := impossible[b.Engine]
	setStatic(t, b.Service, b.group, p.name, p.bad)
	b.waitApply(t, "pending-reboot")
	from = time.Now()
	_, err := b.Service.RebootDBInstance(t.Context(), &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(b.Name), ForceFailover: aws.Bool(failover)})
	must(t, err)
	return from
}

// goesOn demands that the instance has given the parameter up, and has nothing of it after a
// reset, for which no server that serves restarts.
func (b *changeBed) goesOn(t *testing.T, from time.Time) {
	t.Helper()
	b.WaitEventsFrom(t, from, "cannot start", impossible[b.Engine].words, "goes on with the parameters that it had")
	b.waitApply(t, "pending-reboot")
	b.settled(t)
	b.WaitStatus(t, "available")
	session, writer := b.Open(t), b.writer(t)
	_, err := b.Service.ResetDBParameterGroup(t.Context(), &rds.ResetDBParameterGroupInput{DBParameterGroupName: aws.String(b.group), ResetAllParameters: aws.Bool(true)})
	must(t, err)
	b.waitApply(t, "in-sync")
	b.settled(t)
	must(t, b.pulse.Attempt(t.Context(), session))
	if now := b.writer(t); now != writer {
		t.Errorf("%v writes after the reset, and %v did before", now, writer)
	}
}

// refusedByTheStandby: what is to take effect with a failover goes to the standby first, and
// clients notice nothing but the wait for it.
func (b *changeBed) refusedByTheStandby(t *testing.T) {
	writer := b.writer(t)
	from := b.ask(t, true)
	b.WaitEventsFrom(t, from, "Abandoning")
	b.goesOn(t, from)
	if n, newest := b.pulse.Errors(from); n > 0 {
		t.Errorf("the client saw %d errors, the newest: %v", n, newest)
	}
	if now := b.writer(t); now != writer {
		t.Errorf("%v writes, and %v did before", now, writer)
	}
}

// refusedByTheWriter: a restart in place is the writer's own, and the standby takes over.
func (b *changeBed) refusedByTheWriter(t *testing.T) {
	writerZone, standbyZone := b.Zones(t)
	from := b.ask(t, false)
	b.waitZones(t, standbyZone, writerZone)
	b.goesOn(t, from)
	t.Logf("%v without an answer", b.pulse.Gap(from).Round(time.Millisecond))
}

// served is the server that writes, and its process.
type served struct {
	member harness.Member
	pid    int
}

func (b *changeBed) writer(t *testing.T) served {
	t.Helper()
	m, _ := b.Pair(t)
	pid, err := m.Server()
	must(t, err)
	return served{m, pid}
}
