package report

import (
	"strings"
	"testing"

	"kurabe/lab/result/resulttest"
	"kurabe/lab/stat"
)

// Under each workload the report speaks of the metric and the margin that decide there.
func TestEachWorkloadHasItsMetric(t *testing.T) {
	f := resulttest.File(7, resulttest.Options{Blocks: 7, Primaries: true, Clean: true})
	v := mustView(t, f)
	if first, second := v.comparison(v.workloads[0]), v.comparison(v.workloads[1]); first.Metric != "throughput (1/s)" || second.Metric != "response time, median (ms)" ||
		!strings.Contains(first.Noise, "±3\u00a0%") || !strings.Contains(second.Noise, "±10\u00a0%") {
		t.Errorf("%q, %q; %q, %q", first.Metric, second.Metric, first.Noise, second.Noise)
	}
	for _, s := range v.answers("own") {
		if !strings.HasPrefix(s.Rest, "response time, median, is ") {
			t.Errorf("an answer under own: %s", s)
		}
	}
	// The study's metric is one of the others there.
	if g := v.exploratory(v.workloads[1]); g.Rows[0].Cells[0] != "throughput" {
		t.Errorf("%q", g.Rows[0].Cells)
	}
	live := strings.Join(NewLive(f).Lines(79, 40), "\n")
	if !strings.Contains(live, "tps under sysbench, 7 blocks:") || !strings.Contains(live, "resp_p50 under own, 7 blocks:") {
		t.Error(live)
	}
	trials, _ := v.trialDots()
	for _, heading := range []string{"8 threads · throughput (1/s)<", "8 clients · response time, median (ms)<"} {
		if !strings.Contains(string(trials.SVG), heading) {
			t.Errorf("no panel %s", heading)
		}
	}
	if page := render(t, f); !strings.Contains(page, "Effect on what decides under each load") {
		t.Error("the page does not say that loads are decided by different metrics")
	}
}

// Where margins differ each workload has its own band, and no side is the better one of
// both.
func TestForestOfDifferentPrimaries(t *testing.T) {
	v := mustView(t, resulttest.File(7, resulttest.Options{Blocks: 7, Primaries: true, Clean: true}))
	c, _ := v.forest()
	svg := string(c.SVG)
	if n := strings.Count(svg, `class="band"`); n != 2 || strings.Contains(svg, "worse") {
		t.Errorf("%d bands", n)
	}
	for _, heading := range []string{"throughput, margin ±3\u00a0%, more is better", "response time, median, margin ±10\u00a0%, less is better"} {
		if !strings.Contains(svg, heading) {
			t.Errorf("no heading %q", heading)
		}
	}
	d := &drawing{wide: pageWide, tall: forestTop + 4*forestRow + forestSpace + forestBottom}
	x := axis{lo: 0.5, hi: 2, from: 100, to: 300, log: true}
	d.forestBands(x, []forestLine{{heading: "a", margin: 0.03}, {}, {heading: "b", margin: 0.1}, {}}, 0.03)
	row := func(n float64) string { return px(forestTop + n*forestRow) }
	wide := func(m float64) string {
		return `<rect class="band" x="` + px(x.at(1/(1+m))) + `" y="%" width="` + px(x.at(1+m)-x.at(1/(1+m))) + `" height="` + px(forestRow) + `"/>`
	}
	want := strings.Replace(wide(0.03), "%", row(1), 1) + strings.Replace(wide(0.1), "%", px(forestTop+3*forestRow+forestSpace), 1)
	if got := d.b.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	same := mustView(t, studies()["general-log"])
	if one, alike := same.onePrimary(); !alike || one.Metric != "tps" || same.primary("own").better != stat.HigherIsBetter {
		t.Errorf("%+v, %v", one, alike)
	}
}

// What a transaction took has the waits for locks, where they were probed.
func TestResourcesHaveLocks(t *testing.T) {
	v := mustView(t, studies()["general-log"])
	g := v.why(v.workloads[1])
	if got := strings.Join(g.Columns, "|"); !strings.Contains(got, "|waits for a lock per transaction|time waiting for locks per transaction") {
		t.Error(got)
	}
	if got := mustView(t, ladderFile(3)); strings.Contains(strings.Join(got.why(got.workloads[0]).Columns, "|"), "lock") {
		t.Error("a server that tells nothing of locks has a column of them")
	}
}
