package postgres

import (
	"errors"
	"testing"

	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
)

func TestParted(t *testing.T) {
	first, second := []wal.Stretch{{Timeline: 1, End: wal.Endless}}, []wal.Stretch{{Timeline: 1, End: 100}, {Timeline: 2, End: wal.Endless}}
	for _, c := range []struct {
		name        string
		own, source []wal.Stretch
		at          int
		from        wal.LSN
		bad         bool
	}{
		{"promoted once", first, second, 0, 100, false},
		{"promoted twice", second, []wal.Stretch{{Timeline: 1, End: 100}, {Timeline: 2, End: 200}, {Timeline: 3, End: wal.Endless}}, 1, 200, false},
		{"both were promoted", second, []wal.Stretch{{Timeline: 1, End: 90}, {Timeline: 3, End: wal.Endless}}, 0, 90, false},
		{"both were promoted, and the source earlier", []wal.Stretch{{Timeline: 1, End: 90}, {Timeline: 3, End: wal.Endless}}, second, 0, 90, false},
		{"both write the first", first, first, 0, 0, true},
		{"both write the second", second, second, 0, 0, true},
		{"nothing in common", []wal.Stretch{{Timeline: 2, End: wal.Endless}}, first, 0, 0, true},
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
