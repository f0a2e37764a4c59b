package result

import (
	"math"
	"strings"
	"testing"

	"kurabe/lab/stat"
)

// made is a file with that many blocks; tps gives the throughput of a variant.
func made(blocks int, tps func(block int, variant string) float64) *File {
	f := &File{Study: smallStudy()}
	for b := 1; b <= blocks; b++ {
		for _, v := range []string{"on", "off′", "off"} {
			t := okTrial(b, v, 0)
			t.Phases[0].Load.Seconds = 1000
			t.Phases[0].Load.Transactions = int64(math.Round(tps(b, v) * 1000))
			f.Trials = append(f.Trials, t)
		}
	}
	return f
}

// quiet is a throughput with an effect and a little noise that is the same in every test.
func quiet(effect float64) func(int, string) float64 {
	return func(b int, v string) float64 {
		x := 1000 + 50*float64(b) // the machine drifts
		switch v {
		case "on":
			return x * effect * (1 + 0.001*float64(b%3-1))
		case "off′":
			return x * (1 + 0.001*float64(b%5-2))
		}
		return x
	}
}

// primary returns the estimates of the twin and of the other variant.
func primary(t *testing.T, f *File) (twin, on Estimate) {
	t.Helper()
	all, err := Estimates(f, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 2 || !all[0].Twin || !all[0].Primary || all[1].Variant != "on" {
		t.Fatalf("%+v", all)
	}
	return all[0], all[1]
}

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		effect  float64
		blocks  int
		verdict stat.Verdict
	}{
		"a cost":                {0.9, 12, stat.Costs},
		"no cost":               {0.999, 12, stat.NoMaterialCost},
		"an improvement":        {1.1, 12, stat.Improves},
		"on the margin":         {1 / 1.03, 12, stat.Undecided},
		"too few blocks":        {0.9, 5, stat.DirectionOnly},
		"just enough":           {0.9, 6, stat.Costs},
		"one block":             {0.9, 1, stat.DirectionOnly},
		"many blocks bootstrap": {0.9, 24, stat.Costs},
	} {
		t.Run(name, func(t *testing.T) {
			twin, on := primary(t, made(c.blocks, quiet(c.effect)))
			if on.Verdict != c.verdict || on.Ratio.Pairs != c.blocks || math.Abs(on.Ratio.Estimate-c.effect) > 0.002 {
				t.Errorf("%+v", on)
			}
			if more := c.verdict == stat.Undecided || c.verdict == stat.DirectionOnly; more != (on.MoreBlocks > 0) {
				t.Errorf("%s needs %d more blocks", on.Verdict, on.MoreBlocks)
			}
			if twin.Why != "" || on.Why != "" {
				t.Errorf("%q, %q", twin.Why, on.Why)
			}
			if c.blocks > 1 && !(on.SD > 0 && on.SD < 0.01) || on.Holm != on.P {
				t.Errorf("SD %v, P %v, Holm %v", on.SD, on.P, on.Holm)
			}
			if want := 1000 + 50*float64(c.blocks+1)/2; math.Abs(on.A-want) > 1 || math.Abs(on.B-want*c.effect) > 2 {
				t.Errorf("medians %v and %v, want %v", on.A, on.B, want)
			}
		})
	}
}

