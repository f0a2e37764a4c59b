package main

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/cmd/kurabe/client"
	"kurabe/cmd/kurabe/explain"
	"kurabe/internal/drill"
)

func TestDrillable(t *testing.T) {
	whole := func(change func(*types.DBInstance)) types.DBInstance {
		i := types.DBInstance{DBInstanceIdentifier: aws.String("shop"), Engine: aws.String("postgres"), DBInstanceStatus: aws.String("available"),
			MultiAZ: aws.Bool(true), Endpoint: &types.Endpoint{Address: aws.String("127.66.0.1"), Port: aws.Int32(5432)}}
		change(&i)
		return i
	}
	for name, c := range map[string]struct {
		change func(*types.DBInstance)
		want   string // in the refusal; "": none
	}{
		"whole":          {func(*types.DBInstance) {}, ""},
		"one zone":       {func(i *types.DBInstance) { i.MultiAZ = aws.Bool(false) }, "--multi-az"},
		"stopped":        {func(i *types.DBInstance) { i.DBInstanceStatus = aws.String("stopped") }, "InvalidDBInstanceState"},
		"of no endpoint": {func(i *types.DBInstance) { i.Endpoint = nil }, "InvalidDBInstanceState"},
		"a cluster": {func(i *types.DBInstance) {
			i.DBInstanceIdentifier, i.MultiAZ = aws.String(kurabe.NameKey("shop", true)), nil
		}, ""},
		"a server of a cluster":                {func(i *types.DBInstance) { i.DBClusterIdentifier = aws.String("ring") }, "kurabe drill ring --kill reader"},
		"of an engine that drills do not know": {func(i *types.DBInstance) { i.Engine = aws.String("oracle-ee") }, "postgres"},
	} {
		err := drillable(whole(c.change))
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The drill is told who does what it is there for: a server that only runs does not.
func TestDrillLook(t *testing.T) {
	e := explain.Explanation{Status: &kurabe.InstanceStatus{State: "available"}, Group: &explain.Group{Epoch: 3, Writer: "db-A~2", Sync: []kurabe.InstanceID{"db-A"}}}
	server := func(id kurabe.InstanceID, r kurabe.RoleReport) explain.Server {
		return explain.Server{Member: kurabe.Member{ID: id, Host: "h", Zone: "z"}, Goal: kurabe.GoalRunning, Report: &kurabe.InstanceReport{PID: 7, Running: true, Role: &r}}
	}
	e.Group.Servers = []explain.Server{server("db-A", kurabe.RoleReport{Following: true}), server("db-A~2", kurabe.RoleReport{Writing: true})}
	if l := drillLook(e, netip.Addr{}); l.Lacks() != "" || l.Epoch != 3 {
		t.Errorf("%+v lacks %q", l, l.Lacks())
	}
	for name, r := range map[string]kurabe.RoleReport{"follows": {Following: true}, "hangs": {Writing: true, Unresponsive: true}, "runs": {}} {
		e.Group.Servers[1] = server("db-A~2", r)
		if l := drillLook(e, netip.Addr{}); !strings.HasPrefix(l.Lacks(), "db-A~2") {
			t.Errorf("a writer that %s: %q", name, l.Lacks())
		}
	}
	e.Group = nil
	if l := drillLook(e, netip.Addr{}); !reflect.DeepEqual(l, drill.Look{Status: "available"}) {
		t.Errorf("of one server: %+v", l)
	}
}

func TestDrillVerdict(t *testing.T) {
	lost := drill.Rows{Unread: "no route"}
	if err := verdict(&drill.Report{Rows: lost}, nil); err == nil || !strings.Contains(err.Error(), "no route") {
		t.Errorf("rows that were not read: %v", err)
	}
	var coded exitError
	if err := verdict(&drill.Report{Interrupted: true}, errors.New("interrupted")); !errors.As(err, &coded) || coded.code != client.InterruptedCode {
		t.Errorf("interrupted: %v", err)
	}
	if err := verdict(&drill.Report{}, nil); err != nil {
		t.Errorf("all well: %v", err)
	}
}

// What is to be struck is read from one flag; a choice that is none says what to say instead.
func TestDrillOrder(t *testing.T) {
	for _, c := range []struct {
		flags drillFlags
		want  drill.Order
		says  string
	}{
		{drillFlags{kill: "reader=3"}, drill.Order{Action: drill.Kill, Side: drill.Reader, Server: drill.ServerSelector{Number: 3}}, ""},
		{drillFlags{freeze: "standby", duration: 1}, drill.Order{Action: drill.Freeze, Side: drill.Standby, For: 1}, ""},
		{drillFlags{failover: true}, drill.Order{Action: drill.Failover}, ""},
		{drillFlags{}, drill.Order{}, ""},
		{drillFlags{cut: "reader="}, drill.Order{}, `--cut "reader=": the choice is empty`},
		{drillFlags{kill: "writer=2"}, drill.Order{}, "use --kill writer"},
	} {
		o, err := c.flags.order()
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v: %v", c.flags, err)
			}
			continue
		}
		if err != nil || o != c.want {
			t.Errorf("%+v: %+v, %v", c.flags, o, err)
		}
	}
}
