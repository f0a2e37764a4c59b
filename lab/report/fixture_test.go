package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"kurabe/lab/result"
	"kurabe/lab/result/resulttest"
	"kurabe/lab/study"
)

// ladderFile is a study of clients, storage of two speeds: the slow one is limited by
// its writes, the fast one by the processor.
func ladderFile(blocks int) *result.File {
	d := study.Study{
		Name: "scale", Question: "What do more provisioned IOPS buy?", Engines: []string{study.Postgres},
		Primary: study.Primary{Metric: "tps", Margin: 0.05}, Baseline: "slow", Plan: study.Plan{BlocksMin: blocks, BlocksMax: blocks},
		Variants: []study.Variant{
			{Name: "slow", Title: "1000 IOPS", IOPS: 1000}, {Name: "slow′", Title: "1000 IOPS", IOPS: 1000, TwinOf: "slow"}, {Name: "fast", Title: "6000 IOPS", IOPS: 6000},
		},
		Published: []study.Published{
			{Source: "RDS, 2014", Variant: "slow", Workload: "clients-64", Label: "1000 IOPS, -c 64", Values: map[string]float64{"tps": 620, "write_iops": 940}},
			{Source: "RDS, 2014", Variant: "fast", Workload: "clients-64", Label: "6000 IOPS, -c 64", Values: map[string]float64{"tps": 4960.5, "write_iops": 5010}},
		},
	}
	for _, n := range []int{64, 1, 8} { // not in order
		d.Workloads = append(d.Workloads, study.Workload{
			Name: fmt.Sprintf("clients-%d", n), Generator: study.GeneratorPgbench, Kit: "tpcb-like", Mode: study.ModeClosed, Clients: n, Scale: 10,
		})
	}
	f := &result.File{
		Study: result.Study{Format: result.Format, ID: "scale-1", Created: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC), Definition: d, Seed: 1, Engine: study.Postgres},
		Env:   []result.Env{{Host: map[string]string{"cores": "2"}, Engine: map[string]string{"version": "15.14"}}, {Host: map[string]string{"cores": "4"}}},
	}
	for block := 1; block <= blocks; block++ {
		for _, v := range d.Variants {
			for _, w := range d.Workloads {
				f.Trials = append(f.Trials, ladderTrial(block, v, w))
			}
		}
	}
	return f
}

func ladderTrial(block int, v study.Variant, w study.Workload) result.Trial {
	const seconds = 20
	tps := min(290*math.Sqrt(float64(w.Clients)), float64(v.IOPS)*1.1) * (1 + 0.01*float64(block))
	waits := map[string]int{"IO:WALSync": 3, "": 7}
	if w.Clients == 8 {
		waits = map[string]int{"Lock:transactionid": 8, "": 2}
	}
	return result.Trial{
		Block: block, Variant: v.Name, Workload: w.Name, Status: result.StatusOK,
		Phases: []result.Phase{{
			Name: result.PhaseMeasure, Ms: seconds * 1000,
			Load: &result.Load{Transactions: int64(tps * seconds), Seconds: seconds, Summary: map[string]float64{
				"avg": 1000 * float64(w.Clients) / tps, "p50": 3, "p95": 5, "statement 01 BEGIN": 0.1,
			}},
			Probes: map[string]float64{"cpu_s": min(tps/1000, 1.9) * seconds, "write_ops": tps * seconds * 0.85, "write_ops_limit_end": float64(v.IOPS), "write_bytes": tps * seconds * 8000},
			Waits:  waits,
		}},
	}
}

// hostile is what somebody might write into a name.
const hostile = "\"><script>alert(1)</script></title></style>{{.}}<img src=x onerror='y'>]]>\x1b[2J\u202e&amp;\n\x00監査′"

// hostileFile has it everywhere that a file has a text, once also at great length.
func hostileFile() *result.File {
	f := resulttest.File(7, resulttest.Options{Blocks: 2})
	long := strings.Repeat(hostile, 200)
	d := &f.Study.Definition
	d.Name, d.Question, f.Study.ID = hostile, long, hostile
	f.Study.Command = []string{"kurabe", hostile, "it's"}
	for n := range d.Variants {
		d.Variants[n].Title = hostile
		d.Variants[n].Parameters = map[string]string{hostile: long}
	}
	d.Variants[3].Title = long
	for n := range d.Workloads {
		d.Workloads[n].Title, d.Workloads[n].Kit, d.Workloads[n].Protocol = hostile, hostile, hostile
	}
	d.Published = append(d.Published, study.Published{Source: hostile, Variant: "file", Label: hostile, Values: map[string]float64{hostile: 1, "resp_p95": math.NaN(), "ratio": math.Inf(1)}})
	f.Study.Unsupported = map[string]string{"slow-log": long, "activity-stream": hostile}
	f.Env[0].Host[hostile], f.Env[0].Engine["version"] = long, hostile
	for variant := range f.Settings {
		f.Settings[variant][hostile] = hostile + variant
	}
	for n := range f.Trials {
		t := &f.Trials[n]
		t.Status, t.Reason = result.StatusUnsettled, long
		t.Canary = map[string][2]float64{hostile: {1, 1.2}}
		for k := range t.Phases {
			p := &t.Phases[k]
			if p.Load == nil {
				continue
			}
			p.Waits = map[string]int{hostile: 9}
			p.Load.Statements = map[string]string{"01 " + hostile: p.Load.Service}
			p.Load.Prog = hostile
		}
		f.Events = append(f.Events, result.Event{Block: t.Block, Variant: t.Variant, Workload: t.Workload, AtMs: 9000, Kind: hostile, Text: hostile})
	}
	return f
}
