package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/cmd/kurabe/explain"
)

// What would be lost is said in the unit of the engine's log, and not where it is not known.
func TestPrintLoss(t *testing.T) {
	since := time.Date(2026, 7, 1, 5, 0, 10, 0, time.UTC)
	for _, c := range []struct {
		name     string
		engine   kurabe.EngineName
		from, to *kurabe.RoleReport
		want     string
	}{
		{"PostgreSQL", kurabe.Postgres, &kurabe.RoleReport{Position: 5 << 20}, &kurabe.RoleReport{Position: 2 << 20}, "3 MiB of log, by what was last seen of both"},
		{"MariaDB", kurabe.MariaDB, &kurabe.RoleReport{Position: 105}, &kurabe.RoleReport{Position: 100}, "5 transactions, by what was last seen of both"},
		{"the one that goes was not seen", kurabe.MariaDB, &kurabe.RoleReport{}, &kurabe.RoleReport{Position: 100}, "is not known"},
		{"the one that stays was not seen", kurabe.MariaDB, &kurabe.RoleReport{Position: 105}, &kurabe.RoleReport{}, "is not known"},
		{"it is no member", kurabe.MariaDB, nil, &kurabe.RoleReport{Position: 100}, "is not known"},
		{"the other one was seen later", kurabe.MariaDB, &kurabe.RoleReport{Position: 99}, &kurabe.RoleReport{Position: 100}, "it lacks nothing; what was written since"},
	} {
		second := explain.Server{Member: kurabe.Member{ID: "db-1~2", Zone: "b"}, Report: &kurabe.InstanceReport{Running: true, Role: c.to}}
		g := &explain.Group{Writer: "db-1", Since: since, Servers: []explain.Server{
			{Member: kurabe.Member{ID: "db-1", Zone: "a"}, Report: &kurabe.InstanceReport{Role: c.from}}, second,
		}}
		var out bytes.Buffer
		printLoss(g, &out, c.engine, second)
		for _, want := range []string{c.want, "Since 2026-07-01 05:00:10.000 UTC", "db-1 (zone a) may write", "db-1~2 (zone b) could take over", "WOULD BE LOST"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, &out)
			}
		}
		if other := other(g); other == nil || other.ID != "db-1~2" {
			t.Errorf("%+v could take over", other)
		}
	}
}
