//go:build integration

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/internal/harness"
	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/result/resulttest"
	"kurabe/lab/study"
)

// shortStudy is as little as can be compared.
const shortStudy = `
name: short
question: Does the whole way work?
engines: [postgres, mariadb]
primary: {metric: tps, margin: 0.03}
baseline: plain
variants: [{name: plain}, {name: other, sql: [SELECT 1]}]
workloads: [{name: rows, generator: kurabe, kit: sysbench-like, mode: closed, clients: 1, rows: 1000}]
plan: {blocks_min: 2, blocks_max: 2, warm: 200ms, warm_max: 200ms, measure: 1s}
`

// shortIn is a folder with the short study in it.
func shortIn(t *testing.T) (dir string) {
	t.Helper()
	dir = harness.Folder(t, false)
	if err := os.WriteFile(filepath.Join(dir, "short.yaml"), []byte(shortStudy), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// labFails runs a command that has to fail, and says with what words it did.
func labFails(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	out, err := c.CombinedOutput()
	if err == nil {
		t.Fatalf("%v did not fail: %s", c.Args, out)
	}
	return string(out)
}

func TestLabLs(t *testing.T) {
	out := lab(t, harness.Folder(t, false), "ls")
	for _, name := range study.Builtins() {
		s, err := study.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, fmt.Sprintf("%-12s %s\n", name, s.Question)) {
			t.Errorf("%s with its question is not in\n%s", name, out)
		}
	}
}

// The study to start from is one: it is read, and its price is told for each of its
// engines. What is there is not written over.
func TestLabInit(t *testing.T) {
	dir := harness.Folder(t, false)
	if out := lab(t, dir, "init", "mine.yaml"); !strings.Contains(out, "kurabe lab run mine.yaml") {
		t.Error(out)
	}
	written := read(t, filepath.Join(dir, "mine.yaml"))
	s, err := study.Parse("mine.yaml", []byte(written), study.Options{CheckMetric: result.CheckMetric})
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range s.Engines {
		if out := lab(t, dir, "run", "mine.yaml", "--dry-run", "--engine", engine); !strings.Contains(out, "asked of "+engine) || !strings.Contains(out, "per block") {
			t.Errorf("%s: %s", engine, out)
		}
	}
	if out := labFails(t, labCommand(t, dir, "init", "mine.yaml")); !strings.Contains(out, "mine.yaml") || read(t, filepath.Join(dir, "mine.yaml")) != written {
		t.Error(out)
	}
}

func TestLabCompare(t *testing.T) {
	dir := harness.Folder(t, false)
	for name, o := range map[string]resulttest.Options{"a": {Blocks: 8, Clean: true}, "b": {Blocks: 6, Clean: true}, "few": {Blocks: 3, Clean: true}, "few2": {Blocks: 3, Clean: true}} {
		if err := resulttest.Write(filepath.Join(dir, name+".jsonl"), resulttest.File(uint64(len(name))+uint64(o.Blocks), o)); err != nil {
			t.Fatal(err)
		}
	}
	long := lab(t, dir, "compare", "a.jsonl", "b.jsonl")
	if !strings.Contains(long, "] agree\n") || strings.Contains(long, "NaN") {
		t.Errorf("of 8 and 6 blocks:\n%s", long)
	}
	for files, want := range map[[2]string]string{{"few.jsonl", "few2.jsonl"}: " no interval from 3 blocks\n", {"few.jsonl", "b.jsonl"}: "["} {
		short := lab(t, dir, "compare", files[0], files[1])
		if !strings.Contains(short, want) || strings.Contains(short, "NaN") {
			t.Errorf("of %v:\n%s", files, short)
		}
	}
}

// With nothing named the lab runs on a service of its own, which is gone afterwards.
func TestLabRunsAlone(t *testing.T) {
	onceIsEnough(t)
	dir := shortIn(t)
	c := labCommand(t, dir, "run", "short.yaml", "--blocks", "1", "--out", "alone.jsonl", "--endpoint", fmt.Sprintf("http://127.0.0.1:%d", unusedPort(t)))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := result.Read(filepath.Join(dir, "alone.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if f.Study.Target != "private" || len(f.Ends) != 1 || f.Ends[0].Reason != "blocks" {
		t.Errorf("on a target %q, ended %+v", f.Study.Target, f.Ends)
	}
	cellsCount(t, f, 1)
	for _, want := range []string{"3 trials", "A reset is taken for", "results: alone.jsonl", "page: alone.html"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	leftOnly(t, dir, "alone.html", "alone.jsonl", "short.yaml")
}

// cellsCount demands a trial that counts of every cell of so many blocks.
func cellsCount(t *testing.T, f *result.File, blocks int) {
	t.Helper()
	counts := map[string]bool{}
	for _, trial := range f.Trials {
		if trial.Counts() {
			counts[fmt.Sprint(trial.Block, " ", trial.Variant, " ", trial.Workload)] = true
		} else {
			t.Logf("block %d, %s: %s: %s", trial.Block, trial.Variant, trial.Status, trial.Reason)
		}
	}
	d := f.Study.Definition
	if want := blocks * len(d.Variants) * len(d.Workloads); len(counts) != want {
		t.Errorf("%d cells count, want %d: %v", len(counts), want, counts)
	}
}

// leftOnly demands of a folder that nothing else is in it.
func leftOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	if strings.Join(have, " ") != strings.Join(names, " ") {
		t.Errorf("in the folder are %v, want %v", have, names)
	}
}

// A mistake that can be seen without a server starts none, and one at the door of a
// server leaves nothing on it.
func TestLabRefusesBeforeAnything(t *testing.T) {
	dir := shortIn(t)
	if err := os.WriteFile(filepath.Join(dir, "there.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{"script": {"kit: sysbench-like", `script: "\\set a"`}, "large": {"rows: 1000", "rows: 1000000000"}} {
		text := strings.Replace(shortStudy, change[0], change[1], 1)
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(strings.Replace(text, "name: short", "name: "+name, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := plain(t, study.Postgres)
	wrong := strings.Replace(address, "boss:", "boss:not-", 1)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a script with a mistake":  {[]string{"script.yaml", "--target", "private"}, `\set`},
		"no room":                  {[]string{"large.yaml", "--target", "private"}, "GiB of disk"},
		"results that are there":   {[]string{"short.yaml", "--target", "private", "--out", "there.jsonl"}, "there.jsonl exists"},
		"no folder for results":    {[]string{"short.yaml", "--target", "private", "--out", "none/there.jsonl"}, "folder none: no such file"},
		"no folder for the page":   {[]string{"short.yaml", "--target", "private", "--html", "none/page.html"}, "folder none: no such file"},
		"no such target":           {[]string{"short.yaml", "--target", "privat"}, `"privat" is none of kurabe, rds, private`},
		"a URL without its colons": {[]string{"short.yaml", "--target", "postgres:/me:" + harness.Password + "@h/db"}, "--target is none of"},
		"a service without a name": {[]string{"short.yaml", "--target", "kurabe", "--endpoint", ""}, "--endpoint is empty"},
		"no blocks":                {[]string{"short.yaml", "--target", "private", "--blocks", "0"}, "0 blocks"},
		"a wrong password":         {[]string{"short.yaml", "--target", wrong}, "password"},
		"nobody there":             {[]string{"short.yaml", "--target", "mariadb://root@127.0.0.1:1/"}, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			out := labFails(t, labCommand(t, dir, append([]string{"run"}, c.args...)...))
			if !strings.Contains(out, c.want) || strings.Contains(out, "start a private service") || strings.Contains(out, harness.Password) {
				t.Errorf("want %q: %s", c.want, out)
			}
		})
	}
	leftOnly(t, dir, "large.yaml", "script.yaml", "short.yaml", "there.jsonl")
	if left := labDatabases(t, address); left != "[]" {
		t.Errorf("databases of the lab: %s", left)
	}
}

// labDatabases are those that the lab has on a plain PostgreSQL.
func labDatabases(t *testing.T, address string) string {
	t.Helper()
	session, err := dial.Open(t.Context(), serverAt(t, address))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	rows, err := session.Rows(t.Context(), "SELECT datname FROM pg_database WHERE datname LIKE 'kurabe%'")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(rows)
}
