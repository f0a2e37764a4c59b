package main

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
func (r *run) provePlanted(ctx context.Context, i *instance) (failure error) {
	dir, err := os.MkdirTemp(r.dir, "kurabe-bench-planted-")
	if err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, "planted.yaml"), []byte(r.plantedStudy()), 0o600); err != nil {
		return err
	}
	address := url.URL{Scheme: postgres, User: url.User(masterUser), Host: dial.Server{Host: i.host, Port: i.port}.Address(), Path: "/" + database}
	cmd := exec.CommandContext(ctx, r.bin, "lab", "run", "planted.yaml", "--target", address.String(), "--out", "planted.jsonl", "--seed", strconv.FormatUint(r.rng.Uint64()>>1|1, 10))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PGPASSWORD="+masterPassword)
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
	return r.plantedFound(f)
}

func (r *run) plantedStudy() string {
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
`, variants.String(), takes(0), r.Blocks, r.Blocks, pick(r, 4, 1))
}

// plantedFound compares the estimates with the truth: what a call takes beside the
// function is the same in all variants, so the truth follows from what the baseline took.
func (r *run) plantedFound(f *labresult.File) error {
	all, err := labresult.Estimates(f, speedLevel)
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
			r.out.sample("planted", map[string]any{"percent": p.percent, "truth": truth, "estimate": e.Ratio.Estimate, "low": e.Ratio.Interval.Low, "high": e.Ratio.Interval.High, "verdict": e.Verdict})
			line := row{Bench: "lab", What: fmt.Sprintf("a planted cost of %d %%, true ratio %.3f: found", p.percent, truth), Value: formatRatio(e.Ratio),
				Bar: fmt.Sprintf("± %.1f %%", 100*plantedBar), Verdict: verdict(math.Abs(e.Ratio.Estimate-truth) <= plantedBar),
				Note: fmt.Sprintf("the study says %q at a margin of 3 %%; %d blocks", e.Verdict, e.Ratio.Pairs)}
			if e.Why != "" {
				line.Note += "; " + e.Why
			}
			r.out.row(line)
			ranked = ranked && e.Ratio.Estimate > last
			last = e.Ratio.Estimate
		}
		if !found {
			return fmt.Errorf("no estimate of variant %s", p.name)
		}
	}
	r.out.row(row{Bench: "lab", What: "the four planted costs are ranked as they were planted", Value: map[bool]string{true: "yes", false: "no"}[ranked], Bar: "yes", Verdict: verdict(ranked)})
	return nil
}
