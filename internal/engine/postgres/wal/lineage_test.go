package wal_test

import (
	"slices"
	"strings"
	"testing"

	"kurabe/internal/engine/postgres/wal"
)

func TestParseHistory(t *testing.T) {
	const two = "1\t0/3000110\tno recovery target specified\n\n# a remark\n2\t0/5000060\tno recovery target specified\n"
	for _, c := range []struct {
		name, text string
		timeline   uint32
		want       []wal.Stretch
		bad        string
	}{
		{"the first", "", 1, []wal.Stretch{{Timeline: 1, End: wal.Endless}}, ""},
		{"the third", two, 3, []wal.Stretch{{Timeline: 1, End: 0x3000110}, {Timeline: 2, End: 0x5000060}, {Timeline: 3, End: wal.Endless}}, ""},
		{"of itself", two, 2, nil, "timeline 2 cannot come from timeline 2"},
		{"half a line", "1", 2, nil, "invalid line"},
		{"no number", "one 0/1", 2, nil, "invalid timeline"},
		{"no place", "1 0-1", 2, nil, "invalid WAL position"},
		{"the same twice", "1 0/1\n1 0/2\n", 2, nil, "goes back"},
		{"a place before the last", "1 0/2\n2 0/1\n", 3, nil, "goes back"},
	} {
		got, err := wal.ParseHistory(c.text, c.timeline)
		if !slices.Equal(got, c.want) || (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

func FuzzParseHistory(f *testing.F) {
	f.Add("1\t0/3000110\tno recovery target specified\n", uint32(2))
	f.Fuzz(func(t *testing.T, text string, timeline uint32) {
		list, err := wal.ParseHistory(text, timeline)
		if err != nil {
			return
		}
		for n := 1; n < len(list); n++ {
			if list[n].Timeline <= list[n-1].Timeline || list[n].End < list[n-1].End {
				t.Errorf("%v", list)
			}
		}
		if last := list[len(list)-1]; last != (wal.Stretch{Timeline: timeline, End: wal.Endless}) {
			t.Errorf("%v", list)
		}
	})
}
