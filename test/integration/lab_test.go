//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/harness"
	"kurabe/lab/result"
	"kurabe/lab/stat"
)

// labCommand is the lab's command, in a folder of its own, without a service to find.
func labCommand(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(harness.Binary(t), append([]string{"lab"}, args...)...)
	c.Dir = dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "KURABE_") && !strings.HasPrefix(e, "AWS_A") && !strings.HasPrefix(e, "PG") {
			c.Env = append(c.Env, e)
		}
	}
	c.Env = append(c.Env, "TMPDIR="+dir)
	return c
}

func lab(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	c := labCommand(t, dir, args...)
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("kurabe lab %s: %v\n%s%s", strings.Join(args, " "), err, out, &said)
	}
	return string(out)
}

// plantedStudy costs what its variants say: a function takes that much of the time that
// the baseline's takes, to the microsecond, whatever the machine does in it.
const plantedStudy = `
name: planted
question: Is a cost found, and sized?
engines: [postgres]
primary: {metric: resp_p50, margin: 0.03}
metrics: [tps]
baseline: none
variants:
  - {name: none}
  - {name: a-little, sql: ["%[1]s 2040 %[2]s"]}
  - {name: some, sql: ["%[1]s 2100 %[2]s"]}
  - {name: much, sql: ["%[1]s 2400 %[2]s"]}
workloads:
  - name: calls
    generator: kurabe
    mode: closed
    clients: 1
    script: "SELECT lab_takes();"
    setup: ["%[1]s 2000 %[2]s"]
plan: {blocks_min: 7, blocks_max: 7, warm: 500ms, warm_max: 500ms, measure: 1s}
`

// A planted cost of 2, 5 and 20 % is found, ranked and sized on a real server that
// nobody manages, by its URL.
func TestLabFindsAPlantedCost(t *testing.T) {
	onceIsEnough(t)
	address := plain(t, "postgres")
	dir := harness.Folder(t, false)
	const begin = "CREATE OR REPLACE FUNCTION lab_takes() RETURNS void LANGUAGE plpgsql AS 'DECLARE until timestamptz := clock_timestamp() + interval ''1 microsecond'' *"
	const end = "; BEGIN WHILE clock_timestamp() < until LOOP END LOOP; END'"
	text := fmt.Sprintf(plantedStudy, begin, end)
	if err := os.WriteFile(filepath.Join(dir, "planted.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := lab(t, dir, "run", "planted.yaml", "--target", address, "--out", "planted.jsonl", "--seed", "5")
	t.Log(out)
	f, err := result.Read(filepath.Join(dir, "planted.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := result.Estimates(f, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	ratios := map[string]stat.Ratio{}
	for _, e := range all {
		if e.Metric == "resp_p50" {
			ratios[e.Variant] = e.Ratio
		}
	}
	// What a call takes beside the function is the same in all, and a few percent of it. On
	// a busy machine the interval is wide; how exact the figure is on a quiet one is for
	// the benchmark to say.
	for variant, planted := range map[string]float64{"a-little": 1.02, "some": 1.05, "much": 1.20} {
		r := ratios[variant]
		t.Logf("%s: planted %.2f, measured %.4f [%.4f, %.4f]", variant, planted, r.Estimate, r.Interval.Low, r.Interval.High)
		near := max(0.015, (planted-1)/4)
		if planted < r.Interval.Low-near || planted > r.Interval.High+near || r.Pairs != 7 {
			t.Errorf("%s: planted %.2f, found %+v", variant, planted, r)
		}
	}
	if much := ratios["much"].Estimate; ratios["a-little"].Estimate >= much || ratios["some"].Estimate >= much {
		t.Errorf("out of order: %v", ratios)
	}
	if strings.Contains(out, harness.Password) || strings.Contains(read(t, filepath.Join(dir, "planted.jsonl")), harness.Password) {
		t.Error("the password is in what the lab wrote")
	}
	first := lab(t, dir, "recompute", "planted.jsonl")
	if first != lab(t, dir, "recompute", "planted.jsonl") || !strings.Contains(first, "\tresp_p50\t") {
		t.Errorf("recomputed:\n%s", first)
	}
	if page := read(t, filepath.Join(dir, "planted.html")); !strings.Contains(page, "<svg") {
		t.Error("the page has no chart")
	}
	if out := lab(t, dir, "clean", "--target", address); !strings.Contains(out, "nothing is left") {
		t.Errorf("after an orderly end: %s", out)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A run whose process is killed leaves its file, which is resumed, and a private service,
// which clean removes.
func TestLabIsKilledAndResumed(t *testing.T) {
	onceIsEnough(t)
	if _, err := os.Stat("/usr/sbin/mariadbd"); err != nil {
		t.Skip(err)
	}
	dir := harness.Folder(t, false)
	args := []string{"run", "general-log", "--quick", "--blocks", "2", "--variants", "file", "--scale", "0.1", "--target", "private", "--out", "run.jsonl"}
	c := labCommand(t, dir, args...)
	said := &harness.Log{}
	c.Stderr, c.Stdout = said, said
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "run.jsonl")
	harness.Wait(t, 3*time.Minute, "two trials are in the file", func() string {
		if n := strings.Count(tryRead(path), `"t":"trial"`); n < 2 {
			return fmt.Sprintf("%d: %s", n, said)
		}
		return ""
	})
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	kept := tryRead(path)
	out := lab(t, dir, "clean", "--target", "private")
	if !strings.Contains(out, "removed") {
		t.Errorf("clean said: %s", out)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "kurabe-lab-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	// A whole record stays; half a line does not.
	table := lab(t, dir, "run", "--resume", "run.jsonl", "--target", "private")
	whole := read(t, path)
	if last := strings.LastIndexByte(kept, '\n'); !strings.HasPrefix(whole, kept[:last+1]) {
		t.Error("what was measured before the end has changed")
	}
	f, err := result.Read(path)
	if err != nil || len(f.Ends) != 1 {
		t.Fatalf("%v, %v", f, err)
	}
	cells := map[string]int{}
	for _, trial := range f.Trials {
		if trial.Counts() {
			cells[fmt.Sprint(trial.Block, trial.Variant)]++
		}
	}
	if len(cells) != 6 {
		t.Errorf("cells that count: %v", cells)
	}
	if !strings.Contains(table, "general-log") {
		t.Errorf("%s", table)
	}
}

func tryRead(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}

// What is wrong is said before anything is created.
func TestLabRefuses(t *testing.T) {
	dir := harness.Folder(t, false)
	if err := os.WriteFile(filepath.Join(dir, "wrong.yaml"), []byte("name: wrong\nquestoin: what\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no such study":         {[]string{"run", "nothing"}, "neither a built-in study"},
		"an unknown key":        {[]string{"run", "wrong.yaml"}, "wrong.yaml:2:1: questoin"},
		"nobody at the URL":     {[]string{"run", "audit", "--target", "postgres://u:secret-of-mine@127.0.0.1:1/db"}, "127.0.0.1:1"},
		"no such target":        {[]string{"run", "audit", "--target", "moon"}, "--target"},
		"two sizes":             {[]string{"run", "audit", "--quick", "--as-published"}, "exclude each other"},
		"an unknown variant":    {[]string{"run", "audit", "--variants", "moon"}, "pgaudit-all"},
		"not asked of MySQL":    {[]string{"run", "audit", "--engine", "mysql"}, "postgres"},
		"nothing to go on with": {[]string{"run", "--resume", "none.jsonl"}, "none.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := labCommand(t, dir, c.args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.want) || strings.Contains(string(out), "secret-of-mine") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
