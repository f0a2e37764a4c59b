package bed

import (
	"fmt"
	"strings"

	"kurabe/lab/stat"
)

// The verdicts. Only a row with a bar has one.
const (
	Meets     = "meets"
	Misses    = "MISSES"
	Undecided = "undecided"
)

// The values of a row for which there is no figure; its note says why.
const (
	NotMeasured  = "not measured"
	notInstalled = "not installed"
	Failed       = "failed"
)

// Verdict is for a figure without an interval.
func Verdict(good bool) string {
	if good {
		return Meets
	}
	return Misses
}

// AtLeast and AtMost hold an interval against a bar: the worse end must meet it, or the better
// one miss it. Between the two the figure says neither, however good its estimate looks; nor
// does one of so few blocks that there is no interval.
func AtLeast(i stat.Interval, bar float64) string {
	return ends(i, i.Low >= bar, i.High >= bar)
}

func AtMost(i stat.Interval, bar float64) string {
	return ends(i, i.High <= bar, i.Low <= bar)
}

func ends(i stat.Interval, worse, better bool) string {
	switch {
	case i.Level == 0 || better && !worse:
		return Undecided
	case better:
		return Meets
	}
	return Misses
}

// totals counts the verdicts, and the rows for which there is no figure.
func totals(rows []Row) string {
	count := map[string]int{}
	missing := 0
	for _, r := range rows {
		count[r.Verdict]++
		switch r.Value {
		case NotMeasured, notInstalled, Failed:
			missing++
		}
	}
	parts := []string{fmt.Sprintf("%d meet their bar", count[Meets]), fmt.Sprintf("%d undecided", count[Undecided]), fmt.Sprintf("%d MISS it", count[Misses])}
	if missing > 0 {
		parts = append(parts, fmt.Sprintf("%d not measured", missing))
	}
	return strings.Join(parts, ", ")
}
