package report

import (
	"slices"
	"strings"
	"testing"

	"kurabe/lab/result/resulttest"
)

func TestLiveLine(t *testing.T) {
	for name, f := range studies() {
		line := NewLive(f).Line()
		if strings.ContainsAny(line, "\n\r\x1b") || cells(line) > lineWidth || line == "" {
			t.Errorf("%s: %q", name, line)
		}
	}
	if got := NewLive(resulttest.File(7, resulttest.Options{Blocks: -1})).Line(); got != noEstimate {
		t.Errorf("before the first block: %q", got)
	}
	// A variant is what one waits for; the twin stands behind.
	got := NewLive(studies()["general-log"]).Line()
	if !strings.HasPrefix(got, "sysbench, tps: file 0.976 [") || !strings.Contains(got, " · table-csv 0.627 [") || !strings.Contains(got, " · off′ 0.998 [") {
		t.Errorf("after twelve: %q", got)
	}
	if !strings.HasSuffix(got, "; 6 more") {
		t.Errorf("what does not fit is not counted: %q", got)
	}
}

// The first variant's interval is there whatever the metric is called.
func TestLiveLinesShowTheIntervals(t *testing.T) {
	f := resulttest.File(7, resulttest.Options{Alter: true, Blocks: 6, Clean: true})
	got := NewLive(f).Lines(79, 40)
	if len(got) != 2*6 || got[0] != "resp_p95@during/idle under writers-4, 6 blocks:" {
		t.Fatalf("%q", got)
	}
	for n, name := range []string{"add-index ", "add-index-recommended ", "add-column ", "change-type ", "sham′ "} {
		if line := got[1+n]; !strings.HasPrefix(line, gap+name) || !strings.HasSuffix(line, "]") {
			t.Errorf("line %d: %q", n, line)
		}
	}
}

// Of a terminal that is too small the first lines are shown, and how many are not.
func TestLiveLinesFit(t *testing.T) {
	for name, f := range studies() {
		l := NewLive(f)
		for _, width := range []int{19, 40, 79, 200} {
			for _, most := range []int{0, 1, 2, 5, 22, 100} {
				got := l.Lines(width, most)
				if len(got) > most || slices.ContainsFunc(got, func(s string) bool { return cells(s) > width || strings.ContainsAny(s, "\n\x1b") }) {
					t.Errorf("%s, %d × %d: %q", name, width, most, got)
				}
			}
		}
	}
	got := NewLive(studies()["general-log"]).Lines(79, 4)
	if len(got) != 4 || !strings.HasPrefix(got[2], "  table-csv") || got[3] != "  10 more, which the report will have" {
		t.Errorf("%q", got)
	}
	// A long name gives way to its figures.
	f := resulttest.File(7, resulttest.Options{Blocks: 6, Clean: true})
	if got := NewLive(f).Lines(32, 40); !strings.HasSuffix(got[4], "]") || !strings.Contains(got[4], "…") {
		t.Errorf("%q", got[4])
	}
}
