package main

import (
	"fmt"
	"strings"

	"kurabe/lab/stat"
)

// The verdicts. Only a row with a bar has one.
const (
	meets     = "meets"
	misses    = "MISSES"
	undecided = "undecided"
)

// The values of a row for which there is no figure; its note says why.
const (
	notMeasured  = "not measured"
	notInstalled = "not installed"
	failed       = "failed"
)

// verdict is for a figure without an interval.
func verdict(good bool) string {
	if good {
		return meets
	}
	return misses
}

// atLeast and atMost hold an interval against a bar: the worse end must meet it, or the better
// one miss it. Between the two the figure says neither, however good its estimate looks; nor
// does one of so few blocks that there is no interval.
func atLeast(i stat.Interval, bar float64) string {
	return ends(i, i.Low >= bar, i.High >= bar)
}

func atMost(i stat.Interval, bar float64) string {
	return ends(i, i.High <= bar, i.Low <= bar)
}

func ends(i stat.Interval, worse, better bool) string {
	switch {
	case i.Level == 0 || better && !worse:
		return undecided
	case better:
		return meets
	}
	return misses
}

// totals counts the verdicts, and the rows for which there is no figure.
func totals(rows []row) string {
	count := map[string]int{}
	missing := 0
	for _, r := range rows {
		count[r.Verdict]++
		switch r.Value {
		case notMeasured, notInstalled, failed:
			missing++
		}
	}
	parts := []string{fmt.Sprintf("%d meet their bar", count[meets]), fmt.Sprintf("%d undecided", count[undecided]), fmt.Sprintf("%d MISS it", count[misses])}
	if missing > 0 {
		parts = append(parts, fmt.Sprintf("%d not measured", missing))
	}
	return strings.Join(parts, ", ")
}
