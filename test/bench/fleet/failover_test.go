package fleet

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/test/bench/bed"
)

// What the planner is given to notice counts from its rule, and not from when somebody looked.
func TestJudgeFleet(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lastWord := began.Add(-400 * time.Millisecond) // the newest before the loss
	known := lastWord.Add(kurabe.HostLostAfter)
	l := judgeFleet(fleetLoss{Host: "h", Standbys: 3}, began, lastWord, []time.Time{known.Add(250 * time.Millisecond), known.Add(900 * time.Millisecond)})
	if want := milliseconds(kurabe.HostLostAfter) - 400; l.KnownMs != want {
		t.Errorf("known after %v ms, want %v", l.KnownMs, want)
	}
	if !slices.Equal(l.DecidedMs, []float64{250, 900}) || l.TotalMs != l.KnownMs+900 {
		t.Errorf("%+v", l)
	}
}

func TestReadLoss(t *testing.T) {
	text, err := json.Marshal(fleetLoss{Host: "h", DecidedMs: []float64{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readLoss(fleetStruck+string(text), 2); err != nil || got.Host != "h" {
		t.Errorf("%+v, %v", got, err)
	}
	for answer, why := range map[string]string{
		fleetStruck + string(text):        "2 of 3 writers",
		fleetFailed + "7 groups are not…": "7 groups",
		fleetJoined:                       fleetJoined,
		fleetStruck + "{":                 "JSON",
	} {
		if _, err := readLoss(answer, 3); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

// The bar holds for the group that is decided last, over all rounds: the interval decides.
func TestFleetRow(t *testing.T) {
	round := func(last float64) fleetLoss {
		return fleetLoss{Standbys: 100, TotalMs: last + 4000, DecidedMs: []float64{last, 100, last / 2}}
	}
	var few, well, slow, mixed []fleetLoss
	for n := range 8 {
		few = append(few[:min(n, 2)], round(300))
		well, slow = append(well, round(500+float64(n))), append(slow, round(2500+float64(n)))
		mixed = append(mixed, round([]float64{1000, 3000}[n%2]+float64(n)))
	}
	for want, losses := range map[string][]fleetLoss{bed.Meets: well, bed.Misses: slow, bed.Undecided: mixed} {
		if line := fleetRow(losses, 1000); line.Verdict != want || !strings.Contains(line.Note, "8 rounds") || !strings.Contains(line.What, "3 pairs") {
			t.Errorf("%s: %+v", want, line)
		}
	}
	if line := fleetRow(few, 0); line.Verdict != bed.Undecided { // so few have no interval
		t.Errorf("%+v", line)
	}
}

func TestSurplus(t *testing.T) {
	got := surplus(map[string][]string{"b": {"p1", "p2", "p4", "p5"}, "c": {"p3"}}, 2)
	if !slices.Equal(got, []string{"p4", "p5"}) {
		t.Errorf("%v", got)
	}
}
