package target

import (
	"strings"
	"testing"
	"time"

	"kurabe/lab/study"
)

func TestFit(t *testing.T) {
	io1 := orderable{storage: "io1", gibMin: 100, gibMax: 65536, iops: true, iopsMin: 1000, iopsMax: 256000, iopsPerGiB: 50}
	gp3 := orderable{storage: "gp3", gibMin: 20, gibMax: 65536, iops: true, iopsMin: 3000, iopsMax: 64000, iopsPerGiB: 500}
	gp2 := orderable{storage: "gp2", gibMin: 5, gibMax: 65536}
	cases := map[string]struct {
		shape shape
		of    orderable
		gib   int    // of the outcome
		why   string // part of it
	}{
		"the least of the type":    {shape: shape{storage: "io1", iops: 1000}, of: io1, gib: 100},
		"as much as the IOPS need": {shape: shape{storage: "io1", iops: 6000}, of: io1, gib: 120},
		"as published":             {shape: shape{storage: "io1", iops: 6000, gib: 600}, of: io1, gib: 600},
		"as the data needs":        {shape: shape{storage: "gp2"}, of: gp2, gib: 30},
		"too little storage":       {shape: shape{storage: "io1", iops: 1000, gib: 20}, of: io1, why: "from 100"},
		"too many a GiB":           {shape: shape{storage: "io1", iops: 6000, gib: 100}, of: io1, why: "a GiB"},
		"too few":                  {shape: shape{storage: "io1", iops: 100}, of: io1, why: "from 1000"},
		"no number":                {shape: shape{storage: "io1"}, of: io1, why: "needs a number"},
		"none to choose":           {shape: shape{storage: "gp2", iops: 1000}, of: gp2, why: "cannot be chosen"},
		"gp3, small":               {shape: shape{storage: "gp3", iops: 6000, gib: 100}, of: gp3, why: "below 400"},
		"gp3, large":               {shape: shape{storage: "gp3", iops: 12000, gib: 400}, of: gp3, gib: 400},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, why, err := fit(c.shape, c.of, 30)
			if err != nil || (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
				t.Fatalf("why %q, error %v", why, err)
			}
			if c.why == "" && got.gib != c.gib {
				t.Errorf("%d GiB", got.gib)
			}
		})
	}
}

func TestWrites(t *testing.T) {
	cases := map[string]bool{
		"SELECT now()": false,
		"\\set x random(1, 10)\nSELECT * FROM orders WHERE id = :x": false,
		"BEGIN;\nUPDATE orders SET n = n + 1;\nEND;":                true,
		"  insert into orders values (1)":                           true,
		"SELECT updated FROM orders":                                false,
	}
	for script, want := range cases {
		if got := writes(study.Postgres, script); got != want {
			t.Errorf("writes(%q) = %v", script, got)
		}
	}
}

func TestLacking(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if why := lacking(study.Variant{Endpoint: study.EndpointPgBouncer}, study.MariaDB); !strings.Contains(why, "speaks to postgres only") {
		t.Errorf("%q", why)
	}
	if why := lacking(study.Variant{Tool: "pt-online-schema-change"}, study.MariaDB); !strings.Contains(why, "package percona-toolkit (as root: apt-get install percona-toolkit)") {
		t.Errorf("%q", why)
	}
	if why := lacking(study.Variant{Needs: "pgaudit"}, study.Postgres); why != "" {
		t.Errorf("%q", why)
	}
}

func TestBadEndpoint(t *testing.T) {
	cases := map[string]bool{"": false, "pgbouncer": false, "haproxy": false, "proxy": false, "127.0.0.1:6432": false, "[::1]:6432": false, "proxysql": true, ":1": true, "a:": true}
	for endpoint, bad := range cases {
		if why := badEndpoint(endpoint); (why != "") != bad {
			t.Errorf("%q: %q", endpoint, why)
		}
	}
}

func TestDataBytes(t *testing.T) {
	s := &study.Study{Workloads: []study.Workload{
		{Generator: study.GeneratorPgbench, Kit: "tpcb-like", Scale: 10, Clients: 1},
		{Generator: study.GeneratorPgbench, Kit: "tpcb-like", Scale: 10, Clients: 8},
		{Generator: study.GeneratorSysbench, Kit: "oltp_read_write", Rows: 1000000},
	}}
	if got, want := dataBytes(s), int64(160<<20+250000000); got != want {
		t.Errorf("%d bytes, want %d: the same data twice is made once", got, want)
	}
}

func TestLogBytes(t *testing.T) {
	plan := study.Plan{Warm: study.Duration(5 * time.Second), WarmMax: study.Duration(20 * time.Second), Measure: study.Duration(40 * time.Second)}
	for name, c := range map[string]struct {
		parameters map[string]string
		want       int64
	}{
		"no variant logs": {map[string]string{"work_mem": "1"}, 0},
		"pgaudit":         {map[string]string{"pgaudit.log": "all"}, 60 * loggedPerSecond},
		"the general log": {map[string]string{"general_log": "1"}, 60 * loggedPerSecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := &study.Study{Plan: plan, Variants: []study.Variant{{Name: "plain"}, {Name: "x", Parameters: c.parameters}}}
			if got := logBytes(s); got != c.want {
				t.Errorf("%d bytes, want %d", got, c.want)
			}
		})
	}
}
