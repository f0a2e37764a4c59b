package report

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"kurabe/lab/result"
	"kurabe/lab/result/resulttest"
	"kurabe/lab/stat"
)

var textElement = regexp.MustCompile(`<text[^>]*>([^<]*)</text>`)

// Every estimate of the primary metric stands in the answer, in the table, in the forest
// plot and on the terminal with the figures of result, formatted here by themselves.
func TestFiguresAreThoseOfTheEstimates(t *testing.T) {
	f := studies()["general-log"]
	estimates, err := result.Estimates(f, Level)
	if err != nil {
		t.Fatal(err)
	}
	v := mustView(t, f)
	page := html.UnescapeString(render(t, f))
	terminal := printed(t, f, 120)
	forest, ok := v.forest()
	if !ok {
		t.Fatal("no forest plot")
	}
	var texts []string
	for _, m := range textElement.FindAllStringSubmatch(string(forest.SVG), -1) {
		texts = append(texts, html.UnescapeString(m[1]))
	}
	plot := strings.Join(texts, "\n")
	checked := 0
	for _, e := range estimates {
		if !e.Primary {
			continue
		}
		checked++
		figures := fmt.Sprintf("%.3f  [%.3f, %.3f]", e.Ratio.Estimate, e.Ratio.Interval.Low, e.Ratio.Interval.High)
		row := v.label(e.Variant) + "\n" + figures + "\n"
		if e.Twin {
			row += "noise floor"
		} else {
			row += string(e.Verdict)
		}
		if !strings.Contains(plot, row) {
			t.Errorf("%s under %s is not in the plot as %q", e.Variant, e.Workload, row)
		}
		if !strings.Contains(terminal, figures) {
			t.Errorf("%s under %s is not on the terminal as %q", e.Variant, e.Workload, figures)
		}
		cell := fmt.Sprintf(`<td class="num">%.3f</td><td>[%.3f, %.3f]</td>`, e.Ratio.Estimate, e.Ratio.Interval.Low, e.Ratio.Interval.High)
		if !strings.Contains(page, cell) {
			t.Errorf("%s under %s is not in a table as %q", e.Variant, e.Workload, cell)
		}
		if middle, _ := v.median(e.Metric, e.Variant, e.Workload); middle != e.B {
			t.Errorf("%s under %s: median %v in the table, %v in the estimate", e.Variant, e.Workload, middle, e.B)
		}
	}
	if checked != 12 {
		t.Errorf("%d estimates of the primary metric, want 12", checked)
	}
}

func TestExploratoryFigures(t *testing.T) {
	v := mustView(t, studies()["general-log"])
	g := v.exploratory(v.workloads[1])
	e := v.estimate("resp_p95", "table-csv", "own")
	want := fmt.Sprintf("%s ms ×%.3f\n[%.3f,\u00a0%.3f]\np %.3f", num(e.B), e.Ratio.Estimate, e.Ratio.Interval.Low, e.Ratio.Interval.High, e.Holm)
	for _, row := range g.Rows {
		for n, cell := range row.Cells {
			if row.Cells[0] == "response time, 95th percentile" && g.Columns[n] == "to a table, CSV" {
				if cell != want {
					t.Errorf("%q, want %q", cell, want)
				}
				return
			}
		}
	}
	t.Errorf("no such row and column in %v", g)
}

