package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/cmd/kurabe/client"
	"kurabe/cmd/kurabe/explain"
	ownapi "kurabe/internal/api/kurabe"
	"kurabe/internal/drill"
)

// drillService tells a drill of one instance, or of a DB cluster. It implements drill.Service.
type drillService struct {
	c       *client.Client
	name    string     // kurabe.NameKey
	address netip.Addr // the endpoint
}

// drillAskTime bounds one question: a service that hangs must not stop the drill.
const drillAskTime = 5 * time.Second

func (s drillService) Look(ctx context.Context) (drill.Look, error) {
	ctx, cancel := context.WithTimeout(ctx, drillAskTime)
	defer cancel()
	e, _, err := explain.Ask(ctx, s.c, s.name)
	if err != nil {
		return drill.Look{}, err
	}
	if e.Status == nil {
		return drill.Look{}, errors.New(s.name + " has no status yet")
	}
	return drillLook(e, s.address), nil
}

// drillLook is what a drill wants of an explanation of what has this endpoint.
func drillLook(e explain.Explanation, endpoint netip.Addr) drill.Look {
	l := drill.Look{Status: string(e.Status.State), Cluster: e.Spec.Cluster}
	if e.Group == nil {
		return l
	}
	l.Epoch, l.Writer, l.Handover, l.Electing, l.SyncSet = e.Group.Epoch, e.Group.Writer, e.Group.Handover, e.Group.Choosing, e.Group.Sync
	for _, s := range e.Group.Servers {
		one := drill.Server{ID: s.ID, Host: s.Host, Zone: s.Zone, Address: endpoint, Doing: "its host has not reported it"}
		if s.ListensAt != "" {
			one.Address, _ = netip.ParseAddr(s.ListensAt)
		}
		if r := s.Report; r != nil {
			one.PID, one.Doing = r.PID, explain.Doing(r)
			one.Ready = s.Goal == kurabe.GoalRunning && r.Running && r.Role != nil && !r.Role.Unresponsive &&
				(s.ID == l.Writer && r.Role.Writing || s.ID != l.Writer && r.Role.Following)
		}
		l.Servers = append(l.Servers, one)
	}
	return l
}

func (s drillService) Events(ctx context.Context, from time.Time) ([]drill.Event, error) {
	name, cluster := kurabe.CutNameKey(s.name)
	source := types.SourceTypeDbInstance
	if cluster {
		source = types.SourceTypeDbCluster
	}
	out, err := s.c.DescribeEvents(ctx, &rds.DescribeEventsInput{SourceType: source, SourceIdentifier: aws.String(name), StartTime: aws.Time(from)})
	if err != nil {
		return nil, client.Friendly(err)
	}
	var list []drill.Event
	for _, e := range out.Events {
		list = append(list, drill.Event{At: aws.ToTime(e.Date), Text: aws.ToString(e.Message)})
	}
	return list, nil
}

func (s drillService) Failover(ctx context.Context) error {
	name, cluster := kurabe.CutNameKey(s.name)
	if cluster {
		if _, err := s.c.FailoverDBCluster(ctx, &rds.FailoverDBClusterInput{DBClusterIdentifier: aws.String(name)}); err != nil {
			return client.Friendly(err)
		}
		return nil
	}
	_, err := s.c.RebootDBInstance(ctx, &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(name), ForceFailover: aws.Bool(true)})
	if err != nil {
		return client.Friendly(err)
	}
	return nil
}

// strikeTime is how long a strike is waited for: after that its permit is over.
const strikeTime = drill.PermitTime + drillAskTime

// Permit implements drill.Service.
func (s drillService) Permit(ctx context.Context, of drill.Server, f drill.Fault) (p drill.Permit, err error) {
	ctx, cancel := context.WithTimeout(ctx, drillAskTime)
	defer cancel()
	out, err := client.Ask[ownapi.PermitDrillOutput](ctx, s.c, "PermitDrill", s.target(of.ID, of.PID, f))
	if err != nil {
		return p, err
	}
	p = out.Permit
	if p.Server != of.ID || p.PID != of.PID || p.Host != of.Host || !p.Is(f) { // an older host knows killing only
		return p, fmt.Errorf("the permit is for process %d of %s on host %s to be %s", p.PID, p.Server, p.Host, p.Done())
	}
	return p, nil
}

// Strike implements drill.Service.
func (s drillService) Strike(ctx context.Context, p drill.Permit) error {
	ctx, cancel := context.WithTimeout(ctx, strikeTime)
	defer cancel()
	in := ownapi.StrikeDrillInput{Target: s.target(p.Server, p.PID, p.Fault), Key: p.Key}
	_, err := client.Ask[ownapi.StrikeDrillOutput](ctx, s.c, "StrikeDrill", in)
	return err
}

// Hold implements drill.Service.
func (s drillService) Hold(ctx context.Context, p drill.Permit, end bool) (drill.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, drillAskTime)
	defer cancel()
	out, err := client.Ask[ownapi.HoldDrillOutput](ctx, s.c, "HoldDrill", ownapi.HoldDrillInput{Host: p.Host, Server: p.Server, Key: p.Key, End: end})
	return out.Held, err
}

// target is what is to be done to which process of which server.
func (s drillService) target(server kurabe.InstanceID, pid int, f drill.Fault) ownapi.PermitDrillInput {
	if !f.Lasts() {
		f = drill.Fault{} // as hosts of the version before know it
	}
	return ownapi.PermitDrillInput{Name: s.name, Server: server, PID: pid, Fault: f}
}
