package load

import (
	"strings"
	"testing"

	"kurabe/lab/study"
)

// What is wrong with a script is said with its line, without a server.
func TestCheckReadsScripts(t *testing.T) {
	for name, c := range map[string]struct{ generator, script, want string }{
		"ours":                    {study.GeneratorOwn, "SELECT 1;\n\\set x random(1,\nSELECT :x;", "script, line 2"},
		"a command that is none":  {study.GeneratorOwn, "\\if true\nSELECT 1;", "line 1"},
		"ours, fine":              {study.GeneratorOwn, "\\set x random(1, 10)\nSELECT :x;", ""},
		"pgbench":                 {study.GeneratorPgbench, "SELECT 1;\n\\set x random(1,\nSELECT :x;", "script, line 2"},
		"pgbench's own, no end":   {study.GeneratorPgbench, "\\if true\nSELECT 1;\n", `script, command 3: \if`},
		"pgbench's own, complete": {study.GeneratorPgbench, "\\if true\nSELECT 1;\n\\endif\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := findTool("pgbench", pgbenchPackage, pgbenchFolders); err != nil && c.generator == study.GeneratorPgbench {
				t.Skip(err)
			}
			err := Check(study.Workload{Name: "calls", Generator: c.generator, Script: c.script, Mode: study.ModeClosed, Clients: 1})
			if (err == nil) != (c.want == "") {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `workload "calls"`)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// Workloads of one study have one set of data.
func TestWorkloadsThatShareTables(t *testing.T) {
	w := func(name, generator, kit string, scale, rows int, engines ...string) study.Workload {
		return study.Workload{Name: name, Generator: generator, Kit: kit, Scale: scale, Rows: rows, Mode: study.ModeClosed, Clients: 1, Engines: engines}
	}
	for name, c := range map[string]struct {
		workloads []study.Workload
		want      string
	}{
		"the same size":    {[]study.Workload{w("a", study.GeneratorOwn, "tpcb-like", 5, 0), w("b", study.GeneratorOwn, "select-only", 5, 0)}, ""},
		"two sizes":        {[]study.Workload{w("a", study.GeneratorOwn, "tpcb-like", 5, 0), w("b", study.GeneratorOwn, "select-only", 6, 0)}, `"a" and "b" fill table pgbench_branches with 5 and 6 rows`},
		"two generators":   {[]study.Workload{w("a", study.GeneratorOwn, "tpcb-like", 5, 0, study.Postgres), w("b", study.GeneratorPgbench, "tpcb-like", 6, 0, study.Postgres)}, "pgbench_branches"},
		"two engines":      {[]study.Workload{w("a", study.GeneratorOwn, "tpcb-like", 5, 0, study.MariaDB), w("b", study.GeneratorPgbench, "tpcb-like", 6, 0, study.Postgres)}, ""},
		"sysbench":         {[]study.Workload{w("a", study.GeneratorSysbench, "oltp_read_only", 0, 100), w("b", study.GeneratorSysbench, "oltp_insert", 0, 200)}, "table sbtest1 with 100 and 200 rows"},
		"named by rows":    {[]study.Workload{w("a", study.GeneratorOwn, "writers", 0, 100), w("b", study.GeneratorOwn, "writers", 0, 200)}, ""},
		"a wrong workload": {[]study.Workload{w("a", study.GeneratorOwn, "no such", 1, 0)}, "no such"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckAll(c.workloads)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	for _, name := range study.Builtins() {
		s, err := study.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*study.Study{s, study.Quick(s)} {
			if err := CheckAll(s.Workloads); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if p, err := study.AsPublished(s); err != nil {
			t.Error(err)
		} else if err := CheckAll(p.Workloads); err != nil {
			t.Errorf("%s as published: %v", name, err)
		}
	}
}