func TestVerdictIsWithheld(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *File)
		why    string
	}{
		"the twin differs": {func(f *File) { scale(f, "off′", 1.02) }, "the same recipe, differ"},
		"no twin":          {func(f *File) { drop(f, "off′", 12) }, "no ratio"},
		"few twins":        {func(f *File) { drop(f, "off′", 8) }, "only 4 blocks have the baseline and its twin"},
		"unsettled": {func(f *File) {
			for i := range f.Trials {
				if t := &f.Trials[i]; t.Variant == "on" && t.Block <= 7 {
					t.Status = StatusUnsettled
				}
			}
		}, "7 of 24 trials were unsettled, more than 25 %"},
		"an unsettled twin": {func(f *File) {
			for i := range f.Trials {
				if t := &f.Trials[i]; t.Variant == "off′" && t.Block <= 7 {
					t.Status = StatusUnsettled
				}
			}
		}, "of the baseline's twin 7 of 24 trials were unsettled"},
		"a block without an answer": {func(f *File) { f.Trials[0].Phases[0].Load.Transactions = 0 }, "1 of 12 blocks have a value of 0, which has no ratio"},
		"nothing in common":         {func(f *File) { drop(f, "on", 12) }, "12 of 12 blocks lack a trial of one of the two that counts"},
		"no trial at all":           {func(f *File) { f.Trials = nil }, "no block has a trial that counts"},
	} {
		t.Run(name, func(t *testing.T) {
			f := made(12, quiet(0.9))
			c.change(f)
			_, on := primary(t, f)
			if on.Verdict != stat.Withheld || !strings.Contains(on.Why, c.why) || on.MoreBlocks != 0 {
				t.Errorf("%s: %q does not say %q", on.Verdict, on.Why, c.why)
			}
		})
	}
}

// TestNoisyTwinRaisesTheFloor: what is within the twin's own difference is not told from
// none; what is far beyond it costs all the same.
func TestNoisyTwinRaisesTheFloor(t *testing.T) {
	for effect, want := range map[float64]stat.Verdict{1: stat.Undecided, 0.95: stat.Undecided, 0.5: stat.Costs} {
		f := made(12, quiet(effect))
		for i := range f.Trials {
			if t := &f.Trials[i]; t.Variant == "off′" {
				t.Phases[0].Load.Seconds *= 1 + 0.1*float64(t.Block%2*2-1)
			}
		}
		_, on := primary(t, f)
		told := strings.Contains(on.Why, "less is not told from none")
		if on.Verdict != want || told != (want == stat.Undecided) || (on.MoreBlocks > 0) != (want == stat.Undecided) {
			t.Errorf("%v: %s, %q, %d more blocks", effect, on.Verdict, on.Why, on.MoreBlocks)
		}
	}
}

func scale(f *File, variant string, factor float64) {
	for i := range f.Trials {
		if t := &f.Trials[i]; t.Variant == variant {
			t.Phases[0].Load.Seconds /= factor
		}
	}
}

// drop makes the trials of the first blocks of a variant fail.
func drop(f *File, variant string, blocks int) {
	for i := range f.Trials {
		if t := &f.Trials[i]; t.Variant == variant && t.Block <= blocks {
			t.Status = StatusFailed
		}
	}
}

func TestAQuarterOfUnsettledTrialsIsAllowed(t *testing.T) {
	f := made(12, quiet(0.9))
	for i := range f.Trials {
		if t := &f.Trials[i]; t.Variant == "on" && t.Block <= 6 {
			t.Status = StatusUnsettled
		}
	}
	if _, on := primary(t, f); on.Verdict != stat.Costs || on.Ratio.Pairs != 12 {
		t.Errorf("%+v", on)
	}
}

// Of a cell's trials in a block only the last that counts is in the figures.
func TestLastTrialThatCounts(t *testing.T) {
	f := made(6, quiet(0.9))
	again := func(status string, tps int64) {
		x := okTrial(2, "on", tps*10)
		x.Status = status
		f.Trials = append(f.Trials, x)
	}
	again(StatusOK, 5)
	again(StatusUnsettled, 990)
	again(StatusRepeated, 7)
	again(StatusFailed, 8)
	_, on := primary(t, f)
	if on.Ratio.Pairs != 6 || math.Abs(on.Ratio.Estimate-0.9) > 0.01 || on.Why != "" {
		t.Errorf("%+v", on)
	}
	f.Trials = f.Trials[:len(f.Trials)-3] // now 5 tps is the last
	if _, on := primary(t, f); on.Ratio.Interval.Low > 0.1 {
		t.Errorf("%+v", on)
	}
}

func TestBlocksThatLackATrial(t *testing.T) {
	f := made(12, quiet(0.9))
	drop(f, "on", 2)
	_, on := primary(t, f)
	if on.Verdict != stat.Costs || on.Ratio.Pairs != 10 || on.Why != "2 of 12 blocks lack a trial of one of the two that counts" {
		t.Errorf("%+v", on)
	}
}

