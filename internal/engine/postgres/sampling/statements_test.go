package sampling

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	"kurabe"
)

func counts(calls, rows uint64) (c counters) {
	c[kurabe.StatementCalls], c[kurabe.StatementRows] = calls, rows
	return c
}

func TestSince(t *testing.T) {
	before := counted{known: map[statement]counters{
		{user: 1, database: 1, id: 7}: counts(10, 100),
		{user: 1, database: 2, id: 7}: counts(5, 5),
		{user: 1, database: 1, id: 8}: counts(3, 0),
		{user: 1, database: 1, id: 9}: counts(50, 50),
	}}
	after := counted{known: map[statement]counters{
		{user: 1, database: 1, id: 7}:             counts(12, 120),
		{user: 1, database: 2, id: 7}:             counts(6, 6),
		{user: 1, database: 1, id: 8}:             counts(3, 0),  // did not run
		{user: 1, database: 1, id: 9}:             counts(4, 60), // forgotten, and counted anew
		{user: 2, database: 1, id: -1, top: true}: counts(2, 2),  // new
	}}
	list := after.since(before)
	slices.SortFunc(list, func(x, y kurabe.StatementCounts) int { return cmp.Compare(x.NativeID, y.NativeID) })
	want := []kurabe.StatementCounts{{NativeID: "-1", Counts: counts(2, 2)}, {NativeID: "7", Counts: counts(3, 21)}, {NativeID: "9", Counts: counts(4, 60)}}
	if !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, want %+v", list, want)
	}
	// What was left out of the list before is not new.
	for n := range int64(statementsMax) {
		before.known[statement{user: 5, id: n}] = counts(1, 1)
	}
	if list = after.since(before); slices.ContainsFunc(list, func(c kurabe.StatementCounts) bool { return c.NativeID == "-1" }) {
		t.Errorf("%+v", list)
	}
}
