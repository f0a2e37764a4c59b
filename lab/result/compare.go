package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"kurabe/lab/stat"
)

// MethodRankSum is that of a Comparison's ratio: the two-sample Hodges–Lehmann shift of
// the log-ratios, with the interval of the inverted rank-sum test. The two runs have no
// block in common, so nothing is paired.
const MethodRankSum = "HL+ranksum"

// Comparison is one metric of one cell in two runs of a study.
type Comparison struct {
	Metric, Variant, Workload string
	A, B                      Estimate
	// Ratio is how much larger the variant's ratio to its baseline is in the second run:
	// 1.02 of a throughput means that the variant lost two percent less. Pairs is the
	// number of blocks of the run that has fewer.
	Ratio stat.Ratio
	// Compatible is false when the interval of Ratio excludes 1. Of comparisons at 95 %,
	// one in twenty does without any reason.
	Compatible bool
	Why        string // there is no interval
}

// compareLevel is the confidence of a comparison and of the estimates in it.
const compareLevel = 0.95

// Compare puts two runs of a study side by side, in the order of Estimates. What they
// did not measure the same way, Differences says.
func Compare(a, b *File) ([]Comparison, error) {
	if err := checkComparable(a, b); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	first, err := measure(a, compareLevel)
	if err != nil {
		return nil, fmt.Errorf("compare: of the first file: %w", err)
	}
	second, err := measure(b, compareLevel)
	if err != nil {
		return nil, fmt.Errorf("compare: of the second file: %w", err)
	}
	type key struct{ metric, variant, workload string }
	inFirst := map[key]measured{}
	for _, m := range first {
		inFirst[key{m.Metric, m.Variant, m.Workload}] = m
	}
	var all []Comparison
	for _, y := range second {
		x, ok := inFirst[key{y.Metric, y.Variant, y.Workload}]
		if !ok {
			continue // a metric of one of them, or a variant that one target cannot have
		}
		c := Comparison{Metric: y.Metric, Variant: y.Variant, Workload: y.Workload, A: x.Estimate, B: y.Estimate}
		c.Ratio = shiftRatio(x.logs(), y.logs(), compareLevel)
		i := c.Ratio.Interval
		c.Compatible = !(i.Low > 1 || i.High < 1)
		if math.IsNaN(i.Low) {
			c.Why = fmt.Sprintf("%d and %d blocks are too few for an interval", len(x.a), len(y.a))
		}
		all = append(all, c)
	}
	return all, nil
}

func checkComparable(a, b *File) error {
	x, y := &a.Study.Definition, &b.Study.Definition
	if x.Name != y.Name {
		return fmt.Errorf("one is the study %q, the other %q", x.Name, y.Name)
	}
	if x.Baseline != y.Baseline {
		return fmt.Errorf("one has the baseline %q, the other %q", x.Baseline, y.Baseline)
	}
	if only := onlyOne(newChecker(&a.Study).variants, newChecker(&b.Study).variants); only != "" {
		return fmt.Errorf("only one has the variant %q", only)
	}
	if only := onlyOne(newChecker(&a.Study).workloads, newChecker(&b.Study).workloads); only != "" {
		return fmt.Errorf("only one has the workload %q", only)
	}
	for _, w := range x.Workloads {
		if p, q := x.PrimaryOf(w.Name).Metric, y.PrimaryOf(w.Name).Metric; p != q {
			return fmt.Errorf("under %s one is decided by %s, the other by %s", w.Name, p, q)
		}
	}
	return nil
}

