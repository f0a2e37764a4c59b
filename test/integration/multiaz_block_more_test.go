//go:build integration

package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe"
	"kurabe/internal/harness"
)

// TestClusterBlocks: with one reader commits go on, with none they wait.
func TestClusterBlocks(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) { clusterBlocks(t, s, engine) })
}

func clusterBlocks(t *testing.T, s *harness.Service, engine string) {
	group := aws.String("ring-blocks-" + engine)
	_, err := s.CreateDBClusterParameterGroup(t.Context(), &rds.CreateDBClusterParameterGroupInput{
		DBClusterParameterGroupName: group, DBParameterGroupFamily: familyOf(t, s, engine), Description: aws.String("for a test"),
	})
	must(t, err)
	_, err = s.ModifyDBClusterParameterGroup(t.Context(), &rds.ModifyDBClusterParameterGroupInput{DBClusterParameterGroupName: group, Parameters: standbyLost(kurabe.StandbyLostBlock)})
	must(t, err)
	b := newClusterBed(t, s, engine, func(in *rds.CreateDBClusterInput) { in.DBClusterParameterGroupName = group })
	b.pulse.WaitMore(t, beatsBefore)
	first := b.follower(t)
	must(t, first.Freeze())
	b.pulse.WaitMore(t, 300) // three seconds, in which it is known to hang
	var second harness.Member
	for _, m := range s.Members(b.id) {
		if m.Follows() && m != first {
			second = m
		}
	}
	must(t, second.Freeze())
	harness.Wait(t, gapBound, "commits wait", func() string {
		acked := b.pulse.Acked()
		out, err := kurabeCommand(s, harness.Binary(t), "ls")
		if err != nil || !strings.Contains(out, "commits wait") || b.pulse.Acked() != acked {
			return out
		}
		return ""
	})
	stands(t, b.pulse)
	must(t, first.Thaw())
	b.pulse.WaitMore(t, beatsAfter)
	must(t, harness.KillServers(b.writer(t)))
	must(t, second.Thaw())
	b.pulse.WaitMore(t, beatsAfter)
	b.whole(t)
	b.pulse.Stop()
	b.pulse.Verify(t)
	_, err = s.DeleteDBCluster(t.Context(), &rds.DeleteDBClusterInput{DBClusterIdentifier: aws.String("ring"), SkipFinalSnapshot: aws.Bool(true)})
	must(t, err)
	harness.Wait(t, gapBound, "nothing is left", func() string { return strings.Join(s.Homes(), " ") })
}

// TestApartBlocks loses each host of a pair in turn where commits wait for the other one.
func TestApartBlocks(t *testing.T) {
	onceIsEnough(t)
	b := newApartBed(t)
	b.service.EachEngine(t, func(t *testing.T, engine string) {
		group := blockGroup(t, b.service, engine)
		p := b.create(t, engine, func(in *rds.CreateDBInstanceInput) { in.DBParameterGroupName = aws.String(group) })
		inTurn(t, "the standby's host freezes", func(t *testing.T) {
			_, standby := p.roles(t)
			from := time.Now()
			thaw := standby.FreezeAll(t, p.ID)
			p.WaitEventsFrom(t, from, nowWaits)
			stands(t, p.pulse)
			thaw()
			p.WaitEventsFrom(t, from, nowGoesOn)
			p.goesOn(t)
		})
		inTurn(t, "the writer's host freezes", func(t *testing.T) {
			writer, _ := p.roles(t)
			from := time.Now()
			thaw := writer.FreezeAll(t, p.ID)
			p.WaitEventsFrom(t, from, "failover started")
			stands(t, p.pulse)
			thaw()
			p.WaitEventsFrom(t, from, "failover completed")
			p.goesOn(t)
		})
		inTurn(t, "one that is not there is given up by the policy", func(t *testing.T) {
			_, standby := p.roles(t)
			from := time.Now()
			thaw := standby.FreezeAll(t, p.ID)
			p.WaitEventsFrom(t, from, nowWaits)
			must(t, setPolicy(t, b.service, group, kurabe.StandbyLostDegrade))
			p.pulse.WaitMore(t, beatsAfter)
			thaw()
			p.goesOn(t)
		})
		p.pulse.Stop()
		p.Delete(t)
	})
}

// goesOn demands that the pair is whole again, with every row.
func (p *apart) goesOn(t *testing.T) {
	t.Helper()
	p.pulse.WaitMore(t, beatsAfter)
	p.waitWhole(t)
	p.pulse.Verify(t)
}
