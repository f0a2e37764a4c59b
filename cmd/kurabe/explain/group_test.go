package explain

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"kurabe"
)

func TestPrintGroup(t *testing.T) {
	first := Server{Member: kurabe.Member{ID: "db-1", Host: "h1", Zone: "a"}, Goal: kurabe.GoalRunning, Generation: 7,
		Role: &kurabe.Role{Duty: kurabe.DutyWrite}, Report: &kurabe.InstanceReport{Generation: 7, Done: true, Running: true, Role: &kurabe.RoleReport{Writing: true}}}
	second := Server{Member: kurabe.Member{ID: "db-1~2", Host: "h1", Zone: "b", ListensAt: "127.66.0.2"}, Goal: kurabe.GoalRunning, Generation: 3,
		Role: &kurabe.Role{Duty: kurabe.DutyFollow}, Report: &kurabe.InstanceReport{Generation: 3, Done: true, Running: true, Role: &kurabe.RoleReport{Following: true}}}
	with := func(s Server, role *kurabe.RoleReport, change func(*kurabe.InstanceReport)) Server {
		r := *s.Report
		r.Role = role
		change(&r)
		s.Report = &r
		return s
	}
	for _, c := range []struct {
		name string
		g    *Group
		want []string
	}{
		{"healthy", &Group{Epoch: 4, Writer: "db-1", Sync: []kurabe.InstanceID{"db-1~2"}, Servers: []Server{first, second}}, []string{
			"servers     epoch 4: db-1 writes, commits wait for db-1~2\n",
			"            db-1: zone a on h1, generation 7: write; it writes\n",
			"            db-1~2: zone b on h1 at 127.66.0.2, generation 3: follow; it follows\n",
		}},
		{"alone", &Group{Epoch: 5, Writer: "db-1", Since: time.Date(2026, 7, 1, 5, 0, 10, 0, time.Local), Servers: []Server{
			with(first, &kurabe.RoleReport{Writing: true, SilentFollowers: []kurabe.InstanceID{"db-1~2"}}, func(*kurabe.InstanceReport) {}),
			with(second, &kurabe.RoleReport{}, func(r *kurabe.InstanceReport) {
				r.Running, r.Done, r.Step = false, false, "clone"
				r.Failure = &kurabe.Failure{Step: "clone", Attempts: 2, Message: "no route"}
			}),
		}}, []string{
			"no standby has every commit: what was written since 2026-07-01 05:00:10 would be lost with the writer\n",
			"it writes, hears nothing of db-1~2\n",
			"it does not run, at work on clone, step clone failed 2 times: no route\n",
		}},
		{"hands over", &Group{Epoch: 6, Writer: "db-1", Handover: "db-1~2", Servers: []Server{
			with(first, &kurabe.RoleReport{SteppedDown: true}, func(r *kurabe.InstanceReport) { r.Running, r.Generation = false, 6 }),
			{Member: kurabe.Member{ID: "db-1~2", Host: "h2", Zone: "b"}},
		}}, []string{
			"the writer hands over to db-1~2\n", "it has stopped in order, its host is at generation 6\n",
			"db-1~2: zone b on h2, not assigned; its host has not reported it\n",
		}},
		{"frozen", &Group{Writer: "db-1", Servers: []Server{with(first, &kurabe.RoleReport{Unresponsive: true}, func(*kurabe.InstanceReport) {})}}, []string{"it does not answer\n"}},
		{"commits wait", &Group{Writer: "db-1", Blocks: true, Servers: []Server{with(first, &kurabe.RoleReport{IsPrimary: true}, func(*kurabe.InstanceReport) {})}},
			[]string{"commits go on alone no more: kurabe.standby_lost is block\n", "it keeps clients out until another server has what they would see\n"}},
		{"waits ended early", &Group{Writer: "db-1", waits: kurabe.EndedWaits{WaitCount: kurabe.WaitCount{Cancelled: 2, Ended: 1}, UnreplicatedAt: "db-1", Uncounted: true}}, []string{
			"commits that ended their wait for a standby early: 2 cancelled, 1 by the end of the session; db-1 alone has the newest\n",
			"are not seen: log_min_messages or log_destination keeps them out of the server's log\n",
		}},
		{"one server", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			c.g.print(&out)
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
			if c.g == nil && out.Len() > 0 {
				t.Errorf("of one server:\n%s", out.String())
			}
		})
	}
}
