//go:build integration

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/internal/harness"
	"kurabe/lab/result"
)

// scaleStudy has two ladders: one computes, one commits rows as fast as the disk lets it.
const scaleStudy = `
name: limited
question: Is what limits a server named?
engines: [postgres]
primary: {metric: tps, margin: 0.03}
baseline: slow
variants:
  - {name: slow, class: CLASS, storage_type: io1, iops: 1000, storage_gib: 100}
plan: {blocks_min: BLOCKS, blocks_max: BLOCKS, warm: 1s, warm_max: 1s, measure: 2s}
workloads:
`

const labBurns = "CREATE OR REPLACE FUNCTION lab_burns() RETURNS void LANGUAGE plpgsql AS 'BEGIN FOR n IN 1..1000000 LOOP END LOOP; END'"

// scaleLadders are the loads, one a line.
func scaleLadders() string {
	text := ""
	for _, l := range []struct {
		name, script, setup string
		clients             []int
	}{
		{"burn", "SELECT lab_burns();", labBurns, []int{1, 2, 8}},
		{"commit", "INSERT INTO lab_filled VALUES (1);", "CREATE TABLE IF NOT EXISTS lab_filled (n integer)", []int{1, 2, 16}},
	} {
		for _, n := range l.clients {
			text += fmt.Sprintf("  - {name: %s-%d, generator: pgbench, mode: closed, clients: %d, script: %q, setup: [%q]}\n", l.name, n, n, l.script, l.setup)
		}
	}
	return text
}

// A point of a scale study names what limits it: write IOPS where the class has few, the
// processor where the statements compute.
func TestLabNamesTheLimit(t *testing.T) {
	onceIsEnough(t)
	needRoot(t)
	s := shared(t)
	s.NeedEngine(t, "postgres", s.Engines(t))
	dir := harness.Folder(t, false)
	blocks := "1" // one more measures the same points again
	if harness.Whole() {
		blocks = "2"
	}
	text := strings.NewReplacer("CLASS", harness.Class("micro"), "BLOCKS", blocks).Replace(scaleStudy) + scaleLadders()
	if err := os.WriteFile(filepath.Join(dir, "limited.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := lab(t, dir, append([]string{"run", "limited.yaml", "--out", "run.jsonl"}, labOnService(s)...)...)
	t.Log(out)
	f, err := result.Read(filepath.Join(dir, "run.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	enforced := false
	for n := range f.Trials {
		trial := &f.Trials[n]
		probes := trial.Main().Probes
		enforced = enforced || probes["write_ops_limit_end"] == 1000
		if probes["cpu_limit_end"] <= 0 || probes["memory_limit_end"] != 1<<30 {
			t.Errorf("block %d, %s: limits %v, %v", trial.Block, trial.Workload, probes["cpu_limit_end"], probes["memory_limit_end"])
		}
		if ops := probes["write_ops"]; strings.HasPrefix(trial.Workload, "commit") && ops <= 0 {
			t.Errorf("block %d, %s: %v writes", trial.Block, trial.Workload, ops)
		}
	}
	words := strings.Join(strings.Fields(out), " ")
	// Beside a busy neighbour it is the processors of the machine that end first.
	if !strings.Contains(words, "8 clients processor") {
		t.Error("what computes is not called limited by the processor")
	}
	if !enforced {
		t.Skip("IOPS are not limited here: no control group for I/O, or the data is on no disk of its own")
	}
	if !strings.Contains(words, "16 clients write IOPS ") {
		t.Error("what commits with 1000 IOPS is not called limited by them")
	}
	page := read(t, filepath.Join(dir, "run.html"))
	for _, want := range []string{"Which resource limits each point", "Write IOPS"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	nothingOfTheLab(t, s)
}
