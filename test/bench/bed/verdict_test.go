package bed

import (
	"testing"

	"kurabe/lab/stat"
)

// A verdict looks at the ends of an interval, and never at the estimate between them.
func TestVerdictOfAnInterval(t *testing.T) {
	for name, c := range map[string]struct {
		i                   stat.Interval
		bar                 float64
		wantLeast, wantMost string
	}{
		"all above":         {stat.Interval{Low: 0.99, High: 1.01, Level: 0.96}, 0.98, Meets, Misses},
		"all below":         {stat.Interval{Low: 0.90, High: 0.95, Level: 0.96}, 0.98, Misses, Meets},
		"the bar is in it":  {stat.Interval{Low: 0.535, High: 1.439, Level: 0.95}, 0.9, Undecided, Undecided},
		"an end is the bar": {stat.Interval{Low: 0.9, High: 1, Level: 0.95}, 0.9, Meets, Undecided},
		"no interval":       {stat.Interval{Low: 2, High: 2}, 0.9, Undecided, Undecided},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AtLeast(c.i, c.bar); got != c.wantLeast {
				t.Errorf("at least %g: %s, want %s", c.bar, got, c.wantLeast)
			}
			if got := AtMost(c.i, c.bar); got != c.wantMost {
				t.Errorf("at most %g: %s, want %s", c.bar, got, c.wantMost)
			}
		})
	}
}

// What is undecided is no bar that is met.
func TestTotals(t *testing.T) {
	got := totals([]Row{{Verdict: Meets}, {Verdict: Meets}, {Verdict: Undecided}, {Verdict: Misses}, {Value: NotMeasured}, {Value: "1 s"}, {Value: Failed}})
	if want := "2 meet their bar, 1 undecided, 1 MISS it, 2 not measured"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := totals([]Row{{Verdict: Meets}}), "1 meet their bar, 0 undecided, 0 MISS it"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
