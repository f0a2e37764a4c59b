package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kurabe/lab/stat"
)

// TypicalNoise are standard deviations of a log-ratio between two runs of the same: a
// quiet machine, an ordinary one, a shared one.
var TypicalNoise = []float64{0.02, 0.03, 0.05}

// SeriesRequest is taken for the time of one request of a series, which ends by number
// and not by time; the real one is known when it is over.
const SeriesRequest = time.Millisecond

// PriceList is what a study costs in time and what it gives in precision, before it
// runs.
type PriceList struct {
	Trials               []TrialPrice
	BlocksMin, BlocksMax int
	TrialsMin, TrialsMax int // of all blocks
	// TotalMin is that of BlocksMin with the shortest warm-up, TotalMax that of BlocksMax
	// with the longest.
	TotalMin, TotalMax time.Duration
	// Changes says that the time of the variants' changes, unknown before, comes on top
	// where one takes longer than Plan.DuringMin.
	Changes   bool
	SDLog     []float64
	Precision []Precision
}

// TrialPrice is a trial of one workload: how many a block has, and how long each takes.
type TrialPrice struct {
	Workload string
	PerBlock int
	Min, Max time.Duration
}

// Precision is the half-width to expect, as a share, with so many blocks, for each of
// PriceList.SDLog. nil for too few blocks for an interval.
type Precision struct {
	Blocks     int
	Halfwidths []float64
}

// Price says what a study costs. A trial takes resetTime before its load begins. sdLog
// are standard deviations of the paired log-ratios, nil for TypicalNoise. The study is
// taken as it is: without its twin, when that was not added.
func Price(s *Study, resetTime time.Duration, sdLog []float64) PriceList {
	if sdLog == nil {
		sdLog = TypicalNoise
	}
	p := PriceList{BlocksMin: s.Plan.BlocksMin, BlocksMax: s.Plan.BlocksMax, Changes: HasChanges(s), SDLog: sdLog}
	count := map[string]int{}
	for _, c := range Cells(s) {
		count[c.Workload]++
	}
	var perBlock int
	var blockMin, blockMax time.Duration
	for _, w := range s.Workloads {
		t := trialPrice(s, w, resetTime)
		t.PerBlock = count[w.Name]
		p.Trials = append(p.Trials, t)
		perBlock += t.PerBlock
		blockMin += time.Duration(t.PerBlock) * t.Min
		blockMax += time.Duration(t.PerBlock) * t.Max
	}
	p.TrialsMin, p.TrialsMax = perBlock*p.BlocksMin, perBlock*p.BlocksMax
	p.TotalMin, p.TotalMax = time.Duration(p.BlocksMin)*blockMin, time.Duration(p.BlocksMax)*blockMax
	for _, blocks := range blockSteps(p.BlocksMin, p.BlocksMax) {
		row := Precision{Blocks: blocks}
		if blocks >= VerdictBlocks {
			for _, sd := range sdLog {
				row.Halfwidths = append(row.Halfwidths, stat.HalfwidthFor(sd, blocks))
			}
		}
		p.Precision = append(p.Precision, row)
	}
	return p
}

func trialPrice(s *Study, w Workload, resetTime time.Duration) TrialPrice {
	measured := time.Duration(s.Plan.Measure)
	if w.Mode == ModeSeries {
		measured = time.Duration(w.Requests) * SeriesRequest
	}
	if HasChanges(s) {
		measured += time.Duration(s.Plan.DuringMin + s.Plan.After)
	}
	return TrialPrice{Workload: w.Name, Min: resetTime + time.Duration(s.Plan.Warm) + measured, Max: resetTime + time.Duration(s.Plan.WarmMax) + measured}
}

// blockSteps are the rows of the table: the study's own numbers, and 6, 12 and 24, at
// which the half-width is about that of the row before divided by the square root of 2.
func blockSteps(low, high int) []int {
	steps := []int{low, high, VerdictBlocks, 2 * VerdictBlocks, 4 * VerdictBlocks}
	slices.Sort(steps)
	return slices.Compact(steps)
}

// String is the table for a terminal.
func (p PriceList) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s: %s\n", between(p.BlocksMin, p.BlocksMax, "block"), between(p.TrialsMin, p.TrialsMax, "trial"), span(p.TotalMin, p.TotalMax))
	width := len("workload")
	for _, t := range p.Trials {
		width = max(width, len(t.Workload))
	}
	fmt.Fprintf(&b, "\n%-*s  per block  each\n", width, "workload")
	for _, t := range p.Trials {
		fmt.Fprintf(&b, "%-*s  %9d  %s\n", width, t.Workload, t.PerBlock, span(t.Min, t.Max))
	}
	if p.Changes {
		b.WriteString("A change that takes longer than it is watched at the least comes on top.\n")
	}
	b.WriteString("\nPrecision to expect (half of the 95 % interval), by the noise between two runs of the same:\nblocks")
	for _, sd := range p.SDLog {
		fmt.Fprintf(&b, "  %8s", fmt.Sprintf("SD %g %%", sd*100))
	}
	b.WriteString("\n")
	for _, row := range p.Precision {
		fmt.Fprintf(&b, "%6d", row.Blocks)
		if row.Halfwidths == nil {
			b.WriteString("  direction only")
		}
		for _, h := range row.Halfwidths {
			fmt.Fprintf(&b, "  %8s", fmt.Sprintf("±%.1f %%", h*100))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// between is "6 blocks" or "6 to 24 blocks".
func between(low, high int, what string) string {
	if low == high {
		if low == 1 {
			return "1 " + what
		}
		return fmt.Sprintf("%d %ss", low, what)
	}
	return fmt.Sprintf("%d to %d %ss", low, high, what)
}

// span is "26s" or "26s to 41s", or in minutes from two on.
func span(low, high time.Duration) string {
	a, b := rounded(low), rounded(high)
	if a == b {
		return a
	}
	return a + " to " + b
}

// rounded shows as many digits as are true of a time that is foretold.
func rounded(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return Duration(d.Round(100 * time.Millisecond)).String()
	case d < 5*time.Minute:
		return Duration(d.Round(time.Second)).String()
	}
	return Duration(d.Round(time.Minute)).String()
}
