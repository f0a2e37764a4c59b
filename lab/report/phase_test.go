package report

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"kurabe/lab/result"
	"kurabe/lab/result/resulttest"
	"kurabe/lab/study"
)

// A study with changes has a row for each phase, published ones above ours.
func TestPhases(t *testing.T) {
	f := resulttest.File(7, resulttest.Options{Alter: true, Blocks: 2, Clean: true})
	f.Study.Definition.Published = []study.Published{
		{Source: "S", Variant: "sham", Workload: "writers-4", Label: "idle, 4 threads", Values: map[string]float64{"qps@idle": 1697, "resp_p95@idle": 11.48}},
		{Source: "S", Variant: "add-index", Workload: "writers-4", Label: "1 GB", Values: map[string]float64{"change_s": 79}},
	}
	v := mustView(t, f)
	g := v.figures(v.workloads[0])
	var rows []string
	for _, r := range g.Rows {
		if len(r.Cells) != len(g.Columns) {
			t.Errorf("%d cells in %d columns: %q", len(r.Cells), len(g.Columns), r.Cells)
		}
		rows = append(rows, strings.Join(r.Cells[:3], " | "))
	}
	want := []string{
		"idle, 4 threads | idle | published [1]", "no change | idle | measured", "no change | during | measured", "no change | after | measured",
		"CREATE INDEX | idle | measured", "1 GB | during | published [1]", "CREATE INDEX | during | measured", "CREATE INDEX | after | measured",
	}
	if !slices.Equal(rows[:len(want)], want) {
		t.Errorf("rows %q, want %q", rows[:len(want)], want)
	}
	if got := strings.Join(g.Rows[0].Cells[3:], " | "); got != "1,697 | 11.48 | – | – | – | – | –" {
		t.Error(got)
	}
	if got := g.Rows[5].Cells; got[len(got)-1] != "79" {
		t.Errorf("%q", got)
	}
	// How long a change took is a figure of the phase in which it was made.
	for n, filled := range map[int]bool{4: false, 6: true, 7: false} {
		if cells := g.Rows[n].Cells; (cells[len(cells)-1] != none) != filled {
			t.Errorf("row %d: %q", n, cells)
		}
	}
}

