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