func TestExploratoryEstimates(t *testing.T) {
	f := made(12, quiet(0.9))
	f.Study.Definition.Metrics = []string{"cpu_per_tx", "wal_per_tx", "tps", "resp_p99", "errors_share"}
	for i := range f.Trials {
		p := &f.Trials[i].Phases[0]
		n := float64(p.Load.Transactions)
		p.Probes = map[string]float64{"cpu_s": n * (1 + 0.01*float64(i%7)), "wal_bytes": n * 100 * (1 + 0.01*float64(i%5))}
		if f.Trials[i].Variant == "on" {
			p.Probes["cpu_s"] *= 2
		}
	}
	all, err := Estimates(f, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 10 { // tps is the primary one already
		t.Fatalf("%d estimates", len(all))
	}
	for _, e := range all[2:] {
		if e.Verdict != "" || e.Primary || e.MoreBlocks != 0 {
			t.Errorf("an exploratory metric has a verdict: %+v", e)
		}
		if e.Twin && !math.IsNaN(e.P) && e.Holm != e.P {
			t.Errorf("a twin is adjusted: %+v", e)
		}
	}
	cpu, wal, p99, share := all[3], all[5], all[7], all[9]
	if math.Abs(cpu.Ratio.Estimate-2) > 0.1 || cpu.P >= 0.001 || cpu.Holm != 2*cpu.P {
		t.Errorf("%+v", cpu)
	}
	if wal.Holm != max(wal.P, cpu.Holm) {
		t.Errorf("of two tests the larger p is not changed: %+v", wal)
	}
	if p99.Ratio.Pairs != 0 || !math.IsNaN(p99.Ratio.Estimate) || !math.IsNaN(p99.P) || p99.Why != "12 of 12 blocks did not measure it, or with fewer than the 10000 requests that it takes" {
		t.Errorf("%+v", p99)
	}
	if share.Ratio.Pairs != 0 || share.Why != "12 of 12 blocks have a value of 0, which has no ratio" {
		t.Errorf("%+v", share)
	}
}

func TestEstimatesRefuse(t *testing.T) {
	f := made(6, quiet(1))
	for _, level := range []float64{0, 1, -1, math.NaN()} {
		if _, err := Estimates(f, level); err == nil {
			t.Errorf("level %v", level)
		}
	}
	f.Study.Definition.Metrics = []string{"rps"}
	if _, err := Estimates(f, 0.95); err == nil || !strings.Contains(err.Error(), `"rps" is no metric`) {
		t.Errorf("unknown metric: %v", err)
	}
	f = made(6, quiet(1))
	f.Trials[2].Phases[0].Load.Service = "broken"
	if _, err := Estimates(f, 0.95); err == nil || !strings.Contains(err.Error(), "block 1, off, w: decode histogram") {
		t.Errorf("broken histogram: %v", err)
	}
	if _, err := Estimates(made(stat.MaxPairs+1, quiet(1)), 0.95); err == nil {
		t.Error("more pairs than the statistics take")
	}
}

func TestEstimatesLeaveOut(t *testing.T) {
	f := made(6, quiet(1))
	f.Study.Unsupported = map[string]string{"on": "not here"}
	all, err := Estimates(f, 0.95)
	if err != nil || len(all) != 2 || !all[0].Twin || !all[1].Twin {
		t.Errorf("a variant that the target cannot have: %+v, %v", all, err)
	}
	f.Study.Unsupported = nil
	f.Study.Definition.Variants[1].Engines = []string{"mariadb"}
	if all, err = Estimates(f, 0.95); err != nil || len(all) != 2 {
		t.Errorf("a variant of another engine: %+v, %v", all, err)
	}
	f.Study.Definition.Workloads[0].Engines = []string{"mariadb"}
	if all, err = Estimates(f, 0.95); err != nil || len(all) != 0 {
		t.Errorf("a workload of another engine: %+v, %v", all, err)
	}
}
