package target

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/lab/study"
)

func TestTooManyClients(t *testing.T) {
	crowd := []study.Workload{{Name: "few", Clients: 8}, {Name: "many", Clients: 200}}
	limit := func(n string) map[string]setting {
		return map[string]setting{"max_connections": {value: n}, "superuser_reserved_connections": {value: "3"}}
	}
	cases := map[string]struct {
		variants []study.Variant
		have     map[string]setting
		super    bool
		skip     map[string]string
		why      string // part of it
	}{
		"enough":                   {have: limit("206")},
		"one too few":              {have: limit("205"), why: "workload many: clients: 200 are too many for variant a: the server's max_connections is 205, of which 3 are reserved and 3 the lab's own; it has to be 206: do this"},
		"a superuser's":            {have: limit("203"), super: true},
		"not told":                 {have: map[string]setting{}},
		"through a pool":           {variants: []study.Variant{{Name: "a", Endpoint: study.EndpointPgBouncer}}, have: limit("100")},
		"a pool that is too large": {variants: []study.Variant{{Name: "a", Endpoint: study.EndpointPgBouncer}}, have: limit("20"), why: "it has to be 26"},
		"through a proxy":          {variants: []study.Variant{{Name: "a", Endpoint: study.EndpointHAProxy}}, have: limit("100"), why: "variant a"},
		"the variant's own limit":  {variants: []study.Variant{{Name: "a", Parameters: map[string]string{"max_connections": "500"}}}, have: limit("100")},
		"a class of its own":       {variants: []study.Variant{{Name: "a", Class: "db.t3.large"}}, have: limit("100")},
		"a variant that is not":    {have: limit("100"), skip: map[string]string{"a": "not here"}},
		"a workload that is not":   {have: limit("100"), skip: map[string]string{"many": "not here"}},
		"of another engine":        {variants: []study.Variant{{Name: "a", Engines: []string{study.MariaDB}}}, have: limit("100")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &study.Study{Variants: c.variants, Workloads: crowd}
			if s.Variants == nil {
				s.Variants = []study.Variant{{Name: "a"}}
			}
			err := tooManyClients(s, study.Postgres, c.have, c.super, c.skip, "do this")
			if (err != nil) != (c.why != "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestLosesPrepared(t *testing.T) {
	prepared := study.Workload{Name: "p", Generator: study.GeneratorOwn, Protocol: study.ProtocolPrepared}
	pooled := study.Variant{Name: "a", Endpoint: study.EndpointPgBouncer}
	cases := map[string]struct {
		version  string
		workload study.Workload
		variant  study.Variant
		lost     bool
	}{
		"prepared, an old one":   {"1.18.0", prepared, pooled, true},
		"prepared, a newer one":  {"1.21.0", prepared, pooled, false},
		"simple":                 {"1.18.0", study.Workload{Generator: study.GeneratorOwn, Protocol: study.ProtocolSimple}, pooled, false},
		"sysbench as it is":      {"1.18.0", study.Workload{Generator: study.GeneratorSysbench}, pooled, true},
		"sysbench, told not to":  {"1.18.0", study.Workload{Generator: study.GeneratorSysbench, Protocol: study.ProtocolSimple}, pooled, false},
		"nothing in between":     {"1.18.0", prepared, study.Variant{Name: "a"}, false},
		"through something else": {"1.18.0", prepared, study.Variant{Name: "a", Endpoint: study.EndpointHAProxy}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, study.EndpointPgBouncer), []byte("#!/bin/sh\necho PgBouncer "+c.version+"\n"), 0o755))
			t.Setenv("PATH", dir)
			why := losesPrepared(t.Context(), &study.Study{Workloads: []study.Workload{c.workload}}, c.variant)
			if (why != "") != c.lost {
				t.Errorf("%q", why)
			}
		})
	}
}
