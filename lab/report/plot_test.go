package report

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// Of more bins than pixels the least and the most of each pixel are drawn, so that a
// single bad one is never lost.
func TestPerPixelKeepsPeaksAndGaps(t *testing.T) {
	const bins, wide = 3000, 100
	at, values := make([]float64, bins), make([]float64, bins)
	for n := range at {
		at[n], values[n] = float64(n), 50
	}
	values[1234], values[2222] = 100, 0
	x, y := axis{lo: 0, hi: bins, from: 0, to: wide}, axis{lo: 0, hi: 100, from: 100, to: 0}
	points := perPixel(at, values, x, y)
	if len(points) > 2*wide {
		t.Errorf("%d points for %d pixels", len(points), wide)
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, p := range points {
		lo, hi = min(lo, p.y), max(hi, p.y)
	}
	if lo != 0 || hi != 100 {
		t.Errorf("the points reach from %v to %v, want 0 to 100", lo, hi)
	}
}

func TestPerPixelBreaksWhereNothingWasAnswered(t *testing.T) {
	x, y := axis{lo: 0, hi: 4, from: 0, to: 40}, axis{lo: 0, hi: 1, from: 10, to: 0}
	got := pathData(perPixel([]float64{0, 1, 2, 3}, []float64{1, math.NaN(), 1, 0}, x, y))
	if want := "M0 0M20 0L30 10"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLooksDiffer(t *testing.T) {
	seen := map[[2]any]int{}
	for n := range maxVariants {
		l := lookOf(n)
		key := [2]any{l.class, l.shape}
		if other, ok := seen[key]; ok {
			t.Errorf("variants %d and %d look the same", other, n)
		}
		seen[key] = n
	}
}

func TestLadders(t *testing.T) {
	v := mustView(t, ladderFile(3))
	all := v.ladders()
	if len(all) != 1 {
		t.Fatalf("%d ladders, want 1", len(all))
	}
	var clients []int
	for _, w := range all[0] {
		clients = append(clients, w.Clients)
	}
	if !reflect.DeepEqual(clients, []int{1, 8, 64}) {
		t.Errorf("clients %v", clients)
	}
	if other := mustView(t, studies()["empty"]).ladders(); other != nil {
		t.Errorf("a study of one number of clients has ladders: %v", other)
	}
}

func TestLimits(t *testing.T) {
	v := mustView(t, ladderFile(3))
	g := v.limits(v.ladders()[0])
	want := []gridRow{
		{Cells: []string{"1000 IOPS", "not named", "locks 80\u00a0% of samples", "write IOPS 95\u00a0%"}},
		{Cells: []string{"1000 IOPS′", "not named", "locks 80\u00a0% of samples", "write IOPS 95\u00a0%"}, Muted: true},
		{Cells: []string{"6000 IOPS", "not named", "locks 80\u00a0% of samples", "processor 95\u00a0%"}},
	}
	if !reflect.DeepEqual(g.Rows, want) {
		t.Errorf("%v, want %v", g.Rows, want)
	}
}

func TestPublishedBesideMeasured(t *testing.T) {
	v := mustView(t, ladderFile(3))
	c := v.comparison(v.workloads[0])
	got := []string{c.Rows[0].Published[0], c.Rows[1].Published[0], c.Rows[2].Published[0]}
	if want := []string{"620", none, "4,960.5 (×8.00)"}; !reflect.DeepEqual(got, want) {
		t.Errorf("published %q, want %q: a ratio follows from the baseline of the source", got, want)
	}
	if other := v.comparison(v.workloads[1]); len(other.Sources) != 0 {
		t.Errorf("sources %v under a load of which nothing was published", other.Sources)
	}
	g := v.figures(v.workloads[0])
	var lines []string
	for _, r := range g.Rows {
		lines = append(lines, strings.Join(r.Cells, " | "))
	}
	want := "1000 IOPS, -c 64 | published [1] | 620 | 940"
	if lines[0] != want || !strings.HasPrefix(lines[1], "1000 IOPS | measured | 1,120 | –") {
		t.Errorf("figures %q", lines)
	}
}

func TestEventsBecomeStretches(t *testing.T) {
	v := mustView(t, studies()["alter"])
	for _, line := range v.timelines(v.workloads[0]) {
		kinds := map[string]int{}
		for _, m := range line.marks {
			kinds[m.text]++
			if m.text == "change" && math.Abs(m.from-15) > 0.01 {
				t.Errorf("%s: the change begins at %v s, want 15 s", line.variant.Name, m.from)
			}
		}
		if kinds["change"] != 1 || kinds["checkpoint"] != 1 {
			t.Errorf("%s: %v", line.variant.Name, kinds)
		}
	}
}

// Requests of all blocks are pooled, and the curve ends where few lie beyond.
func TestCurveEnds(t *testing.T) {
	v := mustView(t, studies()["direction"])
	for _, d := range v.distributions(v.workloads[1]) {
		curve := d.curve()
		beyond := (1 - curve[len(curve)-1].q) * float64(d.pooled.TotalCount())
		if math.Abs(beyond-tailSamples) > 0.5 {
			t.Errorf("%s: %v requests lie beyond the end", d.variant.Name, beyond)
		}
		for n := 1; n < len(curve); n++ {
			if curve[n].ms < curve[n-1].ms {
				t.Errorf("%s: the curve falls at %v", d.variant.Name, curve[n].q)
			}
		}
	}
}
