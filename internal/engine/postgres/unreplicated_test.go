package postgres

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kurabe/internal/engine"
)

func TestParseHistory(t *testing.T) {
	const two = "1\t0/3000110\tno recovery target specified\n\n# a remark\n2\t0/5000060\tno recovery target specified\n"
	for _, c := range []struct {
		name, text string
		timeline   uint32
		want       []stretch
		bad        string
	}{
		{"the first", "", 1, []stretch{{1, endless}}, ""},
		{"the third", two, 3, []stretch{{1, 0x3000110}, {2, 0x5000060}, {3, endless}}, ""},
		{"of itself", two, 2, nil, "timeline 2 cannot come from timeline 2"},
		{"half a line", "1", 2, nil, "invalid line"},
		{"no number", "one 0/1", 2, nil, "invalid timeline"},
		{"no place", "1 0-1", 2, nil, "invalid WAL position"},
		{"the same twice", "1 0/1\n1 0/2\n", 2, nil, "goes back"},
		{"a place before the last", "1 0/2\n2 0/1\n", 3, nil, "goes back"},
	} {
		got, err := parseHistory(c.text, c.timeline)
		if !slices.Equal(got, c.want) || (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

func FuzzParseHistory(f *testing.F) {
	f.Add("1\t0/3000110\tno recovery target specified\n", uint32(2))
	f.Fuzz(func(t *testing.T, text string, timeline uint32) {
		list, err := parseHistory(text, timeline)
		if err != nil {
			return
		}
		for n := 1; n < len(list); n++ {
			if list[n].timeline <= list[n-1].timeline || list[n].end < list[n-1].end {
				t.Errorf("%v", list)
			}
		}
		if last := list[len(list)-1]; last != (stretch{timeline, endless}) {
			t.Errorf("%v", list)
		}
	})
}

func TestParted(t *testing.T) {
	first, second := []stretch{{1, endless}}, []stretch{{1, 100}, {2, endless}}
	for _, c := range []struct {
		name        string
		own, source []stretch
		at          int
		from        lsn
		bad         bool
	}{
		{"promoted once", first, second, 0, 100, false},
		{"promoted twice", second, []stretch{{1, 100}, {2, 200}, {3, endless}}, 1, 200, false},
		{"both were promoted", second, []stretch{{1, 90}, {3, endless}}, 0, 90, false},
		{"both were promoted, and the source earlier", []stretch{{1, 90}, {3, endless}}, second, 0, 90, false},
		{"both write the first", first, first, 0, 0, true},
		{"both write the second", second, second, 0, 0, true},
		{"nothing in common", []stretch{{2, endless}}, first, 0, 0, true},
	} {
		at, from, err := parted(c.own, c.source)
		if at != c.at && !c.bad || from != c.from && !c.bad || (err != nil) != c.bad {
			t.Errorf("%s: %d %v %v", c.name, at, from, err)
		}
	}
}

// The tool's own words, of version 15.
func TestCountCommits(t *testing.T) {
	const sums = `WAL statistics between 0/3000028 and 0/3000A58:
Type                                           N      (%)          Record size      (%)             FPI size      (%)        Combined size      (%)
----                                           -      ---          -----------      ---             --------      ---        -------------      ---
Transaction/COMMIT                            12 ( 85.71)                  408 ( 80.00)                    0 (  0.00)                  408 ( 80.00)
Transaction/ABORT                              1 (  7.14)                   34 (  6.67)                    0 (  0.00)                   34 (  6.67)
Transaction/COMMIT_PREPARED                    2 (  7.14)                   68 ( 13.33)                    0 (  0.00)                   68 ( 13.33)
                                        --------                      --------                      --------                      --------
Total                                         15                           510 [100.00%]                    0 [0.00%]                  510 [100%]
`
	for text, want := range map[string]int64{sums: 14, "": 0, "Transaction/ABORT 3 (": 0} {
		if n, err := countCommits(text); n != want || err != nil {
			t.Errorf("%d %v, want %d", n, err, want)
		}
	}
	if _, err := countCommits("Transaction/COMMIT 99999999999999999999 ("); !errors.Is(err, engine.ErrUncounted) {
		t.Errorf("too many: %v", err)
	}
}
