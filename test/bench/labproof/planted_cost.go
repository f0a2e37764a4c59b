package labproof

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kurabe/lab/dial"
	labresult "kurabe/lab/result"
	"kurabe/test/bench/bed"
)

const (
	// plantedMicros is what the baseline's function takes.
	plantedMicros = 2000
	// plantedBar is how far from the truth an estimate may be, as a share: a quarter of
	// the smallest cost that is planted.
	plantedBar = 0.005
	// plantedGrace is how long the study may take to end after Ctrl-C.
	plantedGrace = 30 * time.Second
)

// planted are the costs, as variants of the study in percent.
var planted = []struct {
	name    string
	percent int
}{{"zero", 0}, {"two", 2}, {"five", 5}, {"twenty", 20}}

// provePlanted runs a study through the command, as a user would, by the URL of an
// instance: a function takes so much longer in each variant, to the microsecond.
func provePlanted(ctx context.Context, r *bed.Run, i *bed.Instance) (failure error) {
	dir, err := os.MkdirTemp(r.Dir, "kurabe-bench-planted-")
	if err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, "planted.yaml"), []byte(plantedStudy(r)), 0o600); err != nil {
		return err
	}
	address := url.URL{Scheme: bed.Postgres, User: url.User(bed.MasterUser), Host: dial.Server{Host: i.Host, Port: i.Port}.Address(), Path: "/" + bed.Database}
	cmd := exec.CommandContext(ctx, r.Bin, "lab", "run", "planted.yaml", "--target", address.String(), "--out", "planted.jsonl", "--seed", strconv.FormatUint(r.Rng.Uint64()>>1|1, 10))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PGPASSWORD="+bed.MasterPassword)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it cleans up
	cmd.WaitDelay = plantedGrace
	if out, err := cmd.CombinedOutput(); err != nil {
		const most = 800
		return fmt.Errorf("kurabe lab run: %w: %s", err, out[max(0, len(out)-most):])
	}
	f, err := labresult.Read(filepath.Join(dir, "planted.jsonl"))
	if err != nil {
		return err
	}
	return plantedFound(r, f)
}

func plantedStudy(r *bed.Run) string {
	const begin = "CREATE OR REPLACE FUNCTION lab_takes() RETURNS void LANGUAGE plpgsql AS 'DECLARE until timestamptz := clock_timestamp() + interval ''1 microsecond'' *"
	const end = "; BEGIN WHILE clock_timestamp() < until LOOP END LOOP; END'"
	takes := func(percent int) string {
		return fmt.Sprintf("%s %d %s", begin, plantedMicros+plantedMicros*percent/100, end)
	}
	var variants strings.Builder
	for _, p := range planted {
		fmt.Fprintf(&variants, "  - {name: %s, sql: [%q]}\n", p.name, takes(p.percent))
	}
	return fmt.Sprintf(`name: planted
question: Is a cost found, and sized?
engines: [postgres]
primary: {metric: resp_p50, margin: 0.03}
baseline: none
variants:
  - {name: none}
%sworkloads:
  - {name: calls, generator: kurabe, mode: closed, clients: 1, script: "SELECT lab_takes();", setup: [%q]}
plan: {blocks_min: %d, blocks_max: %d, warm: 1s, warm_max: 1s, measure: %ds}
`, variants.String(), takes(0), r.Blocks, r.Blocks, bed.Pick(r, 4, 1))
}

// plantedFound compares the estimates with the truth: what a call takes beside the
// function is the same in all variants, so the truth follows from what the baseline took.
func plantedFound(r *bed.Run, f *labresult.File) error {
	all, err := labresult.Estimates(f, bed.SpeedLevel)
	if err != nil {
		return err
	}
	last, ranked := 0.0, true
	for _, p := range planted {
		found := false
		for _, e := range all {
			if e.Variant != p.name || e.Metric != "resp_p50" {
				continue
			}
			found = true
			const microsOfUnit = 1000 // the metric is in ms
			truth := 1 + float64(plantedMicros*p.percent)/100/(e.A*microsOfUnit)
			r.Out.Sample("planted", map[string]any{"percent": p.percent, "truth": truth, "estimate": e.Ratio.Estimate, "low": e.Ratio.Interval.Low, "high": e.Ratio.Interval.High, "verdict": e.Verdict})
			line := bed.Row{Bench: "lab", What: fmt.Sprintf("a planted cost of %d %%, true ratio %.3f: found", p.percent, truth), Value: bed.FormatRatio(e.Ratio),
				Bar: fmt.Sprintf("± %.1f %%", 100*plantedBar), Verdict: bed.Verdict(math.Abs(e.Ratio.Estimate-truth) <= plantedBar),
				Note: fmt.Sprintf("the study says %q at a margin of 3 %%; %d blocks", e.Verdict, e.Ratio.Pairs)}
			if e.Why != "" {
				line.Note += "; " + e.Why
			}
			r.Out.Row(line)
			ranked = ranked && e.Ratio.Estimate > last
			last = e.Ratio.Estimate
		}
		if !found {
			return fmt.Errorf("no estimate of variant %s", p.name)
		}
	}
	r.Out.Row(bed.Row{Bench: "lab", What: "the four planted costs are ranked as they were planted", Value: map[bool]string{true: "yes", false: "no"}[ranked], Bar: "yes", Verdict: bed.Verdict(ranked)})
	return nil
}
