package labproof

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"kurabe/test/bench/bed"
)

const (
	// coverageLow and coverageHigh bound how often an interval of 95 % holds the truth,
	// toldApartBar how often a study of two identical servers says that they differ.
	coverageLow, coverageHigh = 93.0, 97.0
	toldApartBar              = 5.0
	simulatedStudies          = 2000.0 // of two identical servers, as in lab/stat
)

// proveCoverage simulates studies whose truth is known.
func proveCoverage(ctx context.Context, r *bed.Run) error {
	found, err := goBenchmarks(ctx, r, "lab/stat", "^BenchmarkProof$/^blocks="+bed.Pick(r, "", "12$"), "-test.benchtime=1x", "-test.count=1")
	if err != nil {
		return noGo(r, "coverage of the interval", err)
	}
	for _, blocks := range bed.Pick(r, []int{6, 12, 24}, []int{12}) {
		prefix := fmt.Sprintf("Proof/blocks=%d/noise=", blocks)
		var covered, wrong, studies []float64
		var kinds []string
		for _, name := range sortedNames(found) {
			if kind, ok := strings.CutPrefix(name, prefix); ok {
				kinds = append(kinds, kind)
				covered = append(covered, found[name]["covered-%"]...)
				studies = append(studies, found[name]["studies"]...)
				wrong = append(wrong, found[name]["told-apart-%"]...)
			}
		}
		if len(covered) == 0 || len(covered) != len(kinds) || len(wrong) != len(kinds) || len(studies) != len(kinds) {
			return fmt.Errorf("the simulation of %d blocks in lab/stat reported %d and %d shares of %d", blocks, len(covered), len(wrong), len(kinds))
		}
		note := fmt.Sprintf("%.0f studies of each noise: %s; a ratio of 1.05", slices.Min(studies), strings.Join(kinds, ", "))
		if blocks == 6 {
			note += "; the only exact interval of 6 blocks has the level 96.9 %"
		}
		r.Out.Row(bed.Row{Bench: "lab", What: fmt.Sprintf("interval of 95 %%, %d blocks: holds the truth in", blocks), Value: shares(covered),
			Bar: fmt.Sprintf("%.0f to %.0f %%", coverageLow, coverageHigh), Verdict: coverageVerdict(covered, slices.Min(studies)), Note: note})
		r.Out.Row(bed.Row{Bench: "lab", What: fmt.Sprintf("two identical servers, %d blocks: told apart in", blocks), Value: shares(wrong),
			Bar: fmt.Sprintf("≤ %.0f %%", toldApartBar), Verdict: bed.Verdict(slices.Max(wrong) <= toldApartBar), Note: fmt.Sprintf("%.0f studies of each noise: %s; margin 3 %%", simulatedStudies, strings.Join(kinds, ", "))})
	}
	return nil
}

func shares(percent []float64) string {
	return fmt.Sprintf("%.1f to %.1f %%", slices.Min(percent), slices.Max(percent))
}

// coverageVerdict knows that a share of so many studies is itself a sample: what is within
// two standard errors of a bound is undecided.
func coverageVerdict(percent []float64, studies float64) string {
	one := func(p float64) float64 { return 2 * math.Sqrt(p*(100-p)/studies) }
	low, high := slices.Min(percent), slices.Max(percent)
	switch {
	case low-one(low) >= coverageLow && high+one(high) <= coverageHigh:
		return bed.Meets
	case low+one(low) < coverageLow || high-one(high) > coverageHigh:
		return bed.Misses
	}
	return bed.Undecided
}