// A mark's place on the axis is that of its estimate.
func TestForestPlaces(t *testing.T) {
	x := axis{lo: 0.5, hi: 2, from: 100, to: 300, log: true}
	d := &drawing{wide: pageWide}
	r := stat.Ratio{Estimate: 1, Interval: stat.Interval{Low: 0.25, High: 1.4142135623730951, Level: 0.95}, Pairs: 9}
	d.whisker(x, 10, r, lookOf(2))
	want := `<line class="ci v2" x1="100" y1="10" x2="250" y2="10"/>` +
		`<path class="ci v2" d="M105 5L100 10L105 15"/>` + // the low end is beyond the axis
		`<line class="ci v2" x1="250" y1="4" x2="250" y2="16"/>`
	if got := d.b.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		study    string
		warning  string // begins so
		sentence string // of the variant table-csv
	}{
		"costs": {"general-log", "", "to a table, CSV costs: throughput is 37.3\u00a0% lower (ratio 0.627, 95\u00a0% interval 0.623 to 0.630, 12 blocks)."},
		"direction only": {"direction", "A direction only: 3 blocks measured, and below 6 there is no interval at 95\u00a0%.",
			"to a table, CSV has a direction, no verdict: throughput is 37.2\u00a0% lower (ratio 0.628 over 3 blocks, too few for an interval)."},
		"twin failed": {"withheld",
			"Verdicts are withheld: under sysbench oltp_read_write, 8 threads the baseline and its twin, the same recipe, differ",
			"to a table, CSV has no verdict: throughput is 37.2\u00a0% lower (ratio 0.628, 95\u00a0% interval 0.624 to 0.634, 12 blocks)."},
		"no trial": {"empty", "No trial has been measured yet.", ""},
	} {
		v := mustView(t, studies()[c.study])
		if got := v.warning(); !strings.HasPrefix(got, c.warning) || c.warning == "" && got != "" {
			t.Errorf("%s: warning %q, want %q", name, got, c.warning)
		}
		got := ""
		for _, s := range v.answers(v.workloads[0].Name) {
			if strings.HasPrefix(s.String(), "to a table, CSV ") {
				got = s.String()
			}
		}
		if got != c.sentence {
			t.Errorf("%s: %q, want %q", name, got, c.sentence)
		}
	}
}

// No verdict but withheld may be read anywhere when the twin failed.
func TestWithheldVerdictsShowNowhere(t *testing.T) {
	f := studies()["withheld"]
	for _, text := range []string{render(t, f), printed(t, f, 80)} {
		text = styleSheet.ReplaceAllString(text, "")
		for _, verdict := range []stat.Verdict{stat.Costs, stat.NoMaterialCost, stat.Improves, stat.Undecided} {
			if strings.Contains(text, ">"+string(verdict)+"<") || strings.Contains(text, "  "+string(verdict)) {
				t.Errorf("the verdict %q is shown", verdict)
			}
		}
	}
}

func TestIncidents(t *testing.T) {
	f := studies()["general-log"]
	g := mustView(t, f).incidents()
	effects := map[string]string{}
	for _, row := range g.Rows {
		effects[row.Cells[4]] = row.Cells[6]
	}
	want := map[string]string{
		result.StatusFailed: "does not count; run again as trial 43", result.StatusRepeated: "does not count; run again as trial 72",
		result.StatusUnsettled: "counts; shown hollow",
	}
	for status, effect := range want {
		if effects[status] != effect {
			t.Errorf("%s: %q, want %q", status, effects[status], effect)
		}
	}
	svg, _ := mustView(t, f).trialDots()
	for class, n := range map[string]int{"mk hollow": 1, "cross": 2} {
		if got := strings.Count(string(svg.SVG), `class="`+class); got != n {
			t.Errorf("%d marks of class %s, want %d", got, class, n)
		}
	}
	if g := mustView(t, studies()["one-block"]).incidents(); g != nil {
		t.Errorf("a clean study has incidents: %v", g)
	}
}

func TestDifferencesAreThoseOfTheRecipe(t *testing.T) {
	g := mustView(t, studies()["general-log"]).differences()
	for _, row := range g.Rows {
		if row.Cells[4] != "yes" {
			t.Errorf("not of the recipe: %v", row.Cells)
		}
	}
	f := resulttest.File(7, resulttest.Options{Blocks: -1})
	f.Settings["file"]["innodb_flush_log_at_trx_commit"] = "2"
	found := false
	for _, row := range mustView(t, f).differences().Rows {
		found = found || row.Cells[1] == "innodb_flush_log_at_trx_commit" && row.Cells[4] == "no"
	}
	if !found {
		t.Error("a setting that nobody asked for is not shown as such")
	}
}
