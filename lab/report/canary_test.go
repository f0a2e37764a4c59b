package report

import (
	"math"
	"strings"
	"testing"

	"kurabe/lab/probe"
	"kurabe/lab/result/resulttest"
)

// The band that is drawn is the rule by which trials are run again.
func TestCanaryBandIsTheRule(t *testing.T) {
	asFast := func(after float64) bool {
		return probe.Canary{Ms: map[string]float64{canaryCPU: after}}.AsFast(probe.Canary{Ms: map[string]float64{canaryCPU: 1}})
	}
	const hair = 1e-9
	for after, want := range map[float64]bool{
		1 + disturbedBy - hair: true, 1 + disturbedBy + hair: false, 1/(1+disturbedBy) + hair: true, 1/(1+disturbedBy) - hair: false,
	} {
		if asFast(after) != want {
			t.Errorf("the rule says %v of %v", !want, after)
		}
	}
}

// Each trial has its own band: around what the canary took before it.
func TestCanaryBandFollowsTheTrials(t *testing.T) {
	f := resulttest.File(7, resulttest.Options{Blocks: 1, Clean: true})
	f.Trials = f.Trials[:2]
	f.Trials[0].Canary = map[string][2]float64{canaryCPU: {10, 10.2}}
	f.Trials[1].Canary = map[string][2]float64{canaryCPU: {20, 30}}
	v := mustView(t, f)
	d := &drawing{wide: pageWide}
	x, y := axis{lo: 0, hi: 3, from: 0, to: 300}, axis{lo: 0.5, hi: 4, from: 300, to: 0, log: true}
	d.canaryBand(v, 10, x, y)
	place := func(value float64) string { return px(y.at(value)) }
	want := `<path class="band" d="M50 ` + place(1+disturbedBy) + "L150 " + place(1+disturbedBy) + "L150 " + place(2*(1+disturbedBy)) + "L250 " + place(2*(1+disturbedBy)) +
		"L250 " + place(2/(1+disturbedBy)) + "L150 " + place(2/(1+disturbedBy)) + "L150 " + place(1/(1+disturbedBy)) + "L50 " + place(1/(1+disturbedBy)) + `Z"/>`
	if got := d.b.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	c, _ := v.trialDots()
	if !strings.Contains(c.Caption, "5\u00a0%") || strings.Contains(string(c.SVG), "NaN") || math.IsNaN(y.at(1)) {
		t.Errorf("caption %q", c.Caption)
	}
	// Without a canary of the processor there is no rule to be explained.
	for n := range f.Trials {
		f.Trials[n].Canary = map[string][2]float64{"fsync": {1, 2}}
	}
	if c, _ := mustView(t, f).trialDots(); strings.Contains(c.Caption, "rule") {
		t.Errorf("caption %q", c.Caption)
	}
}
