package result

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// The published table of critical values of U, two-sided 5 %.
func TestRankSumCriticalValues(t *testing.T) {
	for _, c := range []struct{ m, n, want int }{
		{3, 3, -1}, {4, 4, 0}, {5, 5, 2}, {5, 8, 6}, {6, 6, 5}, {7, 12, 18}, {8, 8, 13}, {10, 10, 23}, {12, 7, 18}, {20, 20, 127}, {1, 20, -1}, {2, 8, 0},
	} {
		k, tail := rankSumTail(c.m, c.n, 0.025)
		if k-1 != c.want || tail > 0.025 {
			t.Errorf("%d and %d: %d (tail %v), want %d", c.m, c.n, k-1, tail, c.want)
		}
	}
	if k, _ := rankSumTail(0, 9, 0.025); k != 0 {
		t.Error("nothing has an interval")
	}
}

// The approximation takes over where it agrees with the count.
func TestRankSumApproximation(t *testing.T) {
	exact, _ := rankSumTail(maxExact, maxExact, 0.025)
	near, _ := rankSumTail(maxExact+1, maxExact, 0.025)
	if share := float64(near) / float64(exact); share < 0.995 || share > 1.03 {
		t.Errorf("%d at the bound, %d beyond", exact, near)
	}
	total := 0.0
	for _, w := range rankSumWays(maxExact, maxExact) {
		total += w
	}
	lg, _ := math.Lgamma(2*maxExact + 1)
	half, _ := math.Lgamma(maxExact + 1)
	if math.Abs(math.Log(total)-(lg-2*half)) > 1e-9 {
		t.Errorf("the ways sum up to e^%v, want e^%v", math.Log(total), lg-2*half)
	}
}

// The interval of a comparison holds the truth as often as it says.
func TestShiftRatioCoverage(t *testing.T) {
	const runs, m, n, truth = 2000, 8, 12, 1.1
	rng := rand.New(rand.NewPCG(3, 4))
	held, level := 0, 0.0
	for range runs {
		x, y := make([]float64, m), make([]float64, n)
		for i := range x {
			x[i] = 0.2 + 0.03*rng.NormFloat64()
		}
		for i := range y {
			y[i] = 0.2 + math.Log(truth) + 0.03*rng.NormFloat64()
		}
		r := shiftRatio(x, y, 0.95)
		level = r.Interval.Level
		if r.Interval.Low <= truth && truth <= r.Interval.High {
			held++
		}
		if !(r.Interval.Low <= r.Estimate && r.Estimate <= r.Interval.High) {
			t.Fatalf("%+v", r)
		}
	}
	got, deviation := float64(held)/runs, math.Sqrt(level*(1-level)/runs)
	if math.Abs(got-level) > 4*deviation {
		t.Errorf("coverage %v, want %v ± %v", got, level, 4*deviation)
	}
}

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		first, second float64
		blocks        int
		compatible    bool
		why           string
	}{
		"the same":       {0.9, 0.9, 12, true, ""},
		"another cost":   {0.9, 0.8, 12, false, ""},
		"other lengths":  {0.9, 0.8, 6, false, ""},
		"too few blocks": {0.9, 0.8, 1, true, "12 and 1 blocks are too few for an interval"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := Compare(made(12, quiet(c.first)), made(c.blocks, quiet(c.second)))
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != 4 || all[1].Variant != "on" || all[1].Metric != "tps" {
				t.Fatalf("%+v", all)
			}
			on := all[1]
			if on.Compatible != c.compatible || on.Why != c.why || math.Abs(on.Ratio.Estimate-c.second/c.first) > 0.003 {
				t.Errorf("%+v", on)
			}
			if !all[0].Compatible || all[0].A.Ratio.Pairs != 12 || all[0].B.Ratio.Pairs != c.blocks || on.Ratio.Method != MethodRankSum {
				t.Errorf("%+v", all[0])
			}
		})
	}
}

func TestCompareRefuses(t *testing.T) {
	a := made(6, quiet(1))
	for want, change := range map[string]func(f *File){
		`one is the study "small", the other "large"`:             func(f *File) { f.Study.Definition.Name = "large" },
		`one has the baseline "off", the other "on"`:              func(f *File) { f.Study.Definition.Baseline = "on" },
		`one is decided by tps, the other by resp_p95`:            func(f *File) { f.Study.Definition.Primary.Metric = "resp_p95" },
		`only one has the variant "new"`:                          func(f *File) { f.Study.Definition.Variants[1].Name = "new" },
		`only one has the workload "v"`:                           func(f *File) { f.Study.Definition.Workloads[0].Name = "v" },
		`of the second file: "rps" is no metric; there are tps, `: func(f *File) { f.Study.Definition.Metrics = []string{"rps"} },
	} {
		b := made(6, quiet(1))
		change(b)
		if _, err := Compare(a, b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

func TestDifferences(t *testing.T) {
	a, b := made(6, quiet(1)), made(7, quiet(1))
	a.Env = []Env{{Host: map[string]string{"kernel": "6.1"}}, {Host: map[string]string{"kernel": "6.12", "cpu": "x"}, Lab: map[string]string{"version": "1"}}}
	b.Env = []Env{{Host: map[string]string{"kernel": "6.13", "cpu": "x"}, Lab: map[string]string{"version": "1"}}}
	a.Settings = map[string]map[string]string{"off": {"fsync": "on", "port": "1"}, "on": {"a": "1"}}
	b.Settings = map[string]map[string]string{"off": {"fsync": "off", "port": "2"}}
	b.Study.ID, b.Study.Seed, b.Study.Definition.Plan.Seed = "small-2", 8, 9
	b.Study.Definition.Plan.BlocksMax = 30
	b.Study.Definition.Variants[1].Parameters = map[string]string{"x": "1"}
	got, err := Differences(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := []Difference{
		{"definition.plan.blocks_max", "24", "30"}, {"definition.variants.on.parameters.x", "", "1"}, {"host.kernel", "6.12", "6.13"},
		{"settings.off.fsync", "on", "off"},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

func TestEnvironmentDiff(t *testing.T) {
	f := made(1, quiet(1))
	if got := EnvironmentDiff(f); len(got) != 0 {
		t.Errorf("without settings: %v", got)
	}
	f.Settings = map[string]map[string]string{
		"off":  {"fsync": "on", "PORT": "5432", "data_directory": "/a", "log_statement": "none", "gtid_current_pos": "0-1-5", "timestamp": "1.5"},
		"off′": {"fsync": "on", "PORT": "5433", "data_directory": "/b", "log_statement": "none", "gtid_current_pos": "0-1-6", "timestamp": "2.5"},
		"on":   {"fsync": "on", "PORT": "5434", "data_directory": "/c", "log_statement": "all", "pgaudit.log": "all"},
	}
	got := EnvironmentDiff(f)
	if d, ok := got["off′"]; !ok || len(d) != 0 {
		t.Errorf("the twin differs in %v", d)
	}
	on := got["on"]
	if len(on) != 2 || on[0] != (Difference{"log_statement", "none", "all"}) || on[1] != (Difference{"pgaudit.log", "", "all"}) || len(got) != 2 {
		t.Errorf("%v", got)
	}
}
