package kurabe

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var orderNoon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func taken(hours float64, offset int64) SnapshotFacts {
	f := SnapshotFacts{TakenAt: orderNoon.Add(time.Duration(hours * float64(time.Hour)))}
	if offset > 0 {
		f.Position = LogPosition{File: "000001", Offset: offset}
	}
	return f
}

func logOf(first ...SnapshotFacts) InstanceLog {
	var l InstanceLog
	for _, f := range first {
		l.Runs = append(l.Runs, LogRun{First: LogMark{At: f.TakenAt, Position: f.Position}, Ended: "a gap"})
	}
	if n := len(l.Runs); n > 0 {
		l.Runs[n-1].Ended = ""
	}
	return l
}

func TestCompareTaken(t *testing.T) {
	for _, c := range []struct {
		name      string
		log       InstanceLog
		old, next SnapshotFacts
		unsure    bool
	}{
		{"clock and log agree", logOf(taken(0, 1)), taken(1, 10), taken(2, 20), false},
		{"no run is known", InstanceLog{}, taken(1, 10), taken(2, 20), false},
		{"nothing was written between", logOf(taken(0, 1)), taken(1, 10), taken(2, 10), false},
		{"the clock went back", logOf(taken(0, 1), taken(1, 15)), taken(2, 10), taken(1.5, 20), false},
		{"it went back, and no run tells", InstanceLog{}, taken(2, 10), taken(1.5, 20), true},
		{"the log went back", logOf(taken(0, 30), taken(3, 5)), taken(1, 40), taken(4, 10), false},
		{"one lies in a gap", logOf(taken(0, 1), taken(5, 50)), taken(4, 40), taken(6, 60), false},
		{"one has no position", logOf(taken(0, 1)), taken(2, 0), taken(1, 10), true},
		{"one was there before the log", logOf(taken(2, 10)), taken(1, 5), taken(3, 15), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.log.CompareTaken(c.old, c.next) >= 0 || c.log.CompareTaken(c.next, c.old) <= 0 {
				t.Errorf("%d, %d", c.log.CompareTaken(c.old, c.next), c.log.CompareTaken(c.next, c.old))
			}
			if c.log.SurelyFollows(c.next, c.old) == c.unsure || c.log.SurelyFollows(c.old, c.next) {
				t.Errorf("surely %v, the other way round %v", c.log.SurelyFollows(c.next, c.old), c.log.SurelyFollows(c.old, c.next))
			}
		})
	}
}

// An order that were none would sort the same snapshots differently.
func TestCompareTakenIsAnOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		facts := rapid.Custom(func(rt *rapid.T) SnapshotFacts {
			return taken(float64(rapid.IntRange(0, 5).Draw(rt, "hour")), int64(rapid.IntRange(0, 5).Draw(rt, "offset")))
		})
		log := logOf(rapid.SliceOfN(facts, 0, 3).Draw(rt, "runs")...)
		list := rapid.SliceOfN(facts, 3, 6).Draw(rt, "list")
		slices.SortFunc(list, log.CompareTaken)
		for n, a := range list {
			for _, b := range list[n:] {
				if log.CompareTaken(a, b) > 0 || log.CompareTaken(b, a) < 0 {
					rt.Fatalf("%+v after %+v in %+v", a, b, list)
				}
			}
		}
	})
}

func TestLogHolds(t *testing.T) {
	at := taken(4, 0).TakenAt
	ended := logOf(taken(0, 1))
	ended.Runs[0].Ended = "a gap"
	for _, c := range []struct {
		name string
		log  InstanceLog
		s    SnapshotFacts
		want bool
	}{
		{"in it", logOf(taken(0, 1), taken(2, 10)), taken(3, 11), true},
		{"at its beginning", logOf(taken(2, 10)), taken(2, 10), true},
		{"in the one before", logOf(taken(0, 1), taken(2, 10)), taken(1, 5), false},
		{"at a later time, further back", logOf(taken(2, 10)), taken(3, 5), false},
		{"before the clock went back", logOf(taken(2, 10)), taken(9, 11), false},
		{"it ended", ended, taken(3, 11), false},
		{"there is none", InstanceLog{}, taken(3, 11), false},
		{"none that is known", (*InstanceReport)(nil).Log(), taken(3, 11), false},
		{"as a host reports it", (&InstanceReport{LogSince: taken(2, 10).TakenAt, LogFrom: taken(2, 10).Position}).Log(), taken(3, 11), true},
	} {
		if got := c.log.Holds(c.s, at); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