// onlyOne returns the first name that is in one of two sets.
func onlyOne(a, b map[string]bool) string {
	var names []string
	for name := range a {
		if !b[name] {
			names = append(names, name)
		}
	}
	for name := range b {
		if !a[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// shiftRatio is how much larger e^y is than e^x.
func shiftRatio(x, y []float64, level float64) stat.Ratio {
	shifts := make([]float64, 0, len(x)*len(y))
	for _, u := range x {
		for _, v := range y {
			shifts = append(shifts, v-u)
		}
	}
	slices.Sort(shifts)
	r := stat.Ratio{
		Estimate: math.Exp(stat.Median(shifts)), Pairs: min(len(x), len(y)), Method: MethodRankSum,
		Interval: stat.Interval{Low: math.NaN(), High: math.NaN()},
	}
	if skip, tail := rankSumTail(len(x), len(y), (1-level)/2); skip > 0 {
		r.Interval = stat.Interval{Low: math.Exp(shifts[skip-1]), High: math.Exp(shifts[len(shifts)-skip]), Level: 1 - 2*tail}
	}
	return r
}

// maxExact is the number of blocks up to which the chances are counted; beyond it the
// normal approximation is as good.
const maxExact = 100

// rankSumTail returns the largest k for which P(U < k) is at most p, and that
// probability; U is the rank-sum statistic of m and n values. 0 when even P(U < 1) is
// larger.
func rankSumTail(m, n int, p float64) (k int, tail float64) {
	if m == 0 || n == 0 {
		return 0, 0
	}
	if max(m, n) > maxExact {
		mean, product := float64(m*n)/2, float64(m)*float64(n)
		k := mean + math.Sqrt2*math.Erfinv(2*p-1)*math.Sqrt(product*float64(m+n+1)/12)
		return max(int(k), 0), p
	}
	ways := rankSumWays(m, n)
	all := 0.0
	for _, w := range ways {
		all += w
	}
	sum := 0.0
	for u, w := range ways {
		if sum+w/all > p {
			return u, sum
		}
		sum += w / all
	}
	return 0, 0 // not reached: the sum of all is 1
}

// rankSumWays counts by the value of U the ways to get it: the coefficients of the
// Gaussian binomial, built up factor by factor. A coefficient depends on lower ones
// only, so the small ones, which are the tail, are exact.
func rankSumWays(m, n int) []float64 {
	ways := make([]float64, m*n+1)
	ways[0] = 1
	for i := 1; i <= m; i++ {
		for u := len(ways) - 1; u >= n+i; u-- {
			ways[u] -= ways[u-n-i]
		}
		for u := i; u < len(ways); u++ {
			ways[u] += ways[u-i]
		}
	}
	return ways
}

// Differences says what two runs of a study did not have the same: machine, engine, lab,
// definition, and settings by variant; by name, "settings.off.max_wal_size". When and
// under which seed they ran is not in it, nor what differs by nature.
func Differences(a, b *File) ([]Difference, error) {
	x, errA := flatten(a)
	y, errB := flatten(b)
	if err := errors.Join(errA, errB); err != nil {
		return nil, fmt.Errorf("differences: %w", err)
	}
	all := differences(x, y)
	for _, variant := range slices.Sorted(maps.Keys(a.Settings)) {
		if b.Settings[variant] == nil {
			continue
		}
		for _, d := range differences(a.Settings[variant], b.Settings[variant]) {
			d.Name = "settings." + variant + "." + d.Name
			all = append(all, d)
		}
	}
	return all, nil
}

// flatten gives every value by its path.
func flatten(f *File) (map[string]string, error) {
	env := lastEnv(f)
	s := f.Study
	text, err := json.Marshal(map[string]any{
		"target": s.Target, "unsupported": s.Unsupported, "definition": s.Definition, "host": env.Host, "lab": env.Lab,
		"engine": env.Engine, "engine_kind": s.Engine,
	})
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	flat := map[string]string{}
	leaves(flat, "", tree)
	delete(flat, "definition.plan.seed")
	return flat, nil
}

// leaves ends: a tree that was read from JSON has no loops and a bounded depth.
func leaves(into map[string]string, path string, node any) {
	switch x := node.(type) {
	case map[string]any:
		for name, child := range x {
			leaves(into, strings.TrimPrefix(path+"."+name, "."), child)
		}
	case []any:
		for i, child := range x {
			if named, ok := child.(map[string]any); ok {
				if name, ok := named["name"].(string); ok {
					leaves(into, path+"."+name, child)
					continue
				}
			}
			leaves(into, path+"."+strconv.Itoa(i), child)
		}
	case float64:
		into[path] = number(x)
	case nil:
	default:
		into[path] = fmt.Sprint(x)
	}
}
