package postgres

import (
	"testing"

	"kurabe"
)

func TestPositions(t *testing.T) {
	s := segments{16 << 20}
	for text, want := range map[string]string{
		"0/0": "000000020000000000000000:0", "0/1000000": "000000020000000000000001:0",
		"0/FFFFFF": "000000020000000000000000:16777215", "1A/FF000028": "000000020000001A000000FF:40",
	} {
		at, err := parseLSN(text)
		if err != nil {
			t.Fatal(err)
		}
		p := s.position(2, at)
		timeline, back, err := s.place(p)
		if p.String() != want || back != at || timeline != 2 || err != nil || at.String() != text {
			t.Errorf("%s is %s and back %s of %d, %v", text, p, back, timeline, err)
		}
	}
	for _, p := range []kurabe.LogPosition{
		{}, {File: "000000020000000000000100"}, {File: "000000000000000000000001"}, {File: "00000002000000000000000g"},
		{File: "000000020000000000000001", Offset: 16<<20 + 1}, {File: "000000020000000000000001", Offset: -1},
		{File: "../000020000000000000001"},
	} {
		if _, at, err := s.place(p); err == nil {
			t.Errorf("%s is %s", p, at)
		}
	}
	if _, at, err := s.place(kurabe.LogPosition{File: "000000020000000000000001", Offset: 16 << 20}); at != 0x2000000 || err != nil {
		t.Errorf("the end of a segment is %s, %v", at, err)
	}
	for _, text := range []string{"", "1", "1/", "/1", "1/100000000", "x/1", "-1/1"} {
		if at, err := parseLSN(text); err == nil {
			t.Errorf("%q is %s", text, at)
		}
	}
}

// Where a record ended is found again from where the next one begins.
func TestDropHeader(t *testing.T) {
	s := segments{16 << 20}
	for at := lsn(15 << 20); at < 17<<20; at += 8 {
		if in := at % lsn(s.bytes); in > 0 && in <= walHeaderBytes || at%pageBytes > 0 && at%pageBytes < pageHeaderBytes+1 {
			continue // no record ends within a header
		}
		if got := s.dropHeader(s.skipHeader(at)); got != at {
			t.Fatalf("%s: %s", at, got)
		}
	}
}

