package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"kurabe/lab/result"
)

const ms = int64(time.Millisecond)

func TestTallyPutsSamplesIntoPhases(t *testing.T) {
	tally := newTally(1, true)
	tally.enter(result.PhaseWarm, 0)
	tally.enter(result.PhaseIdle, 1000*ms)
	tally.enter(result.PhaseDuring, 2000*ms)
	tally.enter("", 2350*ms)
	answered := func(due, at int64) []sample {
		return []sample{{due: due, at: at, value: at - due, kind: kindAnswer}, {due: due, value: ms, kind: kindService}, {due: due, value: 2 * ms, kind: kindStatement}}
	}
	tally.add(slices.Concat(
		answered(500*ms, 501*ms),   // of the warm-up
		answered(999*ms, 1001*ms),  // of the warm-up, answered after it
		answered(1100*ms, 1101*ms), // in the second bin of idle
		answered(1990*ms, 2110*ms), // of idle, in the second bin of during
		answered(2000*ms, 2001*ms),
		answered(2340*ms, 2400*ms), // answered after the end
		[]sample{{due: 2300 * ms, kind: kindSkipped}, {due: 100 * ms, kind: kindSkipped}},
	))
	tally.fail(1500*ms, "40001", nil)
	tally.fail(10*ms, "40001", nil)
	idle, err := tally.load(1, []string{"01 SELECT 1"})
	if err != nil {
		t.Fatal(err)
	}
	balanced(t, idle)
	if idle.Transactions != 2 || idle.Errors["40001"] != 1 || idle.Seconds != 1 || math.Abs(quantile(t, idle.Response, 100)-120) > 0.2 || math.Abs(quantile(t, idle.Statements["01 SELECT 1"], 50)-2) > 0.01 {
		t.Errorf("%+v", idle)
	}
	if !slices.Equal(idle.Bins, []int64{0, 1, 0, 0, 0, 0, 0, 0, 0, 0}) || idle.BinsMax[1] != 1 {
		t.Errorf("%v, %v", idle.Bins, idle.BinsMax)
	}
	during, err := tally.load(2, []string{"01 SELECT 1"})
	if err != nil {
		t.Fatal(err)
	}
	balanced(t, during)
	// Its 350 ms have three whole bins.
	if during.Transactions != 2 || during.Skipped != 1 || !slices.Equal(during.Bins, []int64{1, 1, 0}) || during.BinsMax[1] != 120 {
		t.Errorf("%+v", during)
	}
}

func TestMicros(t *testing.T) {
	cases := map[string]struct{ ns, want int64 }{
		"nothing": {0, 1}, "negative": {-5, 1}, "rounded down": {1499, 1}, "rounded up": {1500, 2}, "a day": {86_400_000 * ms, result.MaxHistogramMicros},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := micros(c.ns); got != c.want {
				t.Errorf("= %d", got)
			}
		})
	}
}
