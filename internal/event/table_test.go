package event

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// guide are the rows of RDS's page that are told of, as they were read there: the source type,
// the category, and the numbers. It is another hand than the declarations of this package.
var guide = map[string]map[string][]int{
	"db-cluster": {
		"configuration change": {16}, "creation": {170}, "deletion": {171}, "failover": {69, 70, 71, 73},
		"failure": {355}, "maintenance": {173}, "notification": {172},
	},
	"db-cluster-snapshot": {"backup": {74, 75, 168, 169}},
	"db-instance": {
		"availability":         {4, 6, 221},
		"backup":               {1, 2},
		"configuration change": {12, 16, 18, 24, 25, 28, 29, 30, 32, 217, 218},
		"creation":             {5},
		"deletion":             {3},
		"failover":             {13, 15, 34, 49, 50, 51, 65},
		"failure":              {35, 36, 220, 223, 224, 353},
		"low storage":          {7, 89},
		"maintenance":          {26, 27, 47},
		"notification":         {87, 88, 154, 225},
		"read replica":         {45, 46, 57, 202, 233},
		"restoration":          {19, 43}, // 43 of snapshots: see RestoredFromSnapshot
	},
	"db-parameter-group": {"configuration change": {37}},
	"db-snapshot":        {"creation": {40, 42, 90, 91}, "deletion": {41}, "notification": {196, 197}},
}

func TestKindsAreRDSs(t *testing.T) {
	want, have := map[string]bool{}, map[string]bool{}
	for source, categories := range guide {
		for category, numbers := range categories {
			for _, n := range numbers {
				want[fmt.Sprintf("RDS-EVENT-%04d of %s: %s", n, source, category)] = true
			}
		}
	}
	for _, k := range All() {
		key := fmt.Sprintf("%s of %s: %s", k.ID, k.Source, k.Category)
		if have[key] {
			t.Errorf("%s stands there twice", key)
		}
		have[key] = true
		if !want[key] {
			t.Errorf("%s (%s) is not RDS's", key, k.Text)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !have[key] {
			t.Errorf("%s is missing", key)
		}
	}
}

// What begins and what ends is told apart by RDS's own words.
func TestBeginningsAndEnds(t *testing.T) {
	for _, pair := range [][2]Kind{
		{WindowBegun, WindowDone}, {ToMultiAZBegun, ToMultiAZDone}, {ToSingleAZBegun, ToSingleAZDone}, {AutoscalingBegun, AutoscalingDone},
	} {
		begun, begins := strings.CutPrefix(pair[0].Text, "Applying ")
		done, ends := strings.CutPrefix(pair[1].Text, "Finished applying ")
		if !begins || !ends || begun != done {
			t.Errorf("%q and %q", pair[0].Text, pair[1].Text)
		}
	}
}

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func TestWords(t *testing.T) {
	e := RestoredToPoint.With("100%d", "b").And(", as of 5%").Told(noon, "b", "db-B")
	if e.Message != "Restored from DB instance 100%d to b, as of 5%" || e.SourceType != "db-instance" || e.Source != "b" || e.SourceID != "db-B" ||
		e.ID != "RDS-EVENT-0019" || !slices.Equal(e.Categories, []string{"restoration"}) || !e.At.Equal(noon) {
		t.Errorf("%+v", e)
	}
	if strings.Contains(RestoredToPoint.Text, "100") {
		t.Error("a kind was changed by its use")
	}
}
