package wal_test

import (
	"testing"

	"kurabe"
	"kurabe/internal/engine/postgres/wal"
)

func TestPositions(t *testing.T) {
	s := wal.Segments{Bytes: 16 << 20}
	for text, want := range map[string]string{
		"0/0": "000000020000000000000000:0", "0/1000000": "000000020000000000000001:0",
		"0/FFFFFF": "000000020000000000000000:16777215", "1A/FF000028": "000000020000001A000000FF:40",
	} {
		at, err := wal.ParseLSN(text)
		if err != nil {
			t.Fatal(err)
		}
		p := s.Position(2, at)
		timeline, back, err := s.Place(p)
		if p.String() != want || back != at || timeline != 2 || err != nil || at.String() != text {
			t.Errorf("%s is %s and back %s of %d, %v", text, p, back, timeline, err)
		}
	}
	for _, p := range []kurabe.LogPosition{
		{}, {File: "000000020000000000000100"}, {File: "000000000000000000000001"}, {File: "00000002000000000000000g"},
		{File: "000000020000000000000001", Offset: 16<<20 + 1}, {File: "000000020000000000000001", Offset: -1},
		{File: "../000020000000000000001"},
	} {
		if _, at, err := s.Place(p); err == nil {
			t.Errorf("%s is %s", p, at)
		}
	}
	if _, at, err := s.Place(kurabe.LogPosition{File: "000000020000000000000001", Offset: 16 << 20}); at != 0x2000000 || err != nil {
		t.Errorf("the end of a segment is %s, %v", at, err)
	}
	for _, text := range []string{"", "1", "1/", "/1", "1/100000000", "x/1", "-1/1"} {
		if at, err := wal.ParseLSN(text); err == nil {
			t.Errorf("%q is %s", text, at)
		}
	}
}

// Where a record ended is found again from where the next one begins.
func TestDropHeader(t *testing.T) {
	s := wal.Segments{Bytes: 16 << 20}
	for at := wal.LSN(15 << 20); at < 17<<20; at += 8 {
		if in := at % wal.LSN(s.Bytes); in > 0 && in <= wal.SegmentHeaderBytes || at%wal.PageBytes > 0 && at%wal.PageBytes <= 24 {
			continue // no record ends within a header
		}
		if got := s.DropHeader(s.SkipHeader(at)); got != at {
			t.Fatalf("%s: %s", at, got)
		}
	}
}
