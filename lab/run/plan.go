package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kurabe/lab/study"
	"kurabe/lab/target"
)

// Reset is what a trial takes before its load begins, as foretold: the first real one
// corrects it.
type Reset struct {
	Time time.Duration
	Why  string // where the figure is from
}

const (
	// resetNear is a service's restore of a snapshot with little data, or on a file system
	// that clones, and the deletion of the instance before.
	resetNear = 1500 * time.Millisecond
	// resetFar is Amazon's restore until the instance is available, by what its users
	// report of small ones; the lab has measured none.
	resetFar = 10 * time.Minute
	// resetCopy is a new database from a template, without its files.
	resetCopy = 500 * time.Millisecond
	// copyBytesPerSecond is that of the template's files, checkpoints included, and
	// fillBytesPerSecond that of rows that are sent and inserted: rules of thumb.
	copyBytesPerSecond = 100 << 20
	fillBytesPerSecond = 10 << 20
)

// ResetOn is what a reset takes on a kind of target.
func ResetOn(kind string, s *study.Study, engine string) Reset {
	data := target.DataBytes(s)
	took := func(base time.Duration, perSecond int64) time.Duration {
		return (base + time.Duration(float64(data)/float64(perSecond)*float64(time.Second))).Round(100 * time.Millisecond)
	}
	switch {
	case kind == target.KindRDS:
		return Reset{resetFar, "restores of Amazon's service are said to take that; it was not measured"}
	case kind == target.KindURL && engine == study.Postgres:
		return Reset{took(resetCopy, copyBytesPerSecond), fmt.Sprintf("a template of %s is copied for each trial, at a guess of %d MiB/s", mebibytes(data), copyBytesPerSecond>>20)}
	case kind == target.KindURL:
		return Reset{took(resetCopy, fillBytesPerSecond), fmt.Sprintf("the data of all workloads, %s, is made anew for each trial, at a guess of %d MiB/s", mebibytes(data), fillBytesPerSecond>>20)}
	}
	return Reset{resetNear, "a restore of little data, or on a file system that clones, and the start of its server"}
}

func mebibytes(n int64) string {
	if n < 1<<20 {
		return "less than 1 MiB"
	}
	return fmt.Sprintf("about %d MiB", n>>20)
}

// Plan is what a run is about to do.
type Plan struct {
	Price study.PriceList // of what can be had
	Reset Reset
	// Resumed is that of a study that has begun, Had how many of its trials count already.
	Resumed bool
	Had     int
	// Unsupported are the variants and workloads that are left out, each with its reason.
	Unsupported map[string]string
}

// NewPlan is that of a study as a target can have it.
func NewPlan(s *study.Study, kind, engine string, unsupported map[string]string) Plan {
	has := study.Without(s, slices.Collect(maps.Keys(unsupported))...)
	reset := ResetOn(kind, has, engine)
	return Plan{Price: study.Price(has, reset.Time, nil), Reset: reset, Unsupported: unsupported}
}

// String is the plan for a terminal.
func (p Plan) String() string {
	var b strings.Builder
	b.WriteString(p.Price.String())
	fmt.Fprintf(&b, "A reset is taken for %s: %s.", p.Reset.Time, p.Reset.Why)
	b.WriteString(" What is left is corrected by the first one.\n")
	if p.Resumed {
		fmt.Fprintf(&b, "Of these trials the file has %d that count.\n", p.Had)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Unsupported)) {
		fmt.Fprintf(&b, "not measured: %s: %s\n", name, p.Unsupported[name])
	}
	return b.String()
}

// loaded is what the load of a trial takes, on average over the cells of a block.
func (p Plan) loaded() time.Duration {
	var total time.Duration
	cells := 0
	for _, t := range p.Price.Trials {
		total += time.Duration(t.PerBlock) * ((t.Min+t.Max)/2 - p.Reset.Time)
		cells += t.PerBlock
	}
	return total / time.Duration(cmp.Or(cells, 1))
}
