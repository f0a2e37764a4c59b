//go:build integration

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// TestMultiAZStopStart stops and starts both servers together, as they were made and with
// the second one as the writer.
func TestMultiAZStopStart(t *testing.T) {
	onceIsEnough(t)
	eachPair(t, "stopped", func(t *testing.T, b *pairBed) {
		inTurn(t, "as it was made", b.stopStart)
		b.lose(t, func(t *testing.T, b *pairBed, _ harness.Member) { must(t, b.AskFailover(t)) })
		inTurn(t, "after a failover", b.stopStart)
	})
}

func (b *pairBed) stopStart(t *testing.T) {
	b.pulse.WaitMore(t, beatsBefore)
	writer, standby := b.Pair(t)
	writerZone, standbyZone := b.Zones(t)
	if _, err := b.Service.StopDBInstance(t.Context(), &rds.StopDBInstanceInput{DBInstanceIdentifier: aws.String(b.Name)}); err != nil {
		t.Fatal(err)
	}
	b.WaitStatus(t, "stopped")
	for _, m := range []harness.Member{writer, standby} {
		if left := b.Service.Processes(m.ID); len(left) > 0 {
			t.Errorf("%s still has the processes %v", m.ID, left)
		}
	}
	from := time.Now()
	if _, err := b.Service.StartDBInstance(t.Context(), &rds.StartDBInstanceInput{DBInstanceIdentifier: aws.String(b.Name)}); err != nil {
		t.Fatal(err)
	}
	b.waitZones(t, writerZone, standbyZone)
	b.settled(t)
	if now, _ := b.Pair(t); now != writer {
		t.Errorf("%s writes, and %s did before the stop", now.ID, writer.ID)
	}
	for _, message := range b.EventsFrom(t, from) {
		if strings.Contains(message, "unexpectedly") || strings.Contains(message, "failover") {
			t.Errorf("a stop in order is told of as %q", message)
		}
	}
}

// pairParameter is one to be set, and what both servers must say of it then.
type pairParameter struct {
	what, name, value, shown string
	static                   bool
	failover                 bool // takes effect with one that is asked for
}

// pairParameters are what a standby could miss: one that a reload takes up, and one that
// only a start does. A PostgreSQL that follows must have it no lower than its writer, or it
// stops following.
var pairParameters = map[string][]pairParameter{
	"postgres": {
		{"dynamic parameter", "work_mem", "6144", "6MB", false, false},
		{"static parameter, higher", "max_connections", "150", "150", true, false},
		{"static parameter, lower", "max_connections", "90", "90", true, false},
		{"static parameter, with a failover", "max_locks_per_transaction", "96", "96", true, true},
	},
	"mariadb": {
		{"dynamic parameter", "max_connections", "150", "150", false, false},
		{"static parameter, higher", "back_log", "170", "170", true, false},
		{"static parameter, lower", "back_log", "70", "70", true, false},
		{"static parameter, with a failover", "back_log", "90", "90", true, true},
	},
}

// TestMultiAZPasswordAndParameters changes what a standby could miss: a password, which
// is in the data, and parameters.
func TestMultiAZPasswordAndParameters(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		group := "both-servers-" + engine
		makeParameterGroup(t, s, group, engine)
		in := harness.MultiAZRequest("changed", engine)
		in.DBParameterGroupName = aws.String(group)
		b := &changeBed{&pairBed{Instance: s.MustCreate(t, in)}, group}
		b.WaitWhole(t)
		inTurn(t, "password", b.password)
		for _, p := range pairParameters[engine] {
			inTurn(t, p.what, func(t *testing.T) { b.parameter(t, p) })
		}
		b.gone(t)
	})
}

type changeBed struct {
	*pairBed
	group string
}

// password sets another one, which must be the only one before and after a failover.
func (b *changeBed) password(t *testing.T) {
	old := b.Login(t)
	const next = "Another-Passw0rd-0815"
	b.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.MasterUserPassword = aws.String(next) })
	b.Password = next
	holds := func(when string) {
		t.Helper()
		harness.Wait(t, gapBound, "the new password is in force "+when, func() string {
			session, err := harness.Open(t.Context(), b.Login(t))
			if err != nil {
				return err.Error()
			}
			session.Close()
			return ""
		})
		if session, err := harness.Open(t.Context(), old); err == nil {
			session.Close()
			t.Errorf("the old password holds %s", when)
		}
	}
	holds("before the failover")
	b.pulse = b.Pulse(t)
	b.lose(t, func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) })
	holds("after the failover")
}

// parameter sets one, which must be in force on both servers before and after a failover.
func (b *changeBed) parameter(t *testing.T, p pairParameter) {
	method := types.ApplyMethodImmediate
	if p.static {
		method = types.ApplyMethodPendingReboot
	}
	b.pulse = b.Pulse(t)
	if _, err := b.Service.ModifyDBParameterGroup(t.Context(), &rds.ModifyDBParameterGroupInput{
		DBParameterGroupName: aws.String(b.group), Parameters: []types.Parameter{{ParameterName: aws.String(p.name), ParameterValue: aws.String(p.value), ApplyMethod: method}},
	}); err != nil {
		t.Fatal(err)
	}
	if p.static {
		b.waitApply(t, "pending-reboot")
		from := time.Now()
		before, _ := b.Pair(t)
		if _, err := b.Service.RebootDBInstance(t.Context(), &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(b.Name), ForceFailover: aws.Bool(p.failover)}); err != nil {
			t.Fatal(err)
		}
		if p.failover {
			b.WaitEventsFrom(t, from, failoverEvents...)
		}
		b.waitApply(t, "in-sync")
		b.settled(t)
		if after, _ := b.Pair(t); p.failover == (after == before) {
			t.Errorf("%s wrote before, %s after", before.ID, after.ID)
		}
		t.Logf("rebooted: %v without an answer", b.pulse.Gap(from).Round(time.Millisecond))
	}
	b.onBoth(t, p)
	b.WaitWhole(t) // the standby may just have restarted with it
	b.lose(t, func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) })
	b.onBoth(t, p)
	b.waitApply(t, "in-sync")
}

func (b *changeBed) waitApply(t *testing.T, want string) {
	t.Helper()
	b.WaitLike(t, "has its parameters "+want, func(d types.DBInstance) string {
		if status := aws.ToString(d.DBParameterGroups[0].ParameterApplyStatus); status != want {
			return "they are " + status
		}
		return ""
	})
}

// onBoth asks each server itself.
func (b *changeBed) onBoth(t *testing.T, p pairParameter) {
	t.Helper()
	question := "SHOW " + p.name
	if b.Engine == "mariadb" {
		question = "SELECT @@GLOBAL." + p.name
	}
	writer, standby := b.Pair(t)
	for _, m := range []harness.Member{writer, standby} {
		harness.Wait(t, gapBound, m.ID+" has "+p.name+" "+p.shown, func() string {
			if have, err := m.Ask(t.Context(), question); err != nil || have != p.shown {
				return fmt.Sprintf("%q, %v", have, err)
			}
			return ""
		})
	}
}
