package result

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"kurabe/lab/study"
)

// twoLoads is a study of two workloads, the second with a primary metric of its own, in
// which the throughput halves under both.
func twoLoads() *File {
	f := &File{Study: smallStudy(), Settings: map[string]map[string]string{}}
	d := &f.Study.Definition
	second := d.Workloads[0]
	second.Name, second.Primary = "w2", &study.Primary{Metric: "resp_avg", Margin: 0.9}
	d.Workloads = append(d.Workloads, second)
	for block := 1; block <= 8; block++ {
		for n, variant := range []string{"off", "off′", "on"} {
			for _, workload := range []string{"w", "w2"} {
				t := okTrial(block, variant, int64(10_000+7*n*(block%2*2-1))) // the twin once above, once below
				t.Workload = workload
				t.Phases[0].Load.Summary = map[string]float64{"avg": 2 + 0.001*float64(block%3), "p95": 4 + 0.001*float64(block%5)}
				if variant == "on" {
					t.Phases[0].Load.Transactions /= 2
					t.Phases[0].Load.Summary["avg"] *= 1.5
				}
				f.Trials = append(f.Trials, t)
			}
		}
	}
	return f
}

// Each workload is decided by its own metric and margin; the other's is exploratory where
// it is the study's, and not asked for where it is not.
func TestPrimaryOfEachWorkload(t *testing.T) {
	all, err := Estimates(twoLoads(), 0.95)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range all {
		if e.Twin {
			continue
		}
		text := e.Workload + " " + e.Metric + " " + string(e.Verdict)
		if e.Primary != (e.Verdict != "") {
			t.Errorf("%+v", e)
		}
		got = append(got, text)
	}
	// A mean that is half as much again is within a margin of 90 %.
	want := []string{"w tps costs", "w2 resp_avg no material cost", "w2 tps ", "w resp_p95 ", "w2 resp_p95 "}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPrimaryOfEachWorkloadIsExported(t *testing.T) {
	var b bytes.Buffer
	if err := WriteEstimatesCSV(&b, twoLoads(), 0.95); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	cell := func(workload, name string) string {
		for _, row := range rows {
			if row[slices.Index(rows[0], "variant")] == "on" && row[slices.Index(rows[0], "workload")] == workload {
				return row[slices.Index(rows[0], name)]
			}
		}
		t.Fatalf("no row of %s", workload)
		return ""
	}
	if cell("w", "verdict") != "costs" || cell("w2", "verdict") != "no-material-cost" {
		t.Errorf("verdicts %q and %q", cell("w", "verdict"), cell("w2", "verdict"))
	}
	if got := cell("w", "resp_avg.ratio"); got != "" {
		t.Errorf("nobody asked for the mean under w, and it is %q", got)
	}
	if got := cell("w2", "resp_avg.ratio"); !strings.HasPrefix(got, "1.5") {
		t.Errorf("the mean under w2 is %q", got)
	}
	var trials bytes.Buffer
	if err := WriteCSV(&trials, twoLoads()); err != nil || !strings.Contains(trials.String(), "resp_avg") {
		t.Errorf("%v", err)
	}
}

// A file has the key only where a workload has one, so that files without it are as they
// were; what is in it is checked as the study's.
func TestPrimaryOfAWorkloadInAFile(t *testing.T) {
	f := twoLoads()
	line := lineOf(t, KindStudy, f.Study)
	if strings.Count(line, `"primary":{`) != 2 {
		t.Errorf("%s", line)
	}
	back, err := Decode(strings.NewReader(chain(t, line)))
	if err != nil {
		t.Fatal(err)
	}
	if got := back.Study.Definition.PrimaryOf("w2"); got != *f.Study.Definition.Workloads[1].Primary {
		t.Errorf("read as %+v", got)
	}
	with := func(from, to string) string { return chain(t, change(t, line, from, to)) }
	refused(t, map[string]refusal{
		"metric": {with(`"metric":"resp_avg"`, `"metric":"mean"`), `line 1: study: definition.workloads[1].primary.metric: "mean" is no metric`},
		"margin": {with(`"margin":0.9`, `"margin":1.9`), `line 1: study: definition.workloads[1].primary.margin: 1.9 is not between 0 and 1`},
	})
}

func TestCompareWantsTheSamePrimaries(t *testing.T) {
	a, b := twoLoads(), twoLoads()
	if all, err := Compare(a, b); err != nil || len(all) != 10 {
		t.Errorf("%d, %v", len(all), err)
	}
	b.Study.Definition.Workloads[1].Primary = nil
	if _, err := Compare(a, b); err == nil || !strings.Contains(err.Error(), "under w2 one is decided by resp_avg, the other by tps") {
		t.Errorf("%v", err)
	}
	b = twoLoads()
	b.Study.Definition.Workloads[1].Primary.Margin = 0.5
	all, err := Differences(a, b)
	if err != nil || len(all) != 1 || all[0].Name != "definition.workloads.w2.primary.margin" {
		t.Errorf("%v, %v", all, err)
	}
}