// Events that last are stretches; those of a trial that was run again are not its own.
func TestEventsOfATrial(t *testing.T) {
	f := resulttest.File(7, resulttest.Options{Alter: true, Blocks: 1, Clean: true})
	trial := &f.Trials[0]
	event := func(ms float64, kind, text string, position int) {
		f.Events = append(f.Events, result.Event{Block: trial.Block, Variant: trial.Variant, Workload: trial.Workload, AtMs: ms, Kind: kind, Text: text, Position: position})
	}
	f.Events = nil
	event(500, result.EventCheckpoint, "end", trial.Position) // begun before
	event(1000, result.EventChangeBegin, "ALTER TABLE t", trial.Position)
	event(1500, result.EventLockWait, "begin", trial.Position)
	event(1600, result.EventStep, "ALTER TABLE t DROP a", trial.Position)
	event(2500, result.EventLockWait, "end", trial.Position)
	event(2600, result.EventLockWait, "begin", trial.Position+1)
	event(3000, result.EventChangeEnd, "", trial.Position)
	event(3500, result.EventCheckpoint, "begin", trial.Position)
	event(4000, result.EventAutovacuum, "autovacuum: VACUUM t", trial.Position)
	got := mustView(t, f).eventsOf(trial, 0, 5)
	want := []stretch{
		{to: 0.5, text: "checkpoint", before: true}, {from: 1.6, to: 1.6, text: "ALTER TABLE t DROP a"}, {from: 1.5, to: 2.5, text: "lock wait"},
		{from: 1, to: 3, text: "change"}, {from: 4, to: 4, text: "autovacuum"}, {from: 3.5, to: 5, text: "checkpoint", after: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A checkpoint takes minutes and a trial seconds: one that covers all of the window is
// drawn over all of it, wherever its ends are.
func TestEventsThatOutlastTheTrial(t *testing.T) {
	type seen struct {
		ms   float64
		text string
	}
	for name, c := range map[string]struct {
		events []seen
		want   []stretch
	}{
		"begun in the warm-up, not ended": {[]seen{{500, "begin"}}, []stretch{{0, 8, "checkpoint", true, true}}},
		"ended after the window":          {[]seen{{500, "begin"}, {15_000, "end"}}, []stretch{{0, 8, "checkpoint", true, true}}},
		"ended within":                    {[]seen{{500, "begin"}, {6000, "end"}}, []stretch{{0, 4, "checkpoint", true, false}}},
		"begun before anybody looked":     {[]seen{{6000, "end"}}, []stretch{{0, 4, "checkpoint", true, false}}},
		"begun within":                    {[]seen{{7000, "begin"}}, []stretch{{5, 8, "checkpoint", false, true}}},
		"ended before":                    {[]seen{{500, "begin"}, {1500, "end"}}, nil},
		"begun after":                     {[]seen{{10_500, "begin"}}, nil},
		"one after the other":             {[]seen{{500, "begin"}, {3000, "end"}, {9000, "begin"}}, []stretch{{0, 1, "checkpoint", true, false}, {7, 8, "checkpoint", false, true}}},
		"an end too many":                 {[]seen{{3000, "begin"}, {4000, "end"}, {5000, "end"}}, []stretch{{1, 2, "checkpoint", false, false}}},
	} {
		f := resulttest.File(7, resulttest.Options{Alter: true, Blocks: 1, Clean: true})
		trial := &f.Trials[0]
		f.Events = nil
		for _, e := range c.events {
			f.Events = append(f.Events, result.Event{Block: trial.Block, Variant: trial.Variant, Workload: trial.Workload, AtMs: e.ms, Kind: result.EventCheckpoint, Text: e.text})
		}
		if got := mustView(t, f).eventsOf(trial, 2000, 8); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// What is open at an end has no line there, and says so.
func TestOpenStretchesAreDrawn(t *testing.T) {
	for name, c := range map[string]struct {
		m     stretch
		lines int // that are dashed: two ends and what joins them
		words string
	}{
		"closed":  {stretch{from: 2, to: 4, text: "checkpoint"}, 3, ">checkpoint<"},
		"whole":   {stretch{from: 0, to: 8, text: "checkpoint", before: true, after: true}, 1, ">◂ checkpoint ▸<"},
		"begins":  {stretch{from: 2, to: 8, text: "checkpoint", after: true}, 2, ">checkpoint ▸<"},
		"instant": {stretch{from: 2, to: 2, text: "autovacuum"}, 1, ">autovacuum<"},
	} {
		d := &drawing{wide: halfWide}
		d.stretches(timeline{marks: []stretch{c.m}}, axis{lo: 0, hi: 8, from: seriesLeft, to: halfWide}, 50, 200)
		svg := d.b.String()
		if n := strings.Count(svg, `class="event"`); n != c.lines || !strings.Contains(svg, c.words) {
			t.Errorf("%s: %d lines, %s", name, n, svg)
		}
	}
}

// A variant whose every trial failed says why in its row.
func TestFailedVariant(t *testing.T) {
	f := resulttest.File(7, resulttest.Options{Alter: true, Blocks: 2, Clean: true})
	for n := range f.Trials {
		if f.Trials[n].Variant == "add-column" {
			f.Trials[n].Status, f.Trials[n].Reason, f.Trials[n].Phases = result.StatusFailed, "ALGORITHM=INSTANT is not supported", nil
		}
	}
	v := mustView(t, f)
	for _, r := range v.comparison(v.workloads[0]).Rows {
		if r.Label == "ADD COLUMN" && (r.Verdict != result.StatusFailed || !strings.Contains(r.Note, "INSTANT")) {
			t.Errorf("%+v", r)
		}
	}
}
