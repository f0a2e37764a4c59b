package labproof

import (
	"slices"
	"testing"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

func TestParseGoBench(t *testing.T) {
	found := parseGoBench(`goos: linux
BenchmarkCapacity/open/200k-2         	       1	1000123 ns/op	       2.500 lag-p99-ms	    199876 requests/s	         0 skipped
BenchmarkCapacity/open/200k-2         	       1	1000124 ns/op	       2.600 lag-p99-ms	    199877 requests/s	         0 skipped
BenchmarkProof/blocks=12/noise=both   	       1	  12 ns/op	        95.80 covered-%
BenchmarkBroken-2 	 1 	 word requests/s 	 7
PASS
`)
	open := found["Capacity/open/200k"]
	if !slices.Equal(open["requests/s"], []float64{199876, 199877}) || !slices.Equal(open["skipped"], []float64{0, 0}) {
		t.Errorf("%v", open)
	}
	if !slices.Equal(found["Proof/blocks=12/noise=both"]["covered-%"], []float64{95.8}) {
		t.Errorf("%v", found)
	}
	if len(found["Broken"]) != 0 || len(found) != 3 {
		t.Errorf("%v", found)
	}
}

func TestAgreeVerdict(t *testing.T) {
	ratio := func(low, estimate, high float64) stat.Ratio {
		return stat.Ratio{Estimate: estimate, Interval: stat.Interval{Low: low, High: high, Level: 0.95}}
	}
	for name, c := range map[string]struct {
		ratio  stat.Ratio
		micros float64
		want   string
	}{
		"within 5 %":              {ratio(0.96, 1, 1.04), 1000, bed.Meets},
		"within 20 µs":            {ratio(1.05, 1.10, 1.19), 100, bed.Meets},
		"20 µs are not 5 % there": {ratio(1.06, 1.10, 1.19), 1000, bed.Misses},
		"slower":                  {ratio(1.06, 1.07, 1.08), 1000, bed.Misses},
		"faster":                  {ratio(0.90, 0.92, 0.94), 1000, bed.Misses},
		"too wide":                {ratio(0.90, 1, 1.10), 1000, bed.Undecided},
		"too wide and beside":     {ratio(1.00, 1.06, 1.10), 1000, bed.Undecided},
		"no interval":             {stat.Ratio{Estimate: 1.5}, 1000, bed.Undecided},
	} {
		t.Run(name, func(t *testing.T) {
			if got := agreeVerdict(c.ratio, c.micros); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestCoverageVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		percent []float64
		want    string
	}{
		"all inside":            {[]float64{94.5, 95.5}, bed.Meets},
		"at the bound":          {[]float64{95, 96.9}, bed.Undecided},
		"beyond it by a chance": {[]float64{95, 97.3}, bed.Undecided},
		"too narrow":            {[]float64{91, 95}, bed.Misses},
		"too wide":              {[]float64{95, 99}, bed.Misses},
	} {
		t.Run(name, func(t *testing.T) {
			if got := coverageVerdict(c.percent, 2000); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
